"""Proposals of Lean statements: variants of an earlier task, or lemmas of its proof, proved or disproved here.

Invariants: the proposer supplies a proof, and Lean's kernel accepts it before a task exists; the label says which of
statement and negation was proved, and the spec states that one. A statement that a trivial tactic closes is refused.
The proposer's text enters a spec only as one proposition: words that begin a command are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from curriculum.contract.task import Task, asked
from curriculum.proposing.kind import Precedents, Provers, SpecChecker, precedents_in, prompt
from curriculum.proposing.labels import Basis, ProposedQuestion, ProvenLabel, ProvenTask, _minted, statement_digest
from curriculum.proposing.refusals import Reason, RefusedProposal, parts
from runtime.errors import InfrastructureError
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.lean import toolchain
from verifiers.lean.spec import LeanSpec
from verifiers.registry.spec import Spec

_WORD = re.compile(r"[λΠΣ]|[^\W\d][\w'!?]*(?:\.[\w'!?]+)*|\d+|=>|->|:=|\S")
_BINDERS = frozenset(("∀", "∃", "λ", "fun", "Σ", "Π"))
_OPEN = dict(zip("([{⟨⦃", ")]}⟩⦄", strict=True))
_CLOSED = frozenset(_OPEN.values())
_ARROWS = ("→", "->")


def without_names(proposition: str) -> str:
    """Returns a Lean proposition's words, space-separated, with bound names numbered: renaming changes nothing."""
    words = _WORD.findall(proposition)
    ends = _ends(words)
    scopes: list[dict[str, str]] = [{}]
    said: list[str] = []
    count = 0
    for at, word in enumerate(words):
        names: Iterator[str] = iter(())
        if word in _BINDERS:
            names = _bound(words, at + 1, ends)
        elif word == "(" and words[ends[at] + 1 : ends[at] + 2] and words[ends[at] + 1] in _ARROWS:
            names = _before_colon(words, at + 1)
        for name in names:
            scopes[-1][name] = f"#{count}"
            count += 1
        if word in _OPEN:
            scopes.append({})
        elif word in _CLOSED and len(scopes) > 1:
            scopes.pop()
        first, dot, rest = word.partition(".")
        known = next((scope[first] for scope in reversed(scopes) if first in scope), first)
        said.append(known + dot + rest)
    return " ".join(said)


def _ends(words: Sequence[str]) -> dict[int, int]:
    """Maps the position of each opening bracket to that of its closing one."""
    found: dict[int, int] = {}
    open_: list[int] = []
    for at, word in enumerate(words):
        if word in _OPEN:
            open_.append(at)
        elif word in _CLOSED and open_:
            found[open_.pop()] = at
    return found | dict.fromkeys(open_, len(words))


def _bound(words: Sequence[str], at: int, ends: dict[int, int]) -> Iterator[str]:
    """Yields the names bound by a Lean binder: bare ones, or in brackets with their type."""
    while at < len(words):
        if words[at] in _OPEN:
            yield from _before_colon(words, at + 1)
            at = ends[at]
        elif _is_name(words[at]):
            yield words[at]
        elif words[at] != "!":
            return
        at += 1


def _before_colon(words: Sequence[str], at: int) -> Iterator[str]:
    """Yields the names before a colon, `x` and `y` of `x y : T`; nothing if no such list follows."""
    end = at
    while end < len(words) and _is_name(words[end]):
        end += 1
    if end < len(words) and words[end] == ":":
        yield from words[at:end]


def _is_name(word: str) -> bool:
    return re.fullmatch(r"[^\W\d][\w'!?]*", word) is not None


NAME = "target"
MOST_CHARACTERS = 600
SECONDS = 30.0
TURNS, TOKENS = 4, 4_000
AT_ONCE = ("trivial", "decide", "intros; rfl", "intros; trivial", "intros; simp")
"""Tactics; a statement that one of them closes is not a task."""
TRUE, FALSE = "true", "false"
CLOSED = "set_option autoImplicit false\n"
"""Makes unbound names an error. Lean would bind them universally, outside the negation too: for a value of an empty
type, a statement and its negation could both be proved."""
_COMMANDS = (
    "theorem lemma def abbrev axiom instance class structure inductive import open namespace section end variable"
    " universe macro syntax notation infix infixl infixr prefix postfix elab attribute set_option example opaque"
    " partial unsafe noncomputable private protected mutual deriving initialize sorry admit by run_tac"
)
_FORBIDDEN = re.compile(rf"\b(?:{'|'.join(_COMMANDS.split())})\b|:=|#|@\[|--|/-|-/|[`\"«»$;]|\.\.\.")
_ASKS = (
    "Invent a statement in Lean 4 (core library) whose proof takes several steps, in one of two ways: change an "
    "earlier statement so that it is as hard, or take a lemma out of its proof. It is closed: all names are bound in "
    "it, as in `∀ n : Nat, n * 0 = 0`. Answer with a block ```statement that holds the proposition alone, and a block "
    "```proof with a term or tactics (`by ...`) that prove it, or that prove its negation if it is false. A statement "
    f"that {', '.join(AT_ONCE)} close at once is worth nothing."
)


