"""Records as full text, for the detail pane: pure. Everything that a model, a guest or a stranger wrote is escaped."""

from __future__ import annotations

import json

from rich.text import Text

from appliance.client import (
    MEANING,
    Artifact,
    CanaryView,
    CheckpointView,
    Decision,
    Job,
    RolloutView,
    Spec,
    ToolCall,
    Verdict,
)
from tui.marks import BAD, DECISIONS, DIM, GATES, GOOD, JOBS, STRONG, VERDICTS, marked, percent, plain, short
from tui.rows import figure_text

MAX_CHARACTERS = 4_000
"""Of one text; what is cut off is in the ledger."""


def rollout_detail(view: RolloutView) -> Text:
    text = Text()
    text.append_text(marked(VERDICTS[view.verdict.outcome]))
    text.append_text(plain(f"  {view.family}, {view.purpose.value}, step {view.step}, sample {view.sample}", DIM))
    text.append("\n")
    _field(text, "question", view.question or f"not kept; task {view.task}")
    for number, call in enumerate(view.calls, 1):
        _call(text, number, call)
    if view.answer is None:
        _field(text, "answer", f"none: {view.answers} final answers, ended by {view.ended.value}")
    else:
        _field(text, "answer", view.answer)
    _verdict(text, view.verdict)
    told = f"{view.turns} turns, {view.tokens} tokens, {view.seconds:.2f} s, weights {_weights(view.weights)}"
    _field(text, "cost", told)
    if view.usage.calls:
        _field(text, "used", _used(view))
    _field(text, "rollout", view.id)
    return text


def _used(view: RolloutView) -> str:
    """By its session, as the host measured it."""
    usage = view.usage
    parts = [f"{usage.calls} calls in {usage.seconds:.2f} s", f"{usage.output_bytes:,} bytes printed"]
    if usage.moves:
        parts.append(f"moved {usage.moves} times")
    if usage.cpu_seconds is not None:
        parts.append(f"{usage.cpu_seconds:.2f} s of processor")
    if usage.peak_memory_mib is not None:
        parts.append(f"{usage.peak_memory_mib:.0f} MiB at most")
    return ", ".join(parts)


def model_detail(view: CheckpointView, canary: CanaryView | None = None) -> Text:
    """`canary` is the one that is tried beside the champion now, whichever model it is."""
    checkpoint = view.checkpoint
    text = Text()
    text.append_text(plain(checkpoint.manifest, STRONG))
    origin = f"{checkpoint.stage}, step {checkpoint.step}, cycle {checkpoint.cycle}, from {short(checkpoint.parent)}"
    text.append("\n")
    text.append_text(plain(f"{origin}, made {checkpoint.created}", DIM))
    text.append("\n")
    if view.aliases:
        _field(text, "known as", ", ".join(view.aliases))
    if canary is not None and canary.canary.candidate == checkpoint.manifest:
        _field(text, "beside the champion", canary.words)
    for name, value in checkpoint.metrics.items():
        _field(text, name.replace("_", " "), f"{value:.4g}")
    if view.decision is None:
        _field(text, "decision", "none yet: a cycle evaluates its candidate and decides")
    else:
        text.append_text(decision_detail(view.decision))
    return text


def decision_detail(decision: Decision) -> Text:
    """The outcome, every gate with its figure and reason, and what would have changed it."""
    text = Text()
    text.append("decision  ", DIM)
    text.append_text(marked(DECISIONS[decision.outcome]))
    text.append("  ")
    text.append_text(plain(decision.reason))
    text.append("\n")
    for finding in decision.findings:
        sign, style = GATES[finding.outcome]
        text.append(f"  {sign} ", style)
        text.append_text(plain(f"{finding.gate:<26} {figure_text(finding):>8}  "))
        text.append_text(plain(finding.reason, DIM))
        text.append("\n")
    if decision.would_change:
        _field(text, "would change it", decision.would_change)
    _field(text, "made", f"{decision.made_at}, policy {short(decision.policy)}, {decision.id}")
    return text


def job_detail(job: Job, artifact: Artifact | None = None) -> Text:
    text = Text()
    text.append_text(marked(JOBS[job.state]))
    text.append_text(plain(f"  {job.id}", DIM))
    text.append("\n")
    _field(text, "question", job.question)
    _field(text, "checked by", spec_text(job.spec))
    for file in job.files:
        _field(text, "file", f"{file.name}, {file.bytes} bytes")
    _field(text, "attempts", f"{job.attempts}, {job.tries_done} {'try' if job.tries_done == 1 else 'tries'} done")
    _field(text, "priority", str(job.priority))
    if job.deadline:
        _field(text, "deadline", job.deadline)
    if job.budget_seconds:
        _field(text, "budget", f"{job.spent_seconds:.0f} of {job.budget_seconds:g} s")
    if job.step:
        _field(text, "now", job.step)
    if job.reason:
        _field(text, "reason", job.reason)
    if job.solved_by:
        _field(text, "solved by", job.solved_by)
    for claim in artifact.statement if artifact is not None else ():
        if claim.part != MEANING or job.meaning is None:
            _field(text, claim.standing.value, f"{claim.part} ({claim.by})")
    if job.meaning is not None:
        said = "validated" if job.meaning.verdict == "meant" else "not meant"
        _field(text, said, f"{MEANING} ({job.meaning.person}, {job.meaning.created})")
    if job.artifact:
        _field(text, "artifact", f"{job.artifact}  (assay verify re-checks it)", GOOD)
    for tried in job.tried:
        _field(text, "tried", tried)
    _field(text, "submitted", job.created)
    return text


def spec_text(spec: Spec) -> str:
    """A spec in one line, for a person."""
    match spec.kind:
        case "predicate":
            return f"{spec.predicate}  ({spec.variable} is {spec.domain})"
        case "exact" | "integer" | "expression" | "answer":
            return f"{spec.kind}: {spec.expected}"
        case "smt":
            return f"smt: {spec.question}"
        case "lean" | "program" | "checklist":
            return spec.kind


def _weights(name: str) -> str:
    """A digest is shortened; weights in training are called by cycle and step."""
    return short(name) if len(name) == 64 else name


def _call(text: Text, number: int, call: ToolCall) -> None:
    ran = f" in {call.tier.value}, {1000 * call.seconds:.1f} ms" if call.tier is not None else ""
    text.append(f"call {number}  ", DIM)
    text.append(call.status.value, BAD if call.status.failed else GOOD)
    text.append(f"{ran}\n", DIM)
    _block(text, call.code, "> ")
    if call.output:
        _block(text, call.output, "  ")
    if call.error:
        _block(text, call.error, "  ", BAD)


def _verdict(text: Text, verdict: Verdict) -> None:
    _field(text, "verdict", f"{verdict.reason}  ({verdict.verifier} {verdict.version}, score {percent(verdict.score)})")
    if verdict.evidence:
        _field(text, "evidence", json.dumps(verdict.evidence, ensure_ascii=False, sort_keys=True))


def _field(text: Text, name: str, value: str, style: str = "") -> None:
    text.append_text(plain(f"{name}  ", DIM))
    text.append_text(plain(value, style, limit=MAX_CHARACTERS, lines=True))
    text.append("\n")


def _block(text: Text, content: str, margin: str, style: str = "") -> None:
    """Every line behind a margin, so that no output can pass for the screen's own words."""
    shown = plain(content.rstrip("\n"), limit=MAX_CHARACTERS, lines=True).plain
    for line in shown.split("\n"):
        text.append(f"   {margin}", DIM)
        text.append(f"{line}\n", style)
