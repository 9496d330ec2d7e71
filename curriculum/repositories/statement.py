"""Writes the statement of a repository task from what a failing test observes. Pure.

Invariants: a statement says what a call should give and what it gives; it has neither a line of the change nor the
place of it. At least one failing test is in no statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from curriculum.environments.terminal.environment import TERMINAL_OPENING
from curriculum.repositories.faults import RepositoryFault
from curriculum.repositories.observing import Site, context_of

SHOWN_CHARS = 300
LEAST_LINE = 10
"""Characters of a changed line above which a statement may not contain it."""


class Observed(NamedTuple):
    """Run of one test: what it observed in order (site, value, text), and how it failed."""

    name: str
    values: Sequence[Sequence[object]]
    why: str = ""
    params: str = ""


class Symptom(NamedTuple):
    """Difference between a right and a faulty run of a test, for people."""

    about: str
    file: str
    context: str
    source: str
    expected: str
    got: str

    def text(self, *, wrong: bool = True) -> str:
        """Returns the difference as text; without the wrong result if that says nothing."""
        lines = [*self.context.splitlines(), self.source]
        shown = "\n".join(f"    {line}" for line in lines if line)
        but = f", but {self.got}" if wrong else ""
        return f"In the case {self.about!r} of {self.file}, this\n\n{shown}\n\nshould give `{self.expected}`{but}."


def symptom(right: Observed, wrong: Observed, sites: Mapping[int, Site], files: Mapping[str, str]) -> Symptom | None:
    """Returns what differs first in a faulty run; None if that cannot be shown in a few lines."""
    at = next(
        (n for n, pair in enumerate(zip(right.values, wrong.values, strict=False)) if [*pair[0][:2]] != [*pair[1][:2]]),
        None,
    )
    stopped = at is None
    at = len(wrong.values) if at is None else at
    values = [one for one in right.values[at:] if str(one[2])]
    if not values:
        return None
    site = sites.get(int(str(values[0][0])))
    if site is None:
        return None
    function = wrong.name.partition("::")[2].partition("[")[0]
    kind = str(values[0][1])
    expected = site.expected if kind.startswith(("raised", "truth")) and site.expected else str(values[0][2])
    if stopped or not str(wrong.values[at][2]):
        got = f"it fails with {' '.join(wrong.why.split())}" if wrong.why else ""
    else:
        got = f"it gives `{wrong.values[at][2]}`"
    if kind.startswith("raised"):
        got = "it raises nothing" if "nothing" in got or "DID NOT RAISE" in got else got
    if not got or len(got) > SHOWN_CHARS or len(expected) > SHOWN_CHARS or "__assay" in got:
        return None
    context = context_of(files[site.file], function, site.line)
    if context is None:
        return None
    if wrong.params:
        context = f"{wrong.params.replace(', ', '; ') if len(wrong.params) < 120 else wrong.params}\n{context}"
    about = function.rpartition("::")[2].removeprefix("test").strip("_").replace("_", " ")
    return Symptom(about or function, wrong.name.partition("::")[0], context.strip(), site.source, expected, got)


def statement(name: str, fault: RepositoryFault, symptoms: Sequence[Symptom], hidden: int) -> str:
    """Returns the statement of a task about a fault, with its first symptoms."""
    shown = "\n\n".join(one.text(wrong=fault.kind != "body") for one in symptoms)
    if fault.kind == "body":
        quoted = "\n".join(f"    {line}" for line in fault.docstring.splitlines())
        opening = f"`{fault.functions[0].name}` of the repository {name} is not written yet:\n\n    {fault.signature}"
        work = f"{quoted}\n\nWrite it. For example:\n\n{shown}"
    else:
        several = "in several places" if fault.kind == "combined" else "in one respect"
        opening = f"The repository {name} in /work behaves wrongly {several}."
        work = f"{shown}\n\nFind the cause and repair it."
    return (
        f"{opening}\n\n{work}\n\n{hidden} tests that you do not have check this behaviour. Those that you have must "
        "still pass: `python3 -m pytest -o addopts= -p no:cacheprovider`. Only Python sources of the package count: "
        f"changes to tests, settings and other files do not count.\n\n{TERMINAL_OPENING}"
    )


def gives_away(text: str, before: str, after: str) -> bool:
    """True if a statement contains a line that a change added or removed."""
    changed = {line.strip() for line in set(before.splitlines()) ^ set(after.splitlines())}
    return any(len(line) >= LEAST_LINE and line in text for line in changed)
