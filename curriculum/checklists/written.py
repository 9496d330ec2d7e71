"""Reads a checklist that a model wrote for a user's instruction, as data.

Invariants: the model's text is hostile. It is one JSON object with the item kinds of `FIELDS`, each with the fields
listed there and nothing else; it cannot supply regular expressions, schemas or guards, so nothing it writes runs or is
switched off. Items that code cannot decide or that address the grader are dropped and reported. The instruction and the
sources are the owner's. A checklist is used only if `verifiers.checklists.assess` finds it sound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from common import strict_json
from common.bounded_models import first_fault
from common.strict_json import Bounds, NotJsonError
from curriculum.checklists.instructions import listed_spec
from curriculum.contract.errors import CurriculumError
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.spec import ChecklistSpec, CitedSource, HardItem, Item, SoftItem
from verifiers.checklists.words.characters import visible
from verifiers.checklists.words.claims import is_claim
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped

MOST_CHARACTERS = 20_000
BOUNDS = Bounds(size=4 * MOST_CHARACTERS, values=2_000)
MOST_ITEMS = 12
MOST_PHRASES = 20
MOST_NUMBER = 200
"""Largest count that an item may require, except of words: a text that satisfies the checklist must be feasible."""
MOST_TEXT = 300
"""Characters per text in an item."""
MOST_SOFT = 2
"""Items for a judge, as the request says."""
FEWEST_HARD = 2
"""Hard items required besides the length."""
LEAST_TARGET, MOST_TARGET = 20, 20_000
FIELDS: Mapping[str, tuple[str, ...]] = {
    "count": ("of", "least", "most"),
    "occurrences": ("phrase", "least", "most"),
    "words": ("required", "forbidden"),
    "headings": ("headings", "level", "only"),
    "order": ("phrases",),
    "table": ("columns", "least_rows", "most_rows", "sums"),
    "format": ("format",),
    "citations": ("least", "most", "least_quotations"),
    "soft": ("point",),
}
"""Item kinds that a model may write, with the fields it may set."""
FENCED = re.compile(r"^```(?:json)?[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
ITEM: TypeAdapter[Any] = TypeAdapter(Item)


class WrittenListError(CurriculumError):
    """No checklist can be read from a model's text."""


@dataclass(frozen=True)
class WrittenList:
    """Checklist read from a model's text."""

    spec: ChecklistSpec
    refused: tuple[str, ...]
    """Reasons why items were dropped; one line each, escaped."""


def request(instruction: str) -> str:
    """Returns the prompt that asks a model for a checklist of this user's instruction."""
    kinds = "\n".join(f'- {{"item": "{name}", ...}} with {", ".join(fields)}' for name, fields in FIELDS.items())
    return (
        "Write the checklist by which a text for the instruction below can be judged: about five points, those that it "
        "says and those that follow from what it says. Prefer what can be counted or looked up; use the kind `soft`, "
        "with one sentence in `point`, for at most two points that only a reader can judge. No point may follow from "
        'another. Answer with one JSON object, {"target_words": N, "items": [...]}, and nothing else. '
        f"The kinds of items and their fields:\n{kinds}\n\nThe instruction:\n{instruction}"
    )


