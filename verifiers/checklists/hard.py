"""The decider of a checklist's hard part: guards first, then item by item. No model has a say here.

`pass` means that every hard item holds. Soft items are left out; `verifiers.checklists.verifier` adds them. A list
without a hard item, and one that a text with nothing in it would fulfil, is a bad spec.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version as installed
from typing import Any

from verifiers.answers.reading import clipped
from verifiers.checklists.disguise import plain
from verifiers.checklists.finding import Finding
from verifiers.checklists.guards import alarms, as_json
from verifiers.checklists.items import decide_item
from verifiers.checklists.markdown import Document
from verifiers.checklists.numbers import figure
from verifiers.checklists.prose import words
from verifiers.checklists.spec import (
    ChecklistSpec,
    CitationsItem,
    CountItem,
    HardItem,
    JsonItem,
    LengthItem,
    NumbersItem,
    OccurrencesItem,
    PatternItem,
    TableItem,
    WordsItem,
)
from verifiers.checklists.structure import validator
from verifiers.errors import SpecError
from verifiers.verdict import Ground, Outcome, Verdict

MAX_CHARACTERS = 200_000
MAX_DERIVING_FACTS = 60
"""Facts from which pairs are derived: their number grows with the square."""
MAX_EVIDENCE = 18_000
"""Characters of JSON."""
EMPTY_ANSWERS = ("", "I do not know.", "All items of the checklist are fulfilled.", "OK", "null", "{}", "[]")
"""What an agent says that has nothing to say."""
TOOLS = {"jsonschema": installed("jsonschema")}


class HardVerifier:
    name = "checklist"
    version = "3"

    def check(self, spec: ChecklistSpec, *, prove: bool = False) -> None:
        """Raises SpecError for items that cannot decide anything. With `prove`, also for a list that says nothing."""
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
            _check_item(item, spec)
        if prove:
            for text in (*EMPTY_ANSWERS, spec.question):
                if self.verify(spec, text).passed:
                    raise SpecError(
                        f"a text that says nothing fulfils the list: {clipped(text)!r}",
                        hint="Add an item that only a real answer fulfils, such as a length or required words.",
                    )

    def verify(self, spec: ChecklistSpec, submission: str) -> Verdict:
        if len(submission) > MAX_CHARACTERS:
            return self._verdict(Outcome.FAIL, f"longer than {MAX_CHARACTERS} characters", Ground.UNREADABLE, {})
        document = Document(submission, claims="claims" in spec.allowed or as_json(spec, submission))
        structured = any(block.rows or block.kind == "code" for block in document.blocks)
        if not structured and not words(document.prose):
            return self._verdict(Outcome.FAIL, "there is no text", Ground.UNREADABLE, {})
        alarm = next(iter(alarms(spec, document)), None)
        if alarm is not None:
            outcome = Outcome.HACK_SUSPECTED if alarm.suspicious else Outcome.FAIL
            alarmed = {"guard": alarm.guard, **alarm.evidence}
            return self._verdict(outcome, f"the text {alarm.reason}", Ground.FORBIDDEN, alarmed)
        findings = [decide_item(item, document, spec.sources) for item in spec.hard]
        failed = [finding for finding in findings if not finding.holds]
        evidence: dict[str, object] = {"items": bounded(findings)}
        if not failed:
            return self._verdict(Outcome.PASS, f"all {len(findings)} hard items hold", Ground.TESTED, evidence, 1.0)
        what = "; ".join(f"{clipped(finding.name)}: {finding.reason}" for finding in failed[:3])[:600]
        reason = f"{len(failed)} of {len(findings)} hard items do not hold: {what}"
        earned = earned_share(spec.hard, findings) if spec.credit == "items" else 0.0
        return self._verdict(Outcome.FAIL, reason, Ground.REFUTED, evidence, earned)

    def _verdict(
        self, outcome: Outcome, reason: str, ground: Ground, evidence: dict[str, object], score: float = 0.0
    ) -> Verdict:
        return Verdict(
            outcome=outcome,
            score=score,
            reason=reason,
            ground=ground,
            evidence=evidence,
            verifier=self.name,
            version=self.version,
            tools=TOOLS,
            seconds=0.0,
        )


def earned_share(items: tuple[HardItem, ...], findings: list[Finding]) -> float:
    """The weighted mean of the grades."""
    total = sum(item.weight for item in items)
    return sum(item.weight * finding.grade for item, finding in zip(items, findings, strict=True)) / total


def bounded(findings: list[Finding]) -> list[dict[str, Any]]:
    """What is said of the items, within MAX_EVIDENCE: first the evidence goes of those that hold, then all, then
    words."""
    shown = [{**finding.shown(), "name": clipped(finding.name)[:100]} for finding in findings]
    shown = [{**item, "reason": item["reason"][:1_000]} for item in shown]
    if _size(shown) > MAX_EVIDENCE:
        shown = [
            {key: value for key, value in item.items() if key != "evidence" or not item["holds"]} for item in shown
        ]
    if _size(shown) > MAX_EVIDENCE:
        shown = [{key: value for key, value in item.items() if key != "evidence"} for item in shown]
    if _size(shown) > MAX_EVIDENCE:
        most = max(20, MAX_EVIDENCE // len(shown) - 200)
        shown = [{**item, "reason": item["reason"][:most]} for item in shown]
    return shown


def _size(shown: list[dict[str, Any]]) -> int:
    return len(json.dumps(shown))


def _check_item(item: HardItem, spec: ChecklistSpec) -> None:
    match item:
        case CountItem() | OccurrencesItem():
            if item.least is None and item.most is None:
                raise _bad(item, "asks for nothing", "Give it `least`, `most` or both.")
            if item.least is not None and item.most is not None and item.least > item.most:
                raise _bad(item, "asks for more than it allows", "Let `least` be at most `most`.")
        case WordsItem():
            if not (item.required or item.forbidden):
                raise _bad(item, "names no words", "List `required` or `forbidden` words.")
            if any(not words(phrase) for phrase in (*item.required, *item.forbidden)):
                raise _bad(item, "names a word without letters", "Write words, or use a pattern.")
            both = set(map(plain, item.required)) & set(map(plain, item.forbidden))
            if both:
                raise _bad(item, f"requires and forbids {clipped(min(both))!r}", "Take it out of one of the two.")
        case TableItem():
            columns = set(map(plain, item.columns))
            if len(columns) < len(item.columns) or not columns.issuperset(map(plain, item.sums)):
                raise _bad(item, "names a column twice, or adds up one that is not there", "Mend `columns` and `sums`.")
        case JsonItem():
            validator(item.rules)
        case PatternItem():
            try:
                re.compile(item.pattern, re.MULTILINE)
            except (re.error, RecursionError, OverflowError) as error:
                raise _bad(
                    item, f"has a pattern that is none: {error}", "Write it as Python's `re` reads it."
                ) from error
        case CitationsItem():
            if not spec.sources:
                raise _bad(item, "has no sources", "List `sources` with their keys and texts.")
            if item.least > len(spec.sources):
                raise _bad(item, "asks for more sources than there are", "Lower `least` or add sources.")
        case NumbersItem():
            unread = next((text for text in (*item.facts, *item.required) if figure(text) is None), None)
            if unread is not None:
                raise _bad(item, f"has a fact that is not one number: {clipped(unread)!r}", "Write `12.5` or `40%`.")
            if item.derived != "none" and len(item.facts) > MAX_DERIVING_FACTS:
                raise _bad(item, "has too many facts to derive from", f"At most {MAX_DERIVING_FACTS}, or `none`.")
            if not (item.facts or item.required or item.from_sources):
                raise _bad(item, "has no facts", "List `facts`, `required` or set `from_sources`.")
        case LengthItem() if item.tolerance >= 1:
            raise _bad(item, "allows a text of no length", "Choose a tolerance below 1.")
        case _:
            pass


def _bad(item: HardItem, what: str, hint: str) -> SpecError:
    return SpecError(f"the item {clipped(item.name)!r} {what}", hint=hint)
