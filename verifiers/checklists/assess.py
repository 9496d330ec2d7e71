"""Whether a checklist can be used as a reward: it can be met, it is not met for nothing, no item is there twice.

What always holds: everything is shown by texts that the verifier itself decided, in its worker. A list is sound when

- a text meets all of it: the one that is given, or one that is put together from the items;
- no text that does no work passes: nothing, a refusal, the instruction handed back, the keywords strung together up to
  the length, the list's own sentences, a claim of success for each item;
- no item follows from another: for any two of them there is a text that meets the one and not the other. Where none
  was found the list is refused, although one may exist: what is not shown does not count.

That a text put together from the items is worth reading no list decides. Guards are off while items are compared: what
is asked there is what an item says, not whether a text is honest.
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
"""Hard items of a list that is assessed: pairs grow with the square."""
MOST_CUTS = 12
"""Blocks of a text that are left out, one at a time."""
MOST_STUFFED = 1_000
"""Words of the text that is nothing but keywords."""
GUARDS_OFF: tuple[s.Guard, ...] = ("repetition", "stuffing", "copy")
Decided = Callable[[s.ChecklistSpec, str], Verdict]


class ListAssessment(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    sound: bool
    """Whether the list may become a reward."""
    reason: str
    met: bool
    """Whether a text that meets all of it is known."""
    trivial: tuple[str, ...]
    """Texts that do no work, and pass."""
    implied: tuple[tuple[str, str], ...]
    """Pairs of names: no text was found that meets the first and misses the second."""
    alone: int
    """Items for which a text was found that misses them and meets all others."""
    texts: int
    """Texts that were decided."""
    seconds: float

    def lines(self) -> list[str]:
        """What was found, for a person."""
        counted = f"{self.texts} texts decided; {self.alone} items missed alone by one of them, {self.seconds:.1f} s"
        nothing = [f"passes and does no work: {what}" for what in self.trivial]
        implied = [f"{a} may imply {b}: no text was found that meets it and misses {b}" for a, b in self.implied]
        return [counted, *nothing, *implied]


def assess(parts: ConductorParts, spec: s.ChecklistSpec, right: str = "", *, seconds: float = 120.0) -> ListAssessment:
    """`right`: a text that meets the list, where it should not be made from the items. Raises SpecError for a list that
    cannot decide, or that `right` does not meet; InfrastructureError where nothing can be decided here."""
    worker = parts.service()
    end = time.monotonic() + seconds

    def decided(asked: s.ChecklistSpec, text: str) -> Verdict:
        if time.monotonic() > end:
            raise InfrastructureError(f"{seconds:g} seconds were not enough for this list", hint="raise --seconds")
        return worker.verify(asked, text, 10.0)

    return assessed(spec, right, decided)


def assessed(spec: s.ChecklistSpec, right: str, decided: Decided) -> ListAssessment:
    """The same with any way to decide."""
    started = time.monotonic()
    if len(spec.hard) > MOST_ITEMS:
        raise SpecError(f"{len(spec.hard)} hard items are too many to assess", hint=f"Keep to {MOST_ITEMS}.")
    first = decided(spec, right or made(spec))
    if first.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"the list cannot be decided here: {first.reason}")
    if right and not first.passed:
        raise SpecError(
            f"the text that should meet the list does not: {first.reason}", hint="It, or an item, is wrong."
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
    """Texts that do no work, each with what it is."""
    yield from ((f"{text!r}", text) for text in EMPTY_ANSWERS)
    if spec.question:
        yield "the instruction, handed back", spec.question
        yield "the instruction, announced", f"Here is the text that was asked for.\n\n{spec.question}"
    phrases = [phrase for item in spec.hard for phrase in item.wanted]
    length = min(_length(spec), MOST_STUFFED)
    if phrases:
        yield "the keywords in a row", ", ".join(phrases)
        yield "the keywords again and again", " ".join(islice(cycle(phrases), max(length, len(phrases))))
        yield "the keywords, a sentence each", " ".join(f"{phrase.capitalize()}." for phrase in phrases)
    said = [line for item in spec.items for line in item.lines()]
    yield "the list itself", "\n".join(said)
    yield "a claim for each item", " ".join(f"This text meets all requirements: {line}." for line in said)


def witnesses(spec: s.ChecklistSpec, right: str) -> Iterator[str]:
    """Texts that may tell items apart: one that meets all, what misses each of them, and what is made of some."""
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
    """The text with a block left out, or with something else between its beginning and its end."""
    blocks = text.split("\n\n")
    if len(blocks) < 3:
        return
    for at in range(min(len(blocks), MOST_CUTS)):
        yield "\n\n".join(blocks[:at] + blocks[at + 1 :])
    for middle in (OTHER, " ".join(islice(sentences(), 40))):
        yield "\n\n".join([blocks[0], middle, *blocks[-2:]])


def inserted(text: str, more: str) -> str:
    """The text with more of it at the end of a block of prose that is neither the first nor the last."""
    blocks = text.split("\n\n")
    prose = [at for at, block in enumerate(blocks) if not block.startswith(("#", "-", "|", "```"))]
    at = prose[len(prose) // 2] if prose else 0
    return "\n\n".join([*blocks[:at], f"{blocks[at]} {more}", *blocks[at + 1 :]])


def _held(verdict: Verdict) -> list[bool]:
    """Which hard items hold, in order; nothing for a text that could not be read."""
    if verdict.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"a text of the assessment was not decided: {verdict.reason}")
    found = verdict.evidence.get("items")
    return [bool(one["holds"]) for one in found] if isinstance(found, list) else []


def _length(spec: s.ChecklistSpec) -> int:
    """Words that the list asks for."""
    targets = [item.target for item in spec.hard if isinstance(item, s.LengthItem) and item.unit == "words"]
    least = [item.least or 0 for item in spec.hard if isinstance(item, s.CountItem) and item.of == "words"]
    return max([*targets, *least, 60])


def _reason(first: Verdict, trivial: Sequence[str], implied: Sequence[tuple[str, str]], count: int) -> str:
    if not first.passed:
        return f"no text that meets it could be made here ({first.reason}): give one as --submission"
    if trivial:
        return f"a text that does no work passes: {trivial[0]}"
    if implied:
        return f"{implied[0][0]!r} may imply {implied[0][1]!r}: change or leave out one of them"
    return f"a text meets it, nothing idle does, and none of its {count} hard items follows from another"
