"""Prints verdicts, results of pairs, and progress.

Invariants: text influenced by a submission or spec is shown with visible control characters, or as ASCII JSON. Progress
goes to a terminal only and never shares a stream with results.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import typer
from pydantic import Field

from appliance.cli.show.printing import Output, show_line, show_progress
from appliance.errors import ExitCode
from appliance.text.printable import printable
from common.counting import counted
from runtime.model import FrozenModel
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict

REASON = 2_000
"""Characters of a reason shown to a person; JSON has all."""
EVIDENCE = 30_000
TICK = 0.2

BAD_SPEC = "bad_spec"
COLOURS = {
    Outcome.PASS: typer.colors.GREEN,
    Outcome.FAIL: typer.colors.RED,
    Outcome.HACK_SUSPECTED: typer.colors.MAGENTA,
    Outcome.INFRA_ERROR: typer.colors.YELLOW,
}


class PairsSummary(FrozenModel):
    """Totals of a run over a file of pairs whose results are in another file."""

    pairs: int
    passed: int = Field(serialization_alias="pass")
    fail: int
    hack_suspected: int
    infra_error: int
    bad_spec: int
    checked_now: int
    seconds: float
    out: str


class PairResult(FrozenModel):
    """Result of one checked pair. The last fields are there with --evidence only."""

    id: str | int
    outcome: Literal[Outcome.PASS, Outcome.FAIL, Outcome.HACK_SUSPECTED, Outcome.INFRA_ERROR, "bad_spec"]
    reason: str
    seconds: float
    hint: str | None = None
    score: float | None = None
    ground: Ground | None = None
    evidence: dict[str, Any] | None = None
    verifier: str | None = None
    version: str | None = None
    tools: dict[str, str] | None = None
    isolation: str | None = None


def result_of(name: str | int, verdict: Verdict | SpecProblem, *, evidence: bool) -> dict[str, Any]:
    """Builds the result line of one checked pair as JSON fields; with `evidence`, also the verdict's evidence."""
    if isinstance(verdict, SpecProblem):
        line = {"id": name, "outcome": BAD_SPEC, "reason": verdict.reason, "seconds": 0.0}
        return line | ({"hint": verdict.hint} if evidence else {})
    line = {
        "id": name,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "seconds": round(verdict.seconds, 6),
    }
    if evidence:
        line |= verdict.model_dump(mode="json", exclude={"outcome", "reason", "seconds"})
    return line


def show_results(lines: Sequence[dict[str, Any]]) -> None:
    """Prints results as ASCII JSON lines, so that no text in them can control a terminal."""
    sys.stdout.write("".join(f"{json.dumps(line)}\n" for line in lines))
    sys.stdout.flush()


def show_verdict(verdict: Verdict, *, evidence: bool) -> None:
    typer.echo(typer.style(verdict.outcome.value, fg=COLOURS[verdict.outcome]), nl=False)
    ground = f" ({verdict.ground.value})" if verdict.ground else ""
    show_line(f"{ground}  {printable(verdict.reason, limit=REASON)}", indent=2, used=len(verdict.outcome.value))
    tools = ", ".join(f"{name} {version}" for name, version in verdict.tools.items())
    by = ", ".join(filter(None, (f"{verdict.verifier} {verdict.version}", tools, verdict.isolation)))
    score = "" if verdict.score in (0.0, 1.0) else f"  score {verdict.score:.3f}"
    show_line(f"  {by}, {verdict.seconds:.3f} s{score}")
    hint = verdict.evidence.get("hint")
    if verdict.outcome is Outcome.INFRA_ERROR and isinstance(hint, str):
        show_line(f"  {printable(hint, limit=REASON)}", indent=2)
    if evidence:
        text = json.dumps(verdict.evidence, indent=2, ensure_ascii=True)
        for line in printable(text, limit=EVIDENCE, lines=True).splitlines():
            typer.echo(f"  {line}")


def summary_of(
    counts: Counter[str], before: int, seconds: float, out: Path | None, code: ExitCode
) -> Output[PairsSummary | None]:
    """Returns how many pairs of a file passed and failed. Printed on standard error unless the results are in a
    file."""
    checked = counts.total() - before
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    rate = f"{checked} checked in {seconds:.1f} s" if checked else "nothing left to check"
    line = printable(f"{counted(counts.total(), 'pair')}: {listed}; {rate}")
    if out is None:
        typer.echo(line, err=True)
        return Output(None, code=code)
    summary = PairsSummary(
        pairs=counts.total(),
        passed=counts[Outcome.PASS.value],
        fail=counts[Outcome.FAIL.value],
        hack_suspected=counts[Outcome.HACK_SUSPECTED.value],
        infra_error=counts[Outcome.INFRA_ERROR.value],
        bad_spec=counts[BAD_SPEC],
        checked_now=checked,
        seconds=round(seconds, 3),
        out=str(out),
    )
    return Output(summary, lambda: typer.echo(line), code)


class CheckProgress:
    """A progress line of checked pairs on standard error, redrawn in place on a terminal."""

    def __init__(self, count: int, before: int) -> None:
        self._count, self._before = count, before
        self._started = self._shown = time.monotonic()

    def show(self, counts: Counter[str]) -> None:
        now = time.monotonic()
        if now - self._shown < TICK:
            return
        self._shown = now
        done = counts.total()
        rate = (done - self._before) / (now - self._started)
        listed = "  ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
        left = (self._count - done) / rate if rate else 0.0
        show_progress(f"{done} of {self._count}  {listed}  {rate:.0f}/s  {left:.0f} s left")
