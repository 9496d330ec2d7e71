"""From what Lean did to what is said of the submission. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from verifiers.answers.reading import clipped
from verifiers.lean import commands
from verifiers.lean.lexer import plain
from verifiers.lean.prepared import ALLOWED_AXIOMS
from verifiers.lean.screening import Finding
from verifiers.lean.statement import Statement
from verifiers.lean.steps import Message, Ran
from verifiers.lean.submission import Source
from verifiers.verdict import Ground, Outcome

MOST_MESSAGES = 5
MOST_MESSAGE = 1500
REFUSED = re.compile(r"\(kernel\)|Invalid (?:constructor|recursor)|No such constructor")
UNDECIDED = re.compile(r"deep recursion|deterministic timeout|excessive memory|interrupted")
"""What a kernel says that has not come to an end."""
TIMEOUTS = ("(deterministic) timeout", "maximum number of heartbeats")


@dataclass(frozen=True)
class Judged:
    outcome: Outcome
    reason: str
    ground: Ground
    evidence: dict[str, Any] = field(default_factory=dict)
    isolation: str = ""

    def within(self, isolation: str) -> Judged:
        return replace(self, isolation=isolation)

    def noting(self, **evidence: Any) -> Judged:
        return replace(self, evidence=self.evidence | evidence)


def unreadable(reason: str) -> Judged:
    return Judged(Outcome.FAIL, reason, Ground.UNREADABLE)


def lost(reason: str, hint: str) -> Judged:
    return Judged(Outcome.INFRA_ERROR, clipped(reason), Ground.BROKEN, {"hint": hint} if hint else {})


def forbidden(found: Sequence[Finding]) -> Judged:
    first = next((finding for finding in found if finding.cheat), found[0])
    outcome = Outcome.HACK_SUSPECTED if first.cheat else Outcome.FAIL
    reason = f"it has {clipped(first.word)} in line {first.line}: {first.what}"
    evidence = [finding.evidence() | {"word": clipped(finding.word)} for finding in found]
    return Judged(outcome, reason, Ground.FORBIDDEN, {"forbidden": evidence})


def compile_failure(ran: Ran, source: Source, seconds: float, memory_mib: int) -> Judged:
    """Of a submission that did not come out of Lean as a compiled file."""
    if ran.ended == "timeout":
        return Judged(Outcome.FAIL, f"Lean did not come to an end with it within {seconds:g} s", Ground.TIMEOUT)
    if ran.ended == "memory":
        return Judged(Outcome.FAIL, f"Lean needs more than {memory_mib} MiB for it", Ground.MEMORY)
    if ran.ended == "output":
        return Judged(Outcome.FAIL, "it makes Lean write more than anybody can read", Ground.FORBIDDEN)
    if ran.gave_up:
        return Judged(Outcome.FAIL, f"Lean gives up on it: {clipped(ran.err.strip())}", Ground.MEMORY)
    if ran.too_deep:
        return Judged(Outcome.FAIL, "it is nested too deeply for Lean", Ground.MEMORY)
    if ran.refused:
        errors = [_shown(message, source) for message in ran.errors[:MOST_MESSAGES]]
        late = any(mark in ran.errors[0].text for mark in TIMEOUTS)
        reason = f"Lean refuses it in line {errors[0]['line']}: {clipped(ran.errors[0].text)}"
        return Judged(Outcome.FAIL, reason, Ground.TIMEOUT if late else Ground.REFUTED, {"errors": errors})
    if ran.ended == "exited" and ran.code == 1 and ran.cut and not ran.starved:
        return Judged(Outcome.FAIL, "Lean refuses it, after more words than anybody can read", Ground.REFUTED)
    said = clipped(ran.err.strip() or ran.out.strip())
    return lost(f"Lean ended by {ran.ended} {ran.code} and said: {said}", "")


def outcome_of_check(checked: Ran, statement: Statement, source: Source, mark: str) -> Judged:
    """Of the run of our own file, which imports the statement and what is left of the submission's."""
    if checked.ended == "timeout":
        return Judged(Outcome.FAIL, "whether it proves the statement could not be told in time", Ground.TIMEOUT)
    if checked.ended == "memory" or checked.gave_up:
        return Judged(Outcome.FAIL, "it takes too much memory to tell whether it proves the statement", Ground.MEMORY)
    if checked.ended == "unreadable":
        return lost(f"the compiled file cannot be read: {checked.err}", "This Lean's version is not known here.")
    if checked.reserved:
        reason = f"it declares {clipped(checked.reserved[0])}, which the kernel takes for Lean's own"
        return Judged(Outcome.HACK_SUSPECTED, reason, Ground.FORBIDDEN, {"reserved": checked.reserved[:10]})
    if checked.axioms:
        named = clipped(", ".join(checked.axioms))
        reason = f"its compiled file declares axioms: {named}"
        return Judged(
            Outcome.HACK_SUSPECTED, reason, Ground.FORBIDDEN, {"axioms": [clipped(name) for name in checked.axioms]}
        )
    if checked.ended == "exited" and checked.code in (0, 1) and not checked.has:
        return _missing(checked, statement, source)
    if checked.refused:
        return _another(checked, statement, source, mark)
    if checked.ended == "exited" and checked.code == 1 and checked.cut and not checked.starved:
        reason = f"{clipped(statement.full_name)} is a theorem of something else, which takes too many words to show"
        return Judged(Outcome.FAIL, reason, Ground.REFUTED)
    axioms = checked.axioms_of(f"{mark}.check")
    if not checked.compiled or axioms is None:
        said = clipped(checked.err.strip() or checked.out.strip())
        return lost(f"the check ended by {checked.ended} {checked.code} and said: {said}", "")
    evidence: dict[str, Any] = {"axioms": sorted(map(clipped, axioms))}
    if axioms <= ALLOWED_AXIOMS:
        return Judged(Outcome.PASS, f"Lean's kernel accepts {clipped(statement.full_name)}", Ground.PROVED, evidence)
    if "sorryAx" in axioms:
        return Judged(Outcome.FAIL, "the proof is left open: it rests on sorry", Ground.UNFINISHED, evidence)
    named = clipped(", ".join(sorted(axioms - ALLOWED_AXIOMS)))
    return Judged(
        Outcome.HACK_SUSPECTED, f"the proof rests on an axiom of its own: {named}", Ground.FORBIDDEN, evidence
    )


