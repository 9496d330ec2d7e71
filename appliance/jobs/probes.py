"""What a verifier is asked about so that a person sees what a check accepts and what it rejects: the shapes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from policies.meaning import Look
from verifiers.spec import Spec

SHOWN_TEXT = 1_200
"""Of a submission; this and the limits below are bytes of ASCII, with everything else escaped."""


class Probe(NamedTuple):
    """A submission that the verifier is asked about."""

    sort: Literal["example", "mutant"]
    what: str
    """How it was made."""
    spec: Spec
    """The job's own, or a changed one where the claim itself is what is changed."""
    submission: str
    shown: str = ""
    """In place of the submission, where that says nothing."""


class Tried(NamedTuple):
    """A probe with what the verifier said of it; `evidence` is the verdict's."""

    probe: Probe
    outcome: str
    reason: str
    evidence: dict[str, object]
    ground: str = ""

    @property
    def accepted(self) -> bool:
        return self.outcome == "pass"

    def look(self) -> Look:
        return Look(
            sort=self.probe.sort,
            what=clip(self.probe.what, 400),
            text=clip(self.probe.shown or self.probe.submission, SHOWN_TEXT),
            outcome=self.outcome,
            reason=clip(self.reason, 400),
        )


Try = Callable[[Sequence[Probe]], list[Tried]]
"""Asks the verifier, in order; what there was no time for is left out."""


class Shown(NamedTuple):
    """What came of it, for one check."""

    looks: tuple[Look, ...]
    first: tuple[str, ...] = ()
    """To be said before anything else."""
    notes: tuple[str, ...] = ()
    """What could not be made."""


def clip(text: str, most: int) -> str:
    """As it is, or its beginning: a page has to fit into an envelope, whatever signs are in it."""
    if len(text) <= most and text.isascii():
        return text
    size = 0
    for place, character in enumerate(text):
        size += len(character.encode("ascii", "backslashreplace"))
        if size > most:
            return text[:place] + "…"
    return text


def refused(tried: Sequence[Tried], what: str, said: str) -> tuple[str, ...]:
    """A line to be shown first when the thing made this way, which has to be accepted, is not."""
    found = next((one for one in tried if one.probe.what == what), None)
    if found is None or found.accepted or found.outcome == "infra_error" or found.ground == "timeout":
        return ()
    return (f"{said}: {clip(found.reason, 400)}",)


def distinct(probes: Sequence[Probe], expected: str = "") -> list[Probe]:
    """None twice, the first of each; no mutant that is the expected text."""
    seen: set[tuple[Spec, str]] = set()
    kept = []
    for probe in probes:
        key = (probe.spec, probe.submission)
        if key in seen or (probe.sort == "mutant" and expected and probe.submission.strip() == expected.strip()):
            continue
        seen.add(key)
        kept.append(probe)
    return kept
