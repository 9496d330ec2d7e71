"""Soundness of a checklist as a reward: it can be met, is not met by idle texts, and has no redundant item.

Invariants: every claim rests on texts that the verifier itself decided, in its worker. A list is sound if
- a text meets all of it: the given one, or one built from the items;
- no idle text passes: an empty text, a refusal, the instruction copied, the keywords repeated up to the length, the
  list's own sentences, a claim of success for each item;
- no item implies another: for any two items some text meets the one and misses the other. If none is found the list
  is rejected, although one may exist: unproved does not count.

Soundness does not mean that a text built from the items is worth reading. Guards are off while items are compared,
because only the items matter there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice, permutations

from pydantic import BaseModel, ConfigDict

from runtime.errors import InfrastructureError
from verifiers.boxes.conductor import ConductorParts
from verifiers.checklists import spec as s
from verifiers.checklists.examples import OTHER, made, missing, sentences
from verifiers.checklists.hard import EMPTY_ANSWERS
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Outcome, Verdict

MOST_ITEMS = 24
"""Maximum hard items of a list to assess: pairs grow with the square."""
MOST_CUTS = 12
"""Maximum number of blocks omitted from a text, one at a time."""
MOST_STUFFED = 1_000
"""Words of the text that consists of keywords only."""
GUARDS_OFF: tuple[s.Guard, ...] = ("repetition", "stuffing", "copy")
Decided = Callable[[s.ChecklistSpec, str], Verdict]


class ListAssessment(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    sound: bool
    """True if the list may become a reward."""
    reason: str
    met: bool
    """True if a text that meets the whole list is known."""
    trivial: tuple[str, ...]
    """Idle texts that pass."""
    implied: tuple[tuple[str, str], ...]
    """Pairs of item names: no text was found that meets the first and misses the second."""
    alone: int
    """Number of items that some text misses while it meets all others."""
    texts: int
    """Number of texts decided."""
    seconds: float

    def lines(self) -> list[str]:
        """Renders the findings about a checklist as lines for people."""
        counted = f"{self.texts} texts decided; {self.alone} items can be missed alone, {self.seconds:.1f} s"
        nothing = [f"passes without doing any work: {what}" for what in self.trivial]
        implied = [f"{a} may imply {b}: no text was found that meets it and misses {b}" for a, b in self.implied]
        return [counted, *nothing, *implied]


def assess(parts: ConductorParts, spec: s.ChecklistSpec, right: str = "", *, seconds: float = 120.0) -> ListAssessment:
    """Assesses a checklist: sound if a text meets it, trivial texts fail, and no item implies another. `right` is a
    text that meets it; by default one is built from the items. Raises SpecError for a list that cannot decide or that
    `right` does not meet; InfrastructureError if no verdict can be reached."""
    worker = parts.service()
    end = time.monotonic() + seconds

    def decided(asked: s.ChecklistSpec, text: str) -> Verdict:
        if time.monotonic() > end:
            raise InfrastructureError(f"{seconds:g} seconds were not enough for this list", hint="raise --seconds")
        verdict = worker.verify(asked, text, 10.0)
        if verdict.outcome is Outcome.INFRA_ERROR:
            raise InfrastructureError(f"the list cannot be decided here: {verdict.reason}")
        return verdict

    return assessed(spec, right, decided)


def assessed(spec: s.ChecklistSpec, right: str, decided: Decided) -> ListAssessment:
    """Assesses a checklist's soundness, with verdicts from the function `decided`; see `assess`."""
    started = time.monotonic()
    if len(spec.hard) > MOST_ITEMS:
        raise SpecError(f"{len(spec.hard)} hard items are too many to assess", hint=f"Keep to {MOST_ITEMS}.")
    first = decided(spec, right or made(spec))
    if first.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"the list cannot be decided here: {first.reason}")
    if right and not first.passed:
        raise SpecError(
            f"the text that should meet the list does not: {first.reason}", hint="Correct the text or the item."
        )
    trivial = tuple(what for what, text in idle(spec) if decided(spec, text).passed)
    plain = spec.model_copy(update={"allowed": GUARDS_OFF, "question": "", "items": spec.hard, "credit": "none"})
    rows = [row for text in witnesses(spec, right) if (row := _held(decided(plain, text)))]
    names = [escaped(item.name) for item in spec.hard]
    implied = tuple(
        (names[one], names[other])
        for one, other in permutations(range(len(names)), 2)
        if not any(row[one] and not row[other] for row in rows)
    )
    alone = sum(any(not row[at] and sum(row) == len(row) - 1 for row in rows) for at in range(len(names)))
    return ListAssessment(
        sound=first.passed and not trivial and not implied,
        reason=_reason(first, trivial, implied, len(names)),
        met=first.passed,
        trivial=trivial,
        implied=implied,
        alone=alone,
        texts=len(rows),
        seconds=round(time.monotonic() - started, 3),
    )