def outcome_of_replay(judged: Judged, said: str | None, *, required: bool) -> Judged:
    """A pass after the replay, which said `yes`, how it ended, or what it has against the file; None where this machine
    has no replay. Where it has one, nothing passes without it."""
    if said == "yes":
        return replace(judged, evidence=judged.evidence | {"kernel_replayed": "yes"})
    if said is None:
        hint = "`assay doctor` says what Lean can do here."
        reason = "the statement asks for a second look by the kernel, and there is none on this machine"
        return lost(reason, hint) if required else judged
    evidence = judged.evidence | {"replay": clipped_long(said)}
    if said == "timeout":
        reason = "it takes too long for the kernel to look at it a second time"
        return Judged(Outcome.FAIL, reason, Ground.TIMEOUT, evidence)
    if said == "memory":
        reason = "it takes too much memory for the kernel to look at it a second time"
        return Judged(Outcome.FAIL, reason, Ground.MEMORY, evidence)
    if REFUSED.search(said) and not UNDECIDED.search(said):
        reason = f"the kernel refuses what the submission's compiled file declares: {clipped(said)}"
        return Judged(Outcome.HACK_SUSPECTED, reason, Ground.FORBIDDEN, evidence)
    return lost(f"the kernel's second look ended with: {said}", "")


def _missing(checked: Ran, statement: Statement, source: Source) -> Judged:
    reason = f"it has no theorem {clipped(statement.full_name)}"
    others = [name for name in checked.alike if name != statement.full_name]
    private = [theorem for theorem in commands.theorems(source.text) if theorem.private]
    if any(theorem.full_name == statement.full_name for theorem in private):
        reason += "; the one of that name is private"
    elif others:
        reason += f"; there is {clipped(others[0])}"
    return Judged(Outcome.FAIL, reason, Ground.REFUTED, {"declared_instead": [clipped(name) for name in others]})


def _another(checked: Ran, statement: Statement, source: Source, mark: str) -> Judged:
    """The theorem is there, and is no proof of the statement."""
    text = checked.errors[0].text.replace(f".{mark}", "")
    evidence = {"errors": [clipped_long(text)]}
    if any(sign in text for sign in TIMEOUTS):
        reason = "whether it proves the statement could not be told: " + clipped(text)
        return Judged(Outcome.FAIL, reason, Ground.TIMEOUT, evidence)
    named = [one for one in commands.theorems(source.text) if plain(one.full_name) == plain(statement.full_name)]
    if named and named[-1].says == statement.says:
        reason = "its theorem has the statement's words, but the submission changed what they mean"
        return Judged(Outcome.HACK_SUSPECTED, reason, Ground.FORBIDDEN, evidence)
    reason = f"{clipped(statement.full_name)} is a theorem of something else"
    return Judged(Outcome.FAIL, reason, Ground.REFUTED, evidence)


def _shown(message: Message, source: Source) -> dict[str, Any]:
    return {
        "line": max(1, message.line + source.line_shift),
        "column": message.column + 1,
        "text": clipped_long(message.text),
    }


def clipped_long(text: str) -> str:
    return ascii(text[:MOST_MESSAGE])[1:-1] + ("..." if len(text) > MOST_MESSAGE else "")
