"""Wording of a bundle check, shared by terminal and page. Pure.

Any text here may come from a model or a stranger: whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from appliance.jobs.report import BundleReport, Sealed
from verifiers.contract.statement import Assurance
from verifiers.contract.verdict import Verdict


@dataclass(frozen=True)
class PartReport:
    """A part of a bundle's statement: its assurance by this check, and in the bundle."""

    part: str
    now: str
    then: str
    by: str
    """Carrier of the part, or the reason why nothing carries it."""

    @property
    def differs(self) -> bool:
        return self.now != self.then

    @property
    def how(self) -> str:
        return self.by if self.now == Assurance.OPEN or not self.by else f"by {self.by}"


def result(report: BundleReport) -> str:
    """Summarises the report of a bundle check in one line."""
    if report.ok:
        if report.seal is None:
            return f"verified, but not sealed: the answer meets the check ({report.mark}); the maker is unknown"
        return f"verified: every byte is intact and the answer meets the check ({report.mark})"
    if report.undecided:
        return "not decided: every byte is intact, and this machine could not run the verifier again"
    return "not verified"


def facts(report: BundleReport) -> Iterator[tuple[str, str]]:
    """Yields the facts about a checked bundle as names and values, the most important first."""
    if report.solved_by:
        yield "solved by", report.solved_by
    if report.verdict_then is not None:
        yield "verdict then", _verdict(report.verdict_then)
    if report.verdict_now is not None:
        yield "verdict now", _verdict(report.verdict_now)
    made = report.made_with
    if made:
        yield "made with", ", ".join(_made(made))
    if report.seal is not None:
        yield "sealed", f"at {report.seal.made_at} with {report.seal.key}, {_whose(report.seal)}"
    elif report.verdict_now is not None:
        yield "sealed", "no: anyone who had it may have rewritten it"
    came = [file for file in report.files if file.name.startswith("files/")]
    if came:
        yield "files", ", ".join(file.name.removeprefix("files/") for file in came)
    yield "form", f"one {report.form}" if report.form == "file" else f"a folder of {len(report.files)} files"
    if report.manifest:
        yield "manifest", report.manifest


def parts(report: BundleReport) -> list[PartReport]:
    """Compares the assurance of each part of a bundle's statement with what this check established."""
    there = {claim.part: claim.standing.value for claim in report.statement_then}
    found = []
    for claim in report.statement_now:
        now = claim.standing.value
        stated = there.pop(claim.part, "nothing" if report.statement_then else now)
        found.append(PartReport(claim.part, now, stated, claim.by))
    return found + [PartReport(part, "not a part here", stated, "") for part, stated in there.items()]


def lineage(report: BundleReport) -> Iterator[tuple[str, str]]:
    """Yields what a bundle's maker states about its tools, model and environment, by dotted name."""
    made = dict(report.made_with)
    where = made.get("environment")
    if isinstance(where, dict) and isinstance(where.get("packages"), dict):
        made["environment"] = {**where, "packages": f"{len(where['packages'])}, in versions.json"}
    yield from _flat("", made)


def _flat(before: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name in sorted(value):
            yield from _flat(f"{before}.{name}" if before else str(name), value[name])
    elif value is not None and value != "":
        yield before, str(value)


def _whose(seal: Sealed) -> str:
    if seal.own:
        return "this machine's own key"
    return "the key that was given" if seal.known else "a key that was not given"


def _verdict(verdict: Verdict) -> str:
    ground = f" ({verdict.ground.value})" if verdict.ground is not None else ""
    where = f", run in {_place(verdict.isolation)}" if verdict.isolation else ""
    return f"{verdict.outcome.value}{ground}, {verdict.reason}; {verdict.verifier} {verdict.version}{where}"


def _place(isolation: str) -> str:
    return "a process that confined itself" if isolation == "process" else isolation


def _made(made: dict[str, Any]) -> Iterator[str]:
    for name in ("assay", "python", "sandbox"):
        if made.get(name):
            yield f"{name} {made[name]}"
    weights = made.get("weights")
    model = weights.get("manifest") if isinstance(weights, dict) else weights
    yield f"model {str(model)[:12]}" if model else "no model"
    if made.get("policy"):
        yield f"policy {str(made['policy'])[:12]}"
