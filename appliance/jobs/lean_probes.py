"""Statements next to a Lean statement: the opposite, another number, another relation. Lean's kernel decides on each.

Only what simple tactics settle is shown: a changed statement that Lean refutes (it proves the opposite), or one that it
proves as well, which says that the statement is weaker than it looks. Where nothing is settled, that is said. A file
with `variable` is left alone, because the names that it adds cannot be seen in the theorem's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from appliance.jobs.probes import Probe, Shown, Tried, Try
from policies.meaning import Look
from verifiers.errors import SpecError
from verifiers.lean import commands
from verifiers.lean.lexer import code
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import read_statement

TACTICS = " | ".join(
    (
        "first",
        "rfl",
        "assumption",
        "decide",
        "omega",
        "simp",
        *(f"(intro h; exact absurd (h {number}) (by decide))" for number in (0, 1, 2)),
    )
)
"""Tried one after the other; the last ones refute what is said of all numbers at one of them."""
MOST = 3
OPENING, CLOSING = "([{⟨⦃", ")]}⟩⦄"
RELATIONS = {
    "=": "≠",
    "≠": "=",
    "<": "≤",
    "≤": "<",
    ">": "≥",
    "≥": ">",
    "∣": "=",
    "∃": "∀",
    "→": "∧",
    "∧": "∨",
    "∨": "∧",
}
NONE = "none could be made: "


class Parts(NamedTuple):
    before: str
    """All of the file up to the end of the theorem's name."""
    name: str
    binders: str
    type: str

    def saying(self, binders: str, type_: str) -> str:
        return f"{self.before} {binders}{' ' if binders else ''}: {type_} := sorry\n"

    @property
    def whole(self) -> str:
        """As one proposition."""
        return f"∀ {self.binders}, {self.type}" if self.binders else self.type


def statements(spec: LeanSpec, answer: str | None, try_: Try) -> Shown:
    found = [Probe("example", "what the job came to", spec, answer)] if answer is not None else []
    parts = parts_of(spec)
    if isinstance(parts, str):
        return Shown(tuple(one.look() for one in try_(found)), (), (f"{NONE}{parts}",))
    own = Probe("example", "the statement as it stands, by simple tactics", spec, _proof(parts, spec.statement))
    opposite = _opposite(spec, parts, parts.whole)
    begun = try_([*found, own, opposite])
    looks = [one.look() for one in begun if one.probe is not opposite and (one.probe is not own or one.accepted)]
    if begun and all(one.outcome == "infra_error" for one in begun):
        return Shown(tuple(one.look() for one in begun[:1]), (), ())
    first, notes = [], []
    if any(one.accepted for one in begun if one.probe is opposite):
        first.append("THE STATEMENT IS FALSE: Lean proves the opposite of it")
    elif not any(one.accepted for one in begun):
        notes.append("simple tactics prove neither the statement nor the opposite of it")
    changed = list(_changed(parts))[:MOST]
    probes = [
        probe
        for what, type_ in changed
        for probe in (
            Probe("mutant", what, *_stated(spec, parts, type_), parts.saying(parts.binders, type_)),
            _opposite(spec, parts, f"∀ {parts.binders}, {type_}" if parts.binders else type_),
        )
    ]
    tried = try_(probes)
    settled = [look for one, other in zip(tried[::2], tried[1::2], strict=False) if (look := _settled(one, other))]
    if len(settled) < len(changed):
        notes.append(
            f"{len(changed) - len(settled)} of {len(changed)} changed statements are not settled by simple tactics"
        )
    if not changed:
        notes.append(f"{NONE}no number or relation in it could be changed")
    return Shown((*looks, *settled), tuple(first), tuple(notes))


def _settled(proved: Tried, refuted: Tried) -> Look | None:
    if proved.accepted:
        return proved.look()
    if refuted.accepted:
        return proved._replace(outcome="refuted", reason="Lean proves the opposite of it").look()
    return None


def parts_of(spec: LeanSpec) -> Parts | str:
    """Its theorem taken apart, or why that cannot be done."""
    try:
        statement = read_statement(spec)
    except SpecError as error:
        return str(error)
    begin = len(spec.statement) - len(statement.text)
    if re.search(r"^\s*(variable|universe|include)\b", spec.statement[:begin], re.MULTILINE):
        return "the file has variables of its own"
    text, name_end = statement.text, statement.name_at
    after = [word for word in code(text) if word.start >= name_end]
    says = commands.signature(after, 0)
    depth, colon = 0, None
    for word in after[: len(says)]:
        depth += sum(word.text.count(sign) for sign in OPENING) - sum(word.text.count(sign) for sign in CLOSING)
        if word.text == ":" and depth == 0:
            colon = word
            break
    if colon is None:
        return "its type could not be found"
    end = after[len(says) - 1].end
    return Parts(
        spec.statement[: begin + name_end],
        statement.full_name,
        " ".join(text[name_end : colon.start].split()),
        " ".join(text[colon.end : end].split()),
    )


def _stated(spec: LeanSpec, parts: Parts, type_: str) -> tuple[LeanSpec, str]:
    said = parts.saying(parts.binders, type_)
    return spec.model_copy(update={"statement": said, "require_replay": False}), _proof(parts, said)


def _opposite(spec: LeanSpec, parts: Parts, whole: str) -> Probe:
    said = parts.saying("", f"¬ ({whole})")
    changed = spec.model_copy(update={"statement": said, "require_replay": False})
    return Probe("mutant", "the opposite", changed, _proof(parts, said), said)


def _proof(parts: Parts, statement: str) -> str:
    """The file with a proof in the place of `sorry`."""
    head = statement.rstrip().removesuffix("sorry").rstrip().removesuffix(":=").rstrip()
    return f"{head} := by {TACTICS}\n"


def _changed(parts: Parts) -> Iterator[tuple[str, str]]:
    """How, and the changed type: numbers from the end, because there stands what is claimed; then relations."""
    type_ = parts.type
    for found in reversed(list(re.finditer(r"(?<![\w.])\d{1,9}(?![\w.])", type_))):
        other = f"{type_[: found.start()]}{int(found[0]) + 1}{type_[found.end() :]}"
        yield f"{int(found[0]) + 1} in the place of the last {found[0]}", other
        break
    for found in reversed(list(re.finditer("[" + "".join(RELATIONS) + "]", type_))):
        before = type_[max(0, found.start() - 1) : found.start()]
        if (found[0] == "=" and before in (":", "=")) or type_[found.end() : found.end() + 1] == "=":
            continue
        other = f"{type_[: found.start()]}{RELATIONS[found[0]]}{type_[found.end() :]}"
        yield f"{RELATIONS[found[0]]} in the place of {found[0]}", other
