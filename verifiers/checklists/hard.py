"""Decides the hard part of a checklist: readability, then guards, then each item. No model takes part.

`pass` means that every hard item holds. Soft items are left out; `verifiers.checklists.verifier` adds them. A list
without a hard item, or one that an empty text would fulfil, is a bad spec.

Guards against texts that no honest author writes: keyword stuffing, repetition, a copy of the task.

Guards run before the items, and a text that a guard refuses has no item fulfilled, so stuffing or copying gains
nothing. A spec may switch a guard off if its subject requires that.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version as installed
from typing import Any

from verifiers.checklists import spec as item_types
from verifiers.checklists.document import MAX_LISTED, Document, ItemFinding
from verifiers.checklists.items import decide_item
from verifiers.checklists.kind import CHECKLIST
from verifiers.checklists.markdown import PROSE
from verifiers.checklists.spec import ChecklistSpec, Guard, HardItem
from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.prose import LITTLE_WORDS, language_of, sentences, words
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Judgement, Verdict

SHINGLE = 5
"""Consecutive words that count as copied."""
MAX_COPIED = 0.5
"""Maximum share of a text's word runs copied from the question and the list."""
MAX_REPEATED = 0.35
"""Maximum share of sentences that repeat an earlier one, from six sentences on."""
MAX_REPEATED_OF_FEW = 0.5
"""Maximum share of repeated sentences, from four sentences on."""
MAX_COMPRESSION = 8.0
"""Maximum zlib compression ratio from a thousand characters on; honest prose stays below 4."""
MAX_ONE_WORD = 0.2
"""Maximum share of one long word, from fifty words on."""
LISTED = 12
"""Words in a row, without punctuation or function words, that count as a list if keywords are among them."""
MAX_KEYWORDS = 0.75
"""Maximum share of keywords in a sentence with at least four different ones."""


MARKS = re.compile(r"[^\w\s'’-]")
LITTLE = frozenset(" ".join(LITTLE_WORDS.values()).split())


@dataclass(frozen=True)
class Alarm:
    guard: Guard
    reason: str
    evidence: dict[str, object]


def alarms(spec: ChecklistSpec, document: Document) -> Iterator[Alarm]:
    """Yields alarms about a text that copies the question, repeats itself or stuffs keywords. Alarms that the checklist
    allows are left out."""
    found = [_copy(spec, document)]
    if not document.data:
        found += [_repetition(document), _stuffing(spec, document)]
    return (alarm for alarm in found if alarm is not None and alarm.guard not in spec.allows)


def is_data(spec: ChecklistSpec, text: str) -> bool:
    """True if a checklist requires JSON and the text begins like JSON, so that checks of prose do not apply."""
    whole = any(
        (isinstance(item, item_types.FormatItem) and item.format == "json")
        or (isinstance(item, item_types.JsonItem) and item.within == "whole")
        for item in spec.hard
    )
    return whole and text.lstrip()[:1] in ("{", "[", '"')


def keywords(spec: ChecklistSpec) -> tuple[str, ...]:
    """Returns the phrases that the code-checked items of a checklist require, normalised for comparison."""
    return tuple(dict.fromkeys(plain(phrase) for item in spec.hard for phrase in item.wanted))


def _repetition(document: Document) -> Alarm | None:
    lines = [sentence for block in document.of("paragraph", "note") for sentence in sentences(block.text)]
    lines += [block.text for block in document.of("item")]
    lines = [" ".join(said) for sentence in lines if len(said := words(plain(sentence))) >= 3]
    again = "repeats itself"
    most = MAX_REPEATED if len(lines) >= 6 else MAX_REPEATED_OF_FEW
    if len(lines) >= 4 and len(lines) - len(set(lines)) > most * len(lines):
        return Alarm("repetition", again, {"repeated_share": round(1 - len(set(lines)) / len(lines), 3)})
    raw = document.prose.encode("utf-8", "replace")
    ratio = len(raw) / max(1, len(zlib.compress(raw, 6)))
    if len(raw) >= 1000 and ratio > MAX_COMPRESSION:
        return Alarm("repetition", again, {"compression": round(ratio, 2)})
    counted = Counter(word.casefold() for word in words(document.prose))
    for word, times in counted.most_common()[:5]:
        if len(word) >= 4 and counted.total() >= 50 and times > MAX_ONE_WORD * counted.total():
            return Alarm("repetition", "repeats one word too often", {"word": escaped(word), "times": times})
    return None


