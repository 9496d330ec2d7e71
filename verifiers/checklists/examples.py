"""A text that a checklist should accept, and for each item a text that misses it. Pure: the verifier decides each.

The text is the job's own, or is built from the items: headings with a paragraph each, sentences around the required
words, a table, a code block, padded to the length. It is not worth reading; its acceptance shows what the list does not
ask for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from verifiers.checklists import spec as s
from verifiers.checklists.words.prose import words
from verifiers.contract.examples import AskVerifier, ExampleInput, ExampleReport, distinct

WHO = ("The harbour", "A narrow bridge", "The old mill", "Her brother", "The council", "A quiet river", "The baker")
DOES = ("remembers", "carries", "mentions", "answers", "describes", "follows", "collects", "leaves", "watches")
WHAT = ("a long winter", "the evening trains", "several letters", "an open door", "the first harvest", "small boats")
WHERE = ("near the market", "behind the station", "before noon", "in plain words", "without haste", "over the hill")
OTHER = "This is a text about something else, and it says nothing of what was asked for."
MOST_WORDS = 3_000
PATTERNS = {
    "list_items": r"^\s*([-*+]|\d+[.)])\s.*$",
    "headings": r"^#.*$",
    "tables": r"^\s*\|.*$",
    "code_blocks": r"^```.*$",
    "links": r"https?://\S+",
}
FORMS = {
    "list_items": "- {one}",
    "headings": "## Part {number}\n\n{one}",
    "tables": "| a | b |\n|---|---|\n| {one} | x |",
    "code_blocks": "```\n{one}\n```",
    "links": "See https://example.org/{number}",
}


def examples(spec: s.ChecklistSpec, answer: str | None, try_: AskVerifier) -> ExampleReport:
    inputs = [ExampleInput("example", "the job's text", spec, answer)] if answer is not None else []
    inputs.append(ExampleInput("example", "a text built from the items alone", spec, made(spec)))
    found = try_(inputs)
    right = next((one.given.submission for one in found if one.accepted), None)
    notes: list[str] = []
    changed: list[tuple[str, str]] = []
    if right is None:
        notes.append("no text that meets the list could be built, so none that misses just one item")
    for item in spec.hard if right is not None else ():
        other = missing(item, right or "")
        if other is None or other == right:
            notes.append(f"no text that misses {item.name!r} alone could be built")
        else:
            changed.append((f"the text made to miss {item.name!r}", other))
    changed.append(("another text", OTHER))
    if spec.soft:
        notes.append("soft items were not judged here; they never make a text pass")
    tried = try_(distinct([ExampleInput("mutant", what, spec, text) for what, text in changed], right or ""))
    shown = [one for one in found if one.accepted or one.given.what.startswith("the job's text")]
    return ExampleReport((*(shown or found[:1]), *tried), (), tuple(notes))


def sample(rules: str) -> Any:
    """Returns a small value that should fit a JSON schema, from its types, bounds and enumerated values. Returns {} for
    invalid schemas."""
    try:
        return _instance(json.loads(rules), 0)
    except (ValueError, RecursionError):
        return {}


def _instance(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > 8:
        return {}
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("enum", "examples"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    for keyword in ("oneOf", "anyOf", "allOf"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return _instance(schema[keyword][0], depth + 1)
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "string":
            text = ("Apple tree " * (1 + _size(schema, "minLength") // 11))[: max(5, _size(schema, "minLength"))]
            return text[: _size(schema, "maxLength")] if "maxLength" in schema else text
        case "integer" | "number":
            low = _size(schema, "minimum") if "minimum" in schema else _size(schema, "exclusiveMinimum") + 1
            return min(low, _size(schema, "maximum")) if "maximum" in schema else low
        case "boolean":
            return True
        case "null":
            return None
        case "array":
            return [_instance(schema.get("items", {"type": "integer"}), depth + 1)] * _size(schema, "minItems")
        case _:
            known = schema.get("properties")
            parts = known if isinstance(known, dict) else {}
            names = schema.get("required")
            wanted = names if isinstance(names, list) else []
            return {str(name): _instance(parts.get(str(name), {"type": "string"}), depth + 1) for name in wanted}


def _size(schema: dict[str, Any], keyword: str) -> int:
    """Returns a bound such as `minLength` from a JSON schema, at most 1,000; 0 if missing."""
    value = schema.get(keyword, 0)
    return min(int(value), 1_000) if isinstance(value, int | float) else 0


def sentences() -> Iterator[str]:
    """Yields distinct filler sentences, without end."""
    for turn in count():
        who, does = WHO[turn % len(WHO)], DOES[turn % len(DOES)]
        what, where = WHAT[(turn // 3) % len(WHAT)], WHERE[(turn // 7 + turn) % len(WHERE)]
        yield f"{who} {does} {what} {where}."


def made(spec: s.ChecklistSpec) -> str:
    """Builds a text that should meet all code-checked items of a checklist."""
    whole = any(isinstance(item, s.FormatItem) and item.format == "json" for item in spec.hard)
    for item in spec.hard:
        if isinstance(item, s.JsonItem):
            value = json.dumps(sample(item.rules), ensure_ascii=False)
            return value if whole or item.within == "whole" else f"{next(sentences())}\n\n```json\n{value}\n```"
    if whole:
        return json.dumps({"text": " ".join([*_sentences(spec), *islice(sentences(), 2)])}, ensure_ascii=False)
    return _shortened(spec, _prose(spec))


def _shortened(spec: s.ChecklistSpec, text: str) -> str:
    """Joins sentences by `and` until a text has no more of them than the checklist allows."""
    most = min((i.most for i in spec.hard if isinstance(i, s.CountItem) and i.of == "sentences" and i.most), default=0)
    over = text.count(". ") + 1 - most if most else 0
    return text.replace(". ", " and ", over) if over > 0 else text


def _prose(spec: s.ChecklistSpec) -> str:
    most = min((i.most for i in spec.hard if isinstance(i, s.CountItem) and i.of == "words" and i.most), default=1_000)
    some = 2 if most > 60 else 0 if any(True for _ in _sentences(spec)) else 1
    filler = sentences()
    asked = list(_sentences(spec))
    blocks: list[str] = []
    for item in spec.hard:
        if isinstance(item, s.HeadingsItem):
            for heading in item.headings:
                blocks += [
                    f"{'#' * (item.level or 2)} {heading}",
                    " ".join([*asked[:1], *islice(filler, max(some, 0 if asked else 1))]),
                ]
                asked = asked[1:]
    wanted = max(1, _least(spec, "paragraphs") - sum(not block.startswith("#") for block in blocks))
    for place in range(wanted):
        own = asked if place == wanted - 1 else asked[:1]
        asked = asked[len(own) :]
        blocks.append(" ".join([*own, *islice(filler, max(some, 0 if own else 1))]))
    for number in range(_least(spec, "headings") - sum(block.startswith("#") for block in blocks)):
        blocks += [f"## Part {'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[number % 26]}", next(filler)]
    if items := _least(spec, "list_items"):
        blocks.append("\n".join(f"- {next(filler)}" for _ in range(items)))
    for item in spec.hard:
        if isinstance(item, s.TableItem):
            blocks.append(_table(item, spec))
        if isinstance(item, s.CodeItem):
            body = {"python": "print('ready')", "json": '{"ready": true}'}.get(item.language.lower(), "ready")
            blocks.append(f"```{item.language}\n{body}\n```")
    blocks += ["```\nready\n```" for _ in range(_least(spec, "code_blocks") - sum("```" in block for block in blocks))]
    return _filled(spec, blocks, filler)


def _filled(spec: s.ChecklistSpec, blocks: list[str], filler: Iterator[str]) -> str:
    """Pads a text's first paragraph with filler sentences to the length that a checklist requires."""
    target, measure = 0, "words"
    for item in spec.hard:
        if isinstance(item, s.LengthItem):
            target, measure = item.target, item.unit
        elif isinstance(item, s.CountItem) and item.of == "words" and item.least:
            most = item.most if item.most is not None else item.least + 40
            target = (item.least + most) // 2 if most - item.least < 80 else item.least + 20
    for place, block in enumerate(blocks):
        if not block.startswith(("#", "-", "|", "```")):
            for _ in range(_least(spec, "sentences")):
                if sum(one.count(".") for one in blocks) >= _least(spec, "sentences"):
                    break
                block = blocks[place] = f"{block} {next(filler)}"  # noqa: PLW2901
            while target and len(words("\n".join(blocks))) < MOST_WORDS:
                text = "\n".join(blocks)
                if (len(words(text)) if measure == "words" else len(text)) >= target - 3:
                    break
                block = blocks[place] = f"{block} {next(filler)}"  # noqa: PLW2901
            break
    return "\n\n".join(blocks)