def read_written(text: str, instruction: str, sources: Sequence[CitedSource] = ()) -> WrittenList:
    """Reads a checklist that a model wrote for a user's instruction. Raises WrittenListError if it is unusable."""
    content = _object(text)
    target, items = content.get("target_words"), content.get("items")
    if set(content) != {"target_words", "items"} or not isinstance(items, list):
        raise _unusable('it is not an object with "target_words" and "items"')
    if type(target) is not int or not LEAST_TARGET <= target <= MOST_TARGET:
        raise _unusable(f"target_words is not a number from {LEAST_TARGET} to {MOST_TARGET}")
    if len(items) > MOST_ITEMS:
        raise _unusable(f"it has {len(items)} items, more than {MOST_ITEMS}")
    hard: list[HardItem] = []
    points: list[str] = []
    refused: list[str] = []
    for place, raw in enumerate(items, 1):
        try:
            item = _item(raw, f"{place} {raw.get('item', '')}" if isinstance(raw, dict) else "", sources)
        except ValueError as error:
            refused.append(f"item {place}: {error}")
            continue
        if isinstance(item, SoftItem):
            if len(points) == MOST_SOFT or item.point in points:
                refused.append(f"item {place}: it repeats another item, or exceeds the {MOST_SOFT} items for a judge")
            else:
                points.append(item.point)
        elif any(_asked(item) == _asked(other) for other in hard):
            refused.append(f"item {place}: it repeats another item")
        else:
            hard.append(item)
    if len(hard) < FEWEST_HARD:
        raise _unusable(f"only {len(hard)} of its items can be decided by code; " + "; ".join(refused)[:600])
    spec = listed_spec(instruction, target, hard, points, sources)
    try:
        HardVerifier().check(spec)
    except SpecError as error:
        raise _unusable(str(error)) from error
    return WrittenList(spec, tuple(refused))


def _object(text: str) -> dict[str, Any]:
    """Parses the one JSON object in a model's text: the whole text, or its only fenced block."""
    if len(text) > MOST_CHARACTERS:
        raise _unusable(f"it is longer than {MOST_CHARACTERS} characters")
    blocks = FENCED.findall(text)
    whole = blocks[0] if len(blocks) == 1 else text
    try:
        content = strict_json.read(whole, BOUNDS)
    except NotJsonError as error:
        raise _unusable(f"it is not one JSON object: {error}") from error
    if not isinstance(content, dict):
        raise _unusable("it is not one JSON object")
    return content


def _item(raw: Any, name: str, sources: Sequence[CitedSource]) -> Any:
    """Parses a checklist item that a model wrote. Raises ValueError, with a reason, if a model may not write it."""
    kind = raw.get("item") if isinstance(raw, dict) else None
    if not isinstance(kind, str) or kind not in FIELDS:
        raise ValueError(f"a model may not write the kind {escaped(str(kind))[:40]!r}")
    extra = set(raw) - {"item", *FIELDS[kind]}
    if extra:
        raise ValueError(f"a model may not write the field {escaped(min(extra))[:40]!r} of {kind}")
    for text in _texts(raw):
        if len(text) > MOST_TEXT or visible(text) != text or not text.isprintable() or is_claim(text):
            raise ValueError("it has a text that is too long, hides characters or addresses the grader")
    if any(isinstance(value, list) and len(value) > MOST_PHRASES for value in raw.values()):
        raise ValueError(f"it names more than {MOST_PHRASES} phrases")
    most = MOST_TARGET if raw.get("of") == "words" else MOST_NUMBER
    try:
        item = ITEM.validate_python({"name": name, **raw}, strict=False)
    except ValidationError as error:
        raise ValueError(str(first_fault(error))) from error
    read = item.model_dump(exclude={"name", "weight"}).values()  # after validation: "9" becomes a number
    if any(isinstance(value, int | float) and not abs(value) <= most for value in read):
        raise ValueError(f"it asks for more than {most}")
    if not isinstance(item, SoftItem):
        for what, _hint in item.faults(sources):
            raise ValueError(f"it {what}")
    return item


def _texts(raw: dict[str, Any]) -> list[str]:
    found = [value for value in raw.values() if isinstance(value, str)]
    return found + [one for value in raw.values() if isinstance(value, list) for one in value if isinstance(one, str)]


def _asked(item: HardItem) -> dict[str, Any]:
    return item.model_dump(exclude={"name", "weight"})


def _unusable(why: str) -> WrittenListError:
    return WrittenListError(
        f"the model's checklist is unusable: {why}",
        hint="ask again, ask another model, or write the checklist yourself (docs/verifiers/checklist.md)",
    )