def _stuffing(spec: ChecklistSpec, document: Document) -> Alarm | None:
    """Returns an alarm if a text strings keywords together; else None. That is a sentence mostly of keywords, a long
    run of words with keywords but without function words, or a text mostly of keywords."""
    wanted = keywords(spec)
    single = {word for phrase in wanted for word in words(phrase)}
    blocks = document.of(*PROSE)
    for sentence in (one for block in blocks if len(wanted) >= 4 for one in sentences(block.text)):
        tokens = words(plain(sentence))
        keys = [word for word in tokens if word in single]
        if len(set(keys)) >= 4 and len(keys) > MAX_KEYWORDS * len(tokens):
            evidence = {"sentence": escaped(sentence), "keywords": len(keys), "words": len(tokens)}
            return Alarm("stuffing", "strings keywords together without a sentence", evidence)
    known = language_of(document.everything) in LITTLE_WORDS
    for run in (one for block in blocks for one in _runs_of_words(block.text, known)):
        tokens = words(plain(run))
        if len(tokens) >= LISTED and LITTLE.isdisjoint(tokens) and len(single & set(tokens)) >= 2:
            evidence = {"sentence": escaped(run), "words": len(tokens)}
            return Alarm("stuffing", "strings words together without a sentence", evidence)
    tokens = words(plain("\n".join(block.text for block in blocks)))
    keys = [word for word in tokens if word in single and len(word) > 3]
    if len(keys) >= 8 and len(keys) > 0.5 * len(tokens):
        return Alarm("stuffing", "consists mostly of keywords", {"keywords": len(keys), "words": len(tokens)})
    return None


def _runs_of_words(text: str, known: bool) -> list[str]:
    """Splits a text at punctuation. If its language's function words are not `known`, returns nothing for a text with
    punctuation."""
    runs = MARKS.split(text)
    return runs if known or len(runs) == 1 else []


def _copy(spec: ChecklistSpec, document: Document) -> Alarm | None:
    """Returns an alarm if a text is the question, or mostly copies the question and the checklist; else None."""
    if spec.question and plain(document.raw) == plain(spec.question):
        return Alarm("copy", "is the question itself", {})
    runs, given = _runs(words(plain(document.shown))), _given(spec)
    share = sum(run in given for run in runs) / len(runs) if runs else 0.0
    if share > MAX_COPIED:
        return Alarm("copy", "copies the question or the list", {"copied_share": round(share, 3)})
    return None


def _runs(tokens: list[str]) -> list[tuple[str, ...]]:
    return [tuple(tokens[at : at + SHINGLE]) for at in range(len(tokens) - SHINGLE + 1)]


@lru_cache(maxsize=64)
def _given(spec: ChecklistSpec) -> frozenset[tuple[str, ...]]:
    texts = [spec.question, *(item.name for item in spec.items)]
    texts += [item.point for item in spec.items if isinstance(item, item_types.SoftItem)]
    return frozenset(run for text in texts for run in _runs(words(plain(text))))


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
        """Raises SpecError for a checklist whose items cannot decide anything or conflict. With `prove`, also if an
        empty answer would meet it."""
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
        document = Document(
            submission, claims=data or "claims" in spec.allows, data=data, repeats="repetition" in spec.allows
        )
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
    """Returns the mean grade over a checklist's items, weighted by each item's weight."""
    total = sum(item.weight for item in items)
    return sum(item.weight * finding.grade for item, finding in zip(items, findings, strict=True)) / total


def bounded(findings: list[ItemFinding]) -> list[dict[str, Any]]:
    """Returns a checklist's findings as evidence of limited size. Drops first the evidence of items that are met, then
    all evidence, then shortens reasons."""
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