def _sentences(spec: s.ChecklistSpec) -> Iterator[str]:
    """Yields sentences with the phrases that a checklist requires; phrases with a required order come first."""
    for item in spec.hard:
        if isinstance(item, s.OrderItem):
            yield from (f"Then one reads of {phrase} for a while." for phrase in item.phrases)
    turn = count()
    frames = ("People there often speak of {}.", "Nobody forgets {} for long.", "What remains is {} after all.")
    for item in spec.hard:
        if isinstance(item, s.WordsItem):
            yield from (frames[next(turn) % 3].format(phrase) for phrase in item.required)
        if isinstance(item, s.OccurrencesItem):
            yield from (f"{who} met {item.phrase} once." for who in islice(_names(), item.least or 0))
        if isinstance(item, s.NumbersItem):
            yield from (f"One count comes to {number} in the end." for number in item.required)
        if isinstance(item, s.CitationsItem):
            for source in spec.sources[: max(item.least, 1 if item.least_quotations else 0)]:
                quote = " ".join(source.text.split()[: item.quoted_words + 2])
                sentence = f'It says "{quote}" there' if item.least_quotations and quote else "This is told elsewhere"
                yield f"{sentence} [{source.key}]."


def _names() -> Iterator[str]:
    names = ("Ada", "Bruno", "Clara", "David", "Edith", "Felix", "Greta", "Hugo")
    for turn in count():
        yield f"{names[turn % 8]}{' again' * (turn // 8)}"


