"""Variants of a Lean statement: the opposite, another number, another relation. Lean's kernel decides on each.

Only variants that simple tactics settle are shown: one that Lean refutes (it proves the opposite), or one that it
proves too, which shows that the statement is weaker than it looks. If nothing is settled, a note says so. Files with
`variable` are skipped, because the names that it adds are invisible in the theorem's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from verifiers.contract.errors import SpecError
from verifiers.contract.examples import AskVerifier, CheckedExample, ExampleInput, ExampleReport
from verifiers.lean.reading.lexer import turn
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
"""Tactics tried in turn; the last ones refute a universal claim at one number."""
MOST = 3
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


class StatementPieces(NamedTuple):
    before: str
    """File text up to the end of the theorem's name."""
    binders: str
    type: str

    def saying(self, binders: str, type_: str) -> str:
        return f"{self.before} {binders}{' ' if binders else ''}: {type_} := sorry\n"

    @property
    def whole(self) -> str:
        """The theorem as one proposition."""
        return f"∀ {self.binders}, {self.type}" if self.binders else self.type


def examples(spec: LeanSpec, answer: str | None, try_: AskVerifier) -> ExampleReport:
    given = [ExampleInput("example", "the job's answer", spec, answer)] if answer is not None else []
    parts = parts_of(spec)
    if isinstance(parts, str):
        return ExampleReport(tuple(try_(given)), (), (f"{NONE}{parts}",))
    own = ExampleInput(
        "example",
        "the statement as it stands, by simple tactics",
        spec,
        _proof(parts.saying(parts.binders, parts.type)),
    )
    opposite = _opposite(spec, parts)
    begun = try_([*given, own, opposite])
    shown = [one for one in begun if one.given is not opposite and (one.given is not own or one.accepted)]
    if begun and all(one.outcome == "infra_error" for one in begun):
        return ExampleReport(tuple(begun[:1]), (), ())
    first, notes = [], []
    if any(one.accepted for one in begun if one.given is opposite):
        first.append("THE STATEMENT IS FALSE: Lean proves its opposite")
    elif not any(one.accepted for one in begun):
        notes.append("simple tactics prove neither the statement nor its opposite")
    changed = list(_changed(parts))[:MOST]
    inputs = [
        each
        for what, type_ in changed
        for each in (
            ExampleInput("mutant", what, *_stated(spec, parts, type_), parts.saying(parts.binders, type_)),
            _opposite(spec, parts._replace(type=type_)),
        )
    ]
    tried = try_(inputs)
    settled = [found for one, other in zip(tried[::2], tried[1::2], strict=False) if (found := _settled(one, other))]
    if len(settled) < len(changed):
        notes.append(
            f"{len(changed) - len(settled)} of {len(changed)} changed statements are not settled by simple tactics"
        )
    if not changed:
        notes.append(f"{NONE}no number or relation in it could be changed")
    return ExampleReport((*shown, *settled), tuple(first), tuple(notes))


def _settled(proved: CheckedExample, refuted: CheckedExample) -> CheckedExample | None:
    if proved.accepted:
        return proved
    if refuted.accepted:
        return proved._replace(outcome="refuted", reason="Lean proves its opposite")
    return None


def parts_of(spec: LeanSpec) -> StatementPieces | str:
    """Splits a Lean spec's theorem into its pieces, or returns the reason why it cannot be split."""
    try:
        statement = read_statement(spec)
    except SpecError as error:
        return str(error)
    text, depth = statement.source, 0
    if re.search(r"^\s*(variable|universe|include)\b", text[: statement.theorem.start], re.MULTILINE):
        return "the file has variables of its own"
    for word in statement.theorem.words:
        if word.start < statement.name_at or word.end > statement.says_at:
            continue
        depth += turn(word)
        if word.text == ":" and depth == 0:
            return StatementPieces(
                text[: statement.name_at],
                " ".join(text[statement.name_at : word.start].split()),
                " ".join(text[word.end : statement.says_at].split()),
            )
    return "its type could not be found"


def _stated(spec: LeanSpec, parts: StatementPieces, type_: str) -> tuple[LeanSpec, str]:
    statement = parts.saying(parts.binders, type_)
    return spec.model_copy(update={"statement": statement, "require_replay": False}), _proof(statement)


def _opposite(spec: LeanSpec, parts: StatementPieces) -> ExampleInput:
    statement = parts.saying("", f"¬ ({parts.whole})")
    changed = spec.model_copy(update={"statement": statement, "require_replay": False})
    return ExampleInput("mutant", "the opposite", changed, _proof(statement), statement)


def _proof(statement: str) -> str:
    """Replaces the final `sorry` of a Lean statement by automatic tactics."""
    head = statement.rstrip().removesuffix("sorry").rstrip().removesuffix(":=").rstrip()
    return f"{head} := by {TACTICS}\n"


def _changed(parts: StatementPieces) -> Iterator[tuple[str, str]]:
    """Yields changes of a theorem's type, each with a description: first for the last number, because claims usually
    end in it, then for relations."""
    type_ = parts.type
    for found in reversed(list(re.finditer(r"(?<![\w.])\d{1,9}(?![\w.])", type_))):
        other = f"{type_[: found.start()]}{int(found[0]) + 1}{type_[found.end() :]}"
        yield f"{int(found[0]) + 1} in place of the last {found[0]}", other
        break
    for found in reversed(list(re.finditer("[" + "".join(RELATIONS) + "]", type_))):
        before = type_[max(0, found.start() - 1) : found.start()]
        if (found[0] == "=" and before in (":", "=")) or type_[found.end() : found.end() + 1] == "=":
            continue
        other = f"{type_[: found.start()]}{RELATIONS[found[0]]}{type_[found.end() :]}"
        yield f"{RELATIONS[found[0]]} in place of {found[0]}", other
