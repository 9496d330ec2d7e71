"""Decides the hard part of a checklist: readability, then guards, then each item. No model takes part.

`pass` means that every hard item holds. Soft items are left out; `verifiers.checklists.verifier` adds them. A list
without a hard item, or one that an empty text would fulfil, is a bad spec.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version as installed
from typing import Any

from verifiers.checklists.document import Document
from verifiers.checklists.finding import MAX_LISTED, ItemFinding
from verifiers.checklists.guards import alarms, is_data
from verifiers.checklists.items import decide_item
from verifiers.checklists.kind import CHECKLIST
from verifiers.checklists.spec import ChecklistSpec, HardItem
from verifiers.checklists.words.prose import words
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Judgement, Verdict

MAX_CHARACTERS = 200_000
MAX_EVIDENCE = 18_000
"""Maximum length of the evidence, in characters of JSON."""
EMPTY_ANSWERS = ("", "I do not know.", "All items of the checklist are fulfilled.", "OK", "null", "{}", "[]")
"""Answers without content."""
TOOLS = {
    name: installed(name) for name in ("jsonschema-rs", "markdown-it-py", "mdit-py-plugins", "regress", "sentencex")
}


class HardVerifier:
    name = CHECKLIST.name
    version = CHECKLIST.version

    def check(self, spec: ChecklistSpec, *, prove: bool = False) -> None:
        """Raises SpecError for checklist items that cannot decide anything. With `prove`, also for a list that an empty
        answer fulfils."""
        if not spec.hard:
            raise SpecError(
                "a checklist needs a hard item: a judge alone decides nothing",
                hint="Add what code can check: a length, words, numbers, a structure.",
            )
        names = [item.name for item in spec.items]
        if len(set(names)) < len(names):
            raise SpecError("two items have the same name", hint="Give each item a name of its own.")
        keys = [source.key for source in spec.sources]
        if len(set(keys)) < len(keys):
            raise SpecError("two sources have the same key", hint="Give each source a key of its own.")
        for item in spec.hard:
            for what, hint in item.faults(spec.sources):
                raise SpecError(f"the item {escaped(item.name)!r} {what}", hint=hint)
        if prove:
            for text in (*EMPTY_ANSWERS, spec.question):
                if self.verify(spec, text).passed:
                    raise SpecError(
                        f"a text without content fulfils the list: {escaped(text)!r}",
                        hint="Add an item that only a real answer fulfils, such as a length or required words.",
                    )

    def verify(self, spec: ChecklistSpec, submission: str) -> Verdict:
        if len(submission) > MAX_CHARACTERS:
            return self._verdict(Ground.UNREADABLE, f"longer than {MAX_CHARACTERS} characters", {})
        data = is_data(spec, submission)
        document = Document(submission, claims=data or "claims" in spec.allows, data=data)
        faults = [fault for fault in document.faults if fault.ground not in spec.allows]
        if faults:
            more = f", and {len(faults) - 1} more places" if len(faults) > 1 else ""
            listing: dict[str, object] = {"unreadable": [asdict(fault) for fault in faults[:MAX_LISTED]]}
            return self._verdict(Ground.UNREADABLE, f"cannot be read at {faults[0]}{more}", listing)
        structured = any(block.rows or block.kind == "code" for block in document.blocks)
        if not structured and not words(document.prose):
            return self._verdict(Ground.UNREADABLE, "the text is empty", {})
        alarm = next(alarms(spec, document), None)
        if alarm is not None:
            alarmed = {"guard": alarm.guard, **alarm.evidence}
            return self._verdict(Ground.FORBIDDEN, f"the text {alarm.reason}", alarmed)
        findings = [decide_item(item, document, spec.sources) for item in spec.hard]
        failed = [finding for finding in findings if not finding.holds]
        evidence: dict[str, object] = {"items": bounded(findings)}
        if not failed:
            return self._verdict(Ground.TESTED, f"all {len(findings)} hard items hold", evidence, 1.0)
        what = "; ".join(f"{escaped(finding.name)}: {finding.reason}" for finding in failed[:3])[:600]
        reason = f"{len(failed)} of {len(findings)} hard items do not hold: {what}"
        earned = earned_share(spec.hard, findings) if spec.credit == "items" else 0.0
        return self._verdict(Ground.REFUTED, reason, evidence, earned)

    def _verdict(self, ground: Ground, reason: str, evidence: dict[str, object], score: float = 0.0) -> Verdict:
        return Judgement(ground, reason, evidence).verdict(self.name, self.version, score=score, tools=TOOLS)


def earned_share(items: tuple[HardItem, ...], findings: list[ItemFinding]) -> float:
    """Returns the mean grade of a checklist's findings, weighted by item."""
    total = sum(item.weight for item in items)
    return sum(item.weight * finding.grade for item, finding in zip(items, findings, strict=True)) / total


def bounded(findings: list[ItemFinding]) -> list[dict[str, Any]]:
    """Returns a checklist's findings as evidence within MAX_EVIDENCE. Drops first the evidence of items that hold, then
    all evidence, then truncates reasons."""
    shown = [
        {**finding.shown(), "name": escaped(finding.name)[:100], "reason": finding.reason[:1_000]}
        for finding in findings
    ]
    for spared in (False, None):
        if len(json.dumps(shown)) > MAX_EVIDENCE:
            shown = [{key: item[key] for key in item if key != "evidence" or item["holds"] is spared} for item in shown]
    if len(json.dumps(shown)) > MAX_EVIDENCE:
        most = max(20, MAX_EVIDENCE // len(shown) - 200)
        shown = [{**item, "reason": item["reason"][:most]} for item in shown]
    return shown
