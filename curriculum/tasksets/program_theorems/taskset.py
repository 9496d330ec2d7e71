"""Taskset of Lean theorems on generated functional programs."""

from __future__ import annotations

from functools import partial
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.program_theorems.claims import Equation, computed, false_claim, renamed, same, true_claim
from curriculum.tasksets.program_theorems.programs import TOPICS
from curriculum.tasksets.program_theorems.terms import substituted
from curriculum.tasksets.program_theorems.theory import SORTS, LeanText
from curriculum.tasksets.statements import digest
from curriculum.tasksets.theorems import NAME, SECONDS, THEOREMS, false_statement
from verifiers.contract.kinds import AnswerForm
from verifiers.lean import toolchain
from verifiers.lean.spec import LeanSpec

TURNS, TOKENS = 8, 12_000
SEEN = "seen"
"""Predicate of a refutation: true of what one side computes to, false of everything else."""
_ASKED = (
    "Prove the theorem at the end of this Lean 4 file. State and prove whatever lemmas you need before it. No imports",
    "Here are some programs in Lean 4 and a property of theirs. Prove it, without any import; it may need lemmas",
    "Find a proof in core Lean 4 for the last theorem of this file. Put auxiliary lemmas before it",
)
_DECIDED = (
    "Here are some programs in Lean 4, a claim and its negation. Prove the one that is true, without any import",
    "Prove this claim about programs in Lean 4, or refute it by a proof of its negation, without any import",
)


def proved(topic: str, level: int, rng: Random) -> Item:
    """Makes a question for the proof of a true equation."""
    claim = true_claim(topic, level, rng)
    text = renamed(claim.theory, rng)
    statement = f"theorem {NAME} : {text.statement(claim.rule)}"
    return _item(rng.choice(_ASKED), claim, text, statement, _proof(claim, text))


def decided(level: int, rng: Random) -> Item:
    """Makes a question for the proof of an equation or of its negation, whichever is true."""
    topic = rng.choice(tuple(TOPICS))
    claim = (true_claim if rng.random() < 0.5 else false_claim)(topic, level, rng)
    text = renamed(claim.theory, rng)
    said = text.statement(claim.rule)
    yes, no = f"theorem {NAME} : {said}", f"theorem {NAME} : ¬ ({said})"
    if claim.proof is not None:
        return _item(rng.choice(_DECIDED), claim, text, yes, _proof(claim, text), beside=f"{no}\n")
    values = " ".join(text.term(claim.values[name], inner=True) for name in claim.rule.binders)
    pattern = text.term(computed(claim.theory, substituted(claim.rule.left, claim.values)))
    sort = text.names[claim.theory.sort_of(claim.rule.left)]
    seen = f"def {SEEN} : {sort} → Prop\n  | {pattern} => True\n  | _ => False"
    proof = f"{seen}\n\n{no} :=\n  fun claim => Eq.subst (motive := {SEEN}) (claim {values}) True.intro\n"
    return _item(rng.choice(_DECIDED), claim, text, no, proof, beside=f"{yes}\n")


def _proof(claim: Equation, text: LeanText) -> str:
    """Returns the lemmas that a true equation needs, after functions of theirs that it has not, and its theorem."""
    theory, proof = claim.theory, claim.proof
    assert proof is not None
    names = theory.needed(proof.used)
    steps = [step for one in (*map(theory.proofs.__getitem__, names), proof) for step in one.steps]
    given = theory.reached((claim.rule.left, claim.rule.right))
    more = [
        one for one in theory.reached(side for step in steps for side in (step.before, step.after)) if one not in given
    ]
    lemmas = [text.theorem(theory.proofs[name], name) for name in names]
    return "\n\n".join((*map(text.definition, more), *lemmas, text.theorem(proof, NAME))) + "\n"


def _item(asked: str, claim: Equation, text: LeanText, statement: str, answer: str, beside: str = "") -> Item:
    """Makes an item; `beside` is the statement that is not to be proved."""
    given = _definitions(claim, text)
    shown = "\n".join(sorted(filter(None, (f"{statement}\n", beside)), key=len))
    return Item(
        text=f"{asked}:\n\n{given}\n\n{shown}\nEnd with your lemmas and the theorem in one fenced code block.",
        key=digest(f"{_definitions(claim, same(claim.theory))} {same(claim.theory).statement(claim.rule)}"),
        spec=LeanSpec(statement=f"{given}\n\n{statement} := sorry\n", seconds=SECONDS),
        answer=answer,
    )


def _definitions(claim: Equation, text: LeanText) -> str:
    """Returns Lean declarations of the data types and functions of an equation, and all that they need."""
    theory, rule = claim.theory, claim.rule
    functions = theory.reached((rule.left, rule.right))
    sorts = {SORTS[name] for name in rule.binders}.union(*((*one.sorts, one.sort) for one in functions))
    order = list(dict.fromkeys(one.sort for one in theory.constructors.values()))
    needed = {part for one in theory.constructors.values() if one.sort in sorts for part in one.sorts}
    types = text.types(sort for sort in order if sort in sorts | needed)
    return "\n\n".join((*types, *map(text.definition, functions)))


PROGRAM_THEOREMS = TopicTaskset(
    name="program_theorems",
    version=1,
    makers={**{f"theorems_on_{topic}": partial(proved, topic) for topic in TOPICS}, "claims_on_programs": decided},
    null_answers=THEOREMS.null_answers,
    form=AnswerForm.BLOCK,
    turns=TURNS,
    tokens=TOKENS,
    contradicted=false_statement,
    lacking=toolchain.missing,
)