def _least(spec: s.ChecklistSpec, of: str) -> int:
    return max((item.least or 0 for item in spec.hard if isinstance(item, s.CountItem) and item.of == of), default=0)


def _table(item: s.TableItem, spec: s.ChecklistSpec) -> str:
    rows = max(item.least_rows, 2 if item.sums else 1)
    facts = [fact for one in spec.hard if isinstance(one, s.NumbersItem) for fact in one.facts]
    plain = [int(fact) for fact in facts if fact.isdigit()] or list(range(1, rows + 1))
    numbers = [plain[row % len(plain)] for row in range(rows - 1)]
    numbers.append(sum(numbers) if item.sums else plain[(rows - 1) % len(plain)])
    lines = [f"| {' | '.join(item.columns)} |", f"|{'---|' * len(item.columns)}"]
    for row in range(1, rows + 1):
        cells = [str(numbers[row - 1]) if column in item.sums else f"{WHO[row % len(WHO)]}" for column in item.columns]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def missing(item: s.HardItem, text: str) -> str | None:
    """Changes a text so that it should fail one item of a checklist; None if no such change is known."""
    filler = " ".join(islice(sentences(), 40, 240))
    match item:
        case s.CountItem() if item.least:
            return _without(item.of, text)
        case s.CountItem():
            return f"{text}\n\n{_more(item.of, (item.most or 0) + 1)}"
        case s.LengthItem():
            return f"{text}\n\n{filler}\n\n" + " ".join(islice(sentences(), 240, 240 + item.target))
        case s.OccurrencesItem() if item.least:
            return _replaced(text, item.phrase)
        case s.OccurrencesItem():
            more = (f"{who} met {item.phrase}." for who in islice(_names(), (item.most or 0) + 1))
            return f"{text}\n\n{' '.join(more)}"
        case s.WordsItem() if item.required:
            return _replaced(text, item.required[0])
        case s.WordsItem():
            return f"{text}\n\nSomebody adds {item.forbidden[0]} here."
        case s.HeadingsItem():
            return re.sub(
                rf"^#+\s*{re.escape(item.headings[0])}\s*$", "Something stands here.", text, flags=re.M | re.I
            )
        case s.OrderItem():
            return f"To begin with the end, {item.phrases[-1]} is named first.\n\n{text}"
        case s.TableItem():
            return _without("tables", text)
        case s.CodeItem():
            return _without("code_blocks", text)
        case s.FormatItem():
            other = {"json": f"{text} and so on", "markdown": "Plain words.", "plain": f"# A heading\n\n{text}"}
            return other[item.format]
        case s.JsonItem():
            return "[917]" if text.strip() != "[917]" else "{}"
        case s.PatternItem():
            return OTHER if item.how != "absent" else None
        case s.CitationsItem():
            return re.sub(r"\s*\[[^\]\n]{1,100}\]", "", text)
        case s.NumbersItem():
            return f"{text}\n\nIn the end there were 918273 of them."
        case s.ScriptItem():
            other_letters = "щука плавает в реке" if "CYRILLIC" not in item.scripts else "a pike swims in the river"
            return f"{text}\n\n" + " ".join([other_letters] * (1 + len(text) // 10))


def _without(of: str, text: str) -> str:
    """Removes all elements of one kind, such as headings, from a text. For other kinds, replaces the text by a filler
    sentence."""
    return re.sub(PATTERNS[of], "", text, flags=re.M) if of in PATTERNS else next(sentences())


def _more(of: str, many: int) -> str:
    some = islice(sentences(), 300, 300 + min(many, 2_000))
    return "\n\n".join(FORMS.get(of, "{one}").format(one=one, number=number) for number, one in enumerate(some))


def _replaced(text: str, phrase: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", "something", text, flags=re.I)
