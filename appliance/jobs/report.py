"""Result of a bundle check: records for display, their wording for terminal and page, and one self-contained HTML file.

Any text here may come from a model or a stranger. Escape it before showing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from appliance.jobs.layout import TranscriptEntry
from appliance.jobs.reading import CheckedFile
from appliance.records.record import Record
from appliance.text.html_page import SHOWN, document, section, shown_text, table
from verifiers.contract.statement import Assurance, StatementPart
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec


class Sealed(Record):
    """Content of a bundle's seal whose signature is valid for exactly these bytes."""

    key: str
    """Fingerprint of the sealing key."""
    known: bool
    """True if it is the key that was given."""
    own: bool = False
    """True if it is this machine's key. If neither, anybody may have sealed the bundle."""
    made_at: str
    solved_by: str
    model: str
    policy: str
    environment: str


class NotChecked(Record):
    """A part of the bundle on which no pass rests."""

    what: str
    why: str


class BundleReport(Record):
    """Result of a bundle check. `ok` only if every byte is intact and the answer was verified again."""

    ok: bool
    form: Literal["folder", "file"] = "folder"
    manifest: str | None
    """SHA-256 of the manifest file; None if it is unreadable."""
    files: tuple[CheckedFile, ...]
    seal: Sealed | None = None
    """None if missing or invalid; `reasons` names an invalid one."""
    answer: str | None = None
    question: str | None = None
    spec: Spec | None = None
    solved_by: str = ""
    verdict_then: Verdict | None = None
    verdict_now: Verdict | None = None
    statement_then: tuple[StatementPart, ...] = ()
    """The bundle's own statement."""
    statement_now: tuple[StatementPart, ...] = ()
    """Statement that follows from this machine's verdict and the validations checked here."""
    mark: str = ""
    """Mark of `statement_now`."""
    made_with: dict[str, Any] = Field(default={})
    """Versions and lineage as stated by the maker."""
    transcript: tuple[TranscriptEntry, ...] = Field(default=(), exclude=True)
    """Transcript for the page; excluded from the JSON, which is about the check."""
    nodes: int = 0
    """Number of nodes in the transcript."""
    calls: int = 0
    """Number of tool calls in the transcript."""
    reasons: tuple[str, ...]
    """Reasons why the report is not ok; empty if it is."""
    not_checked: tuple[NotChecked, ...] = ()
    missing: str = ""
    """Plug-in that this machine lacks to decide the check; empty if none."""
    notes: tuple[str, ...] = ()
    """Notes of the checking machinery."""

    @property
    def undecided(self) -> bool:
        """True if an intact bundle has no new verdict only because of this machine: an infrastructure error, or a
        plug-in that it lacks."""
        broken = self.verdict_now is not None and self.verdict_now.outcome is Outcome.INFRA_ERROR
        return (broken or bool(self.missing)) and len(self.reasons) == 1


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


def page(report: BundleReport) -> str:
    """Renders the report of a bundle check as an HTML page. All text in it is hostile and escaped."""
    title = "verified" if report.ok else "not decided" if report.undecided else "not verified"
    parts = [
        f'<h1 class="{"good" if report.ok else "bad"}">{title}</h1><p>{shown_text(result(report))}</p>',
        section("Why not", table([], [[reason] for reason in report.reasons])) if report.reasons else "",
        section("Question", _block(report.question)),
        section("Answer", _block(report.answer)),
        section("Check", _block(_json(report.spec.model_dump(mode="json")))) if report.spec is not None else "",
        section("What it says, and what carries it", _statement(report)) if report.statement_now else "",
        section("Not checked here", _pairs((one.what, one.why) for one in report.not_checked))
        if report.not_checked
        else "",
        section("Facts", _pairs(facts(report))),
        section("Evidence", _evidence(report.verdict_now or report.verdict_then)),
        section("Made with (stated by the maker)", _pairs(lineage(report))) if report.made_with else "",
        section("Transcript", _transcript(report)) if report.transcript else "",
        section("Files", table(["file", "", ""], [[f.name, f.state.value, f.detail] for f in report.files])),
        section("Notes", table([], [[note] for note in report.notes])) if report.notes else "",
    ]
    note = "This page only shows a check: run <code>assay verify</code> on the bundle itself."
    return document(title, "".join(parts), note)


def _statement(report: BundleReport) -> str:
    rows = [[one.now + (f" (it says: {one.then})" if one.differs else ""), one.part, one.by] for one in parts(report)]
    return table(["assurance", "part", "by, or why not"], rows)


def _transcript(report: BundleReport) -> str:
    """Renders a bundle's transcript as a collapsed part of the page, since it is long and proves nothing."""
    shown: list[str] = []
    room = SHOWN
    for entry in report.transcript:
        text = entry.text if entry.call is None else f"{entry.call.asked}\n-- {entry.call.status.value}\n{entry.text}"
        if len(text) > room:
            shown.append(f"<p>... {len(report.transcript) - len(shown)} more parts are in the bundle</p>")
            break
        room -= len(text)
        shown.append(f'<p class="quiet">{entry.role.value}</p>{_block(text)}')
    return f"<details><summary>{report.nodes} parts, {report.calls} tool calls</summary>{''.join(shown)}</details>"


def _evidence(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<p>none</p>"
    tools = ", ".join(f"{name} {version}" for name, version in verdict.tools.items())
    shown = _pairs([("tools", tools)]) if tools else ""
    if verdict.evidence:
        shown += _block(_json(verdict.evidence))
    return shown or "<p>none</p>"


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def _block(text: str | None) -> str:
    return "<p>(not readable)</p>" if text is None else f"<pre>{shown_text(text)}</pre>"


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    return table([], [list(row) for row in rows])