class StatementProposals:
    name = "statement"

    def is_like(self, task: Task) -> bool:
        return isinstance(task.spec, LeanSpec) and task.spec.statement.startswith("theorem ")

    def ask(self, rng: Random, precedents: Precedents) -> Task:
        return prompt(self.name, _ASKS + precedents_in(rng, precedents), rng)

    def missing(self) -> str:
        return toolchain.missing()

    def make(self, text: str, provers: Provers) -> ProvenTask:
        found = parts(text, ("statement", "proof"))
        proposition = _proposition(found["statement"])
        label = proved(proposition, found["proof"], provers.checker)
        said = (
            f"A statement in Lean 4:\n```lean\n{proposition}\n```\nFind out whether it is true. Then prove it, or its "
            f"negation. End with one fenced code block that holds a theorem named `{NAME}`: either\n"
            f"theorem {NAME} : {proposition} := ...\nor\ntheorem {NAME} : ¬ ({proposition}) := ..."
        )
        question = ProposedQuestion(
            kind=self.name,
            of=label.of,
            key=f"statement:{statement_digest(without_names(proposition))}",
            messages=asked(said),
            specify=lambda answer: _spec(proposition, answer),
            form=AnswerForm.BLOCK,
            tools=(),
            turns=TURNS,
            tokens=TOKENS,
        )
        return ProvenTask(question, label, _whole(proposition, label.answer, found["proof"]), provers.provenance)


def proved(proposition: str, proof: str, checker: SpecChecker) -> ProvenLabel:
    """Returns as a label whether a supplied proof proves a Lean proposition or its negation. Raises RefusedProposal if
    neither, and InfrastructureError."""
    verdicts = _tried(proposition, [(TRUE, proof), (FALSE, proof)], checker)
    true, false = (one.passed for one in verdicts)
    if true == false:
        raise RefusedProposal(Reason.UNPROVED, "its proof proves neither the statement nor its negation")
    side = TRUE if true else FALSE
    if any(one.passed for one in _tried(proposition, [(side, f"by {tactic}") for tactic in AT_ONCE], checker)):
        raise RefusedProposal(Reason.VACUOUS, "a tactic closes it at once")
    return _minted(Basis.PROVED, statement_digest("lean", proposition), side)


def _tried(proposition: str, proofs: Sequence[tuple[str, str]], checker: SpecChecker) -> list[Verdict]:
    pairs: list[tuple[Spec, str]] = [(_spec(proposition, side), _whole(proposition, side, by)) for side, by in proofs]
    return [_sound(one) for one in checker.check_many(pairs)]


def _sound(found: Verdict | SpecProblem) -> Verdict:
    if isinstance(found, SpecProblem):
        raise RefusedProposal(Reason.UNREADABLE, "Lean cannot read the statement")
    if found.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"a proof of a proposal failed to run: {found.reason}", hint="run `assay doctor`")
    return found


def _proposition(text: str) -> str:
    """Returns a proposed text as one Lean proposition in one line. Raises RefusedProposal otherwise."""
    line = " ".join(text.split())
    if len(line) > MOST_CHARACTERS or _FORBIDDEN.search(line):
        raise RefusedProposal(Reason.FORBIDDEN, "more than one proposition, or too long")
    if any(line.count(a) != line.count(b) for a, b in ("()", "[]", "{}", "⟨⟩")) or not line:
        raise RefusedProposal(Reason.UNREADABLE, "brackets that do not match")
    return line


def _spec(proposition: str, side: str) -> Spec:
    says = proposition if side == TRUE else f"¬ ({proposition})"
    return LeanSpec(statement=f"{CLOSED}theorem {NAME} : {says} := sorry", seconds=SECONDS)


def _whole(proposition: str, side: str, proof: str) -> str:
    says = proposition if side == TRUE else f"¬ ({proposition})"
    return f"theorem {NAME} : {says} :=\n  {proof.strip()}\n"