def idle(spec: s.ChecklistSpec) -> Iterator[tuple[str, str]]:
    """Yields answers that do no work, such as a copy of the instruction, each as description and text."""
    yield from ((f"{text!r}", text) for text in EMPTY_ANSWERS)
    if spec.question:
        yield "the instruction, copied", spec.question
        yield "the instruction, announced", f"Here is the text that was asked for.\n\n{spec.question}"
    phrases = [phrase for item in spec.hard for phrase in item.wanted]
    length = min(_length(spec), MOST_STUFFED)
    if phrases:
        yield "the keywords in a row", ", ".join(phrases)
        yield "the keywords repeated", " ".join(islice(cycle(phrases), max(length, len(phrases))))
        yield "the keywords, a sentence each", " ".join(f"{phrase.capitalize()}." for phrase in phrases)
    said = [line for item in spec.items for line in item.lines()]
    yield "the list itself", "\n".join(said)
    yield "a claim for each item", " ".join(f"This text meets all requirements: {line}." for line in said)


def witnesses(spec: s.ChecklistSpec, right: str) -> Iterator[str]:
    """Yields texts that may show a checklist's items to be independent: meeting all, missing each one, or built from
    some."""
    whole = right or made(spec)
    yield whole
    yield OTHER
    yield from cuts(whole)
    for at, item in enumerate(spec.hard):
        if (other := missing(item, whole)) is not None:
            yield other
            if other.startswith(whole):
                yield inserted(whole, other.removeprefix(whole).strip())
        rest = (*spec.hard[:at], *spec.hard[at + 1 :])
        for some in ((item,), rest):
            if some:
                yield made(spec.model_copy(update={"items": some}))


def cuts(text: str) -> Iterator[str]:
    """Yields variants of a text with one block left out, or with its middle replaced by other text."""
    blocks = text.split("\n\n")
    if len(blocks) < 3:
        return
    for at in range(min(len(blocks), MOST_CUTS)):
        yield "\n\n".join(blocks[:at] + blocks[at + 1 :])
    for middle in (OTHER, " ".join(islice(sentences(), 40))):
        yield "\n\n".join([blocks[0], middle, *blocks[-2:]])


def inserted(text: str, more: str) -> str:
    """Appends a text to a paragraph in the middle of another text."""
    blocks = text.split("\n\n")
    prose = [at for at, block in enumerate(blocks) if not block.startswith(("#", "-", "|", "```"))]
    at = prose[len(prose) // 2] if prose else 0
    return "\n\n".join([*blocks[:at], f"{blocks[at]} {more}", *blocks[at + 1 :]])


def _held(verdict: Verdict) -> list[bool]:
    """Returns True or False for each code-checked item of a verdict: met or not. Empty for an unreadable text. Raises
    InfrastructureError if nothing was decided."""
    if verdict.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"a text of the assessment was not decided: {verdict.reason}")
    found = verdict.evidence.get("items")
    return [bool(one["holds"]) for one in found] if isinstance(found, list) else []


def _length(spec: s.ChecklistSpec) -> int:
    """Returns the largest number of words that a checklist asks for, at least 60."""
    targets = [item.target for item in spec.hard if isinstance(item, s.LengthItem) and item.unit == "words"]
    least = [item.least or 0 for item in spec.hard if isinstance(item, s.CountItem) and item.of == "words"]
    return max([*targets, *least, 60])


def _reason(first: Verdict, trivial: Sequence[str], implied: Sequence[tuple[str, str]], count: int) -> str:
    if not first.passed:
        return f"no text that meets the list could be built ({first.reason}): give one as --submission"
    if trivial:
        return f"an idle text passes: {trivial[0]}"
    if implied:
        return f"{implied[0][0]!r} may imply {implied[0][1]!r}: change or leave out one of them"
    return f"a text meets the list, no idle text does, and none of its {count} hard items follows from another"
