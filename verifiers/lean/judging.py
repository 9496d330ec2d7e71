"""Judgements from the results of Lean. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from verifiers.contract.text import escaped
from verifiers.contract.verdict import ALARM, Ground, Judgement
from verifiers.lean.reading import commands
from verifiers.lean.reading.lexer import plain
from verifiers.lean.reading.screening import ScreeningFinding
from verifiers.lean.second import ALLOWED_AXIOMS, verdict_of
from verifiers.lean.statement import LeanStatement
from verifiers.lean.steps import LeanMessage, Ran
from verifiers.lean.submission import LeanSource

MOST_MESSAGES = 5
MOST_MESSAGE = 1500
REFUSED = re.compile(r"\(kernel\)|Invalid (?:constructor|recursor)|No such constructor|Declared again")
UNDECIDED = re.compile(r"deep recursion|deterministic timeout|excessive memory")
"""Messages of a kernel that gives up."""
TIMEOUTS = ("(deterministic) timeout", "maximum number of heartbeats")


def failed(ground: Ground, reason: str, **evidence: Any) -> Judgement:
    return Judgement(ground, reason, evidence)


def suspected(reason: str, **evidence: Any) -> Judgement:
    """Returns a judgement that forbids, and marks as suspected cheating, content that no honest submission has."""
    return Judgement(Ground.FORBIDDEN, reason, evidence, suspected=True)


def lost(reason: str, hint: str) -> Judgement:
    return Judgement(Ground.BROKEN, escaped(reason), {"hint": hint} if hint else {})


def forbidden(found: Sequence[ScreeningFinding]) -> Judgement:
    first = next((finding for finding in found if finding.cheat), found[0])
    reason = f"it has {escaped(first.word)} in line {first.line}: {first.what}"
    evidence = [finding.evidence() | {"word": escaped(finding.word)} for finding in found]
    return (
        suspected(reason, forbidden=evidence) if first.cheat else failed(Ground.FORBIDDEN, reason, forbidden=evidence)
    )


def compile_failure(ran: Ran, source: LeanSource, seconds: float, memory_mib: int) -> Judgement:
    """Judges a Lean submission that did not compile."""
    if ran.ended == "timeout":
        return failed(Ground.TIMEOUT, f"Lean did not finish it within {seconds:g} s")
    if ran.ended == "memory":
        return failed(Ground.MEMORY, f"Lean needs more than {memory_mib} MiB for it")
    if ran.ended == "output":
        return failed(Ground.FORBIDDEN, "it makes Lean write too much output")
    if ran.gave_up:
        return failed(Ground.MEMORY, f"Lean gives up on it: {escaped(ran.err.strip())}")
    if ran.too_deep:
        return failed(Ground.MEMORY, "it is nested too deeply for Lean")
    if ran.broke_off:
        return _broke_off(ran)
    if ran.refused:
        errors = [_shown(message, source) for message in ran.errors[:MOST_MESSAGES]]
        late = any(mark in ran.errors[0].text for mark in TIMEOUTS)
        reason = f"Lean refuses it in line {errors[0]['line']}: {escaped(ran.errors[0].text)}"
        return failed(Ground.TIMEOUT if late else Ground.REFUTED, reason, errors=errors)
    if ran.ended == "exited" and ran.code == 1 and ran.cut and not ran.starved:
        return failed(Ground.REFUTED, "Lean refuses it, after too much output")
    output = escaped(ran.err.strip() or ran.out.strip())
    return lost(f"Lean ended with {ran.ended} {ran.code}: {output}", "")


def outcome_of_check(checked: Ran, statement: LeanStatement, source: LeanSource, mark: str) -> Judgement:
    """Judges the run of our check file, which imports the statement and the stripped submission."""
    name = escaped(statement.full_name)
    if checked.ended == "timeout":
        return failed(Ground.TIMEOUT, "the check against the statement timed out")
    if checked.broke_off and (checked.has or checked.ended == "signal"):
        return _broke_off(checked)
    if checked.ended == "memory" or checked.gave_up or checked.too_deep:
        return failed(Ground.MEMORY, "the check against the statement takes too much memory")
    if checked.ended == "altered":
        return suspected(f"its compiled file was not written by Lean: {escaped(checked.err.strip())}")
    if checked.ended == "unreadable":
        return lost(f"the compiled file cannot be read: {checked.err}", "Use a supported version of Lean.")
    if checked.reserved:
        reason = f"it declares {escaped(checked.reserved[0])}, which the kernel takes for Lean's own"
        return suspected(reason, reserved=checked.reserved[:10])
    if checked.axioms:
        reason = f"its compiled file declares axioms: {escaped(', '.join(checked.axioms))}"
        return suspected(reason, axioms=[escaped(axiom) for axiom in checked.axioms])
    if checked.ended == "exited" and checked.code in (0, 1) and not checked.has:
        return _missing(checked, statement, source)
    if checked.refused:
        return _another(checked, statement, source, mark)
    if checked.ended == "exited" and checked.code == 1 and checked.cut and not checked.starved:
        return failed(Ground.REFUTED, f"{name} states something else, in too much output to show")
    axioms = checked.axioms_of(f"{mark}.check")
    if not checked.compiled or axioms is None:
        output = escaped(checked.err.strip() or checked.out.strip())
        return lost(f"the check ended with {checked.ended} {checked.code}: {output}", "")
    shown = sorted(map(escaped, axioms))
    if axioms <= ALLOWED_AXIOMS:
        return Judgement(Ground.PROVED, f"Lean's kernel accepts {name}", {"axioms": shown})
    if "sorryAx" in axioms:
        return failed(Ground.UNFINISHED, "the proof is incomplete: it uses sorry", axioms=shown)
    named = escaped(", ".join(sorted(axioms - ALLOWED_AXIOMS)))
    return suspected(f"the proof rests on an axiom of its own: {named}", axioms=shown)


def outcome_of_replay(judged: Judgement, replay: str | None, *, required: bool) -> Judgement:
    """Judges a passing proof after its kernel replay. `replay`: `yes`, how it ended, or its objection; None if this
    machine has no replay.

    Where a replay is available, nothing passes without it.
    """
    if replay == "yes":
        return judged.noting(kernel_replayed="yes")
    if replay is None:
        hint = "Run `assay doctor` to see what Lean supports here."
        reason = "the statement requires a kernel replay, which this machine does not support"
        return lost(reason, hint) if required else judged
    evidence = judged.evidence | {"replay": escaped(replay, MOST_MESSAGE)}
    if replay == "timeout":
        return failed(Ground.TIMEOUT, "the kernel's replay takes too long", **evidence)
    if replay == "memory":
        return failed(Ground.MEMORY, "the kernel's replay takes too much memory", **evidence)
    if replay == "signal" or UNDECIDED.search(replay):
        return failed(Ground.MEMORY, "the kernel's replay exceeds the kernel's limits", **evidence)
    if REFUSED.search(replay):
        return suspected(
            f"the kernel refuses what the submission's compiled file declares: {escaped(replay)}", **evidence
        )
    return lost(f"the kernel's replay ended with: {replay}", "")


def outcome_of_second(judged: Judgement, ran: Ran, second: str, theorem: str) -> Judgement:
    """Judges a proof that Lean's kernel accepts after a second kernel, `second`, ran on its export. Nothing but a
    second acceptance passes, and nothing else says anything about the submission."""
    found = verdict_of(ran.ended, ran.code, exported=ran.exported)
    judged = judged.noting(second_kernel=second, second_verdict=found)
    if found == "accepts":
        return judged
    output = escaped((ran.err.strip() or ran.out.strip())[:MOST_MESSAGE])
    evidence = judged.evidence | {"second_output": output}
    if found == "refuses":
        reason = f"two kernels disagree: Lean's accepts {escaped(theorem)}, {second} refuses it"
        return Judgement(Ground.BROKEN, reason, evidence | {ALARM: f"{reason}: {output}"})
    step = "ended with" if ran.exported else "had nothing to check, since the export ended with"
    return Judgement(Ground.BROKEN, f"no verdict of {second}: it {step} {ran.ended} {ran.code}", evidence)


def differs(checked: Ran) -> bool:
    """True if Lean says that the theorem's type differs from the statement. A kernel environment lacks data that the
    elaborator may want; such errors are not a difference."""
    return checked.refused and checked.errors[0].text.lower().startswith("type mismatch")


def _broke_off(ran: Ran) -> Judgement:
    """Judges a submission on which Lean crashes every time, where it does not on others."""
    output = escaped(ran.err.strip() or ran.out.strip())
    return failed(Ground.MEMORY, f"Lean crashes on it: {ran.ended} {ran.code}", output=output)


def _missing(checked: Ran, statement: LeanStatement, source: LeanSource) -> Judgement:
    reason = f"it has no theorem {escaped(statement.full_name)}"
    others = [name for name in checked.alike if name != statement.full_name]
    if any(one.private and one.full_name == statement.full_name for one in commands.theorems(source.text)):
        reason += "; the one of that name is private"
    elif others:
        reason += f"; there is {escaped(others[0])}"
    return failed(Ground.REFUTED, reason, declared_instead=[escaped(name) for name in others])


def _another(checked: Ran, statement: LeanStatement, source: LeanSource, mark: str) -> Judgement:
    """Judges a submission whose theorem exists but does not prove the statement."""
    text = statement.unmarked(checked.errors[0].text, mark)
    errors = [escaped(text, MOST_MESSAGE)]
    if any(sign in text for sign in TIMEOUTS):
        reason = f"the check against the statement timed out: {escaped(text)}"
        return failed(Ground.TIMEOUT, reason, errors=errors)
    named = [one for one in commands.theorems(source.text) if plain(one.full_name) == plain(statement.full_name)]
    if named and named[-1].says == statement.says:
        reason = "its theorem has the statement's words, but the submission changed what they mean"
        return suspected(reason, errors=errors)
    return failed(Ground.REFUTED, f"{escaped(statement.full_name)} states something else", errors=errors)


def _shown(message: LeanMessage, source: LeanSource) -> dict[str, Any]:
    return {
        "line": max(1, message.line + source.line_shift),
        "column": message.column + 1,
        "text": escaped(message.text, MOST_MESSAGE),
    }
