"""Items about how a text is built: headings, order, tables, code, format, JSON."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import jsonschema
from jsonschema.validators import validator_for
from referencing import Registry

from verifiers.answers.reading import clipped
from verifiers.checklists.disguise import plain, whole_words
from verifiers.checklists.finding import Finding, listed
from verifiers.checklists.markdown import EMPHASIS, Block, Document
from verifiers.checklists.numbers import figure
from verifiers.checklists.prose import words
from verifiers.checklists.spec import CodeItem, FormatItem, HeadingsItem, JsonItem, OrderItem, TableItem
from verifiers.errors import SpecError

JSON_NAMES = ("", "json")
PYTHON_NAMES = ("python", "py", "python3")


class JsonError(ValueError):
    """Not JSON, or JSON that two readers would read differently."""


def read_json(text: str) -> Any:
    """RFC 8259 strictly: no NaN, no name twice in an object. Raises JsonError."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(clipped(str(error))) from None


def headings(item: HeadingsItem, document: Document) -> Finding:
    blocks = document.blocks
    here = [at for at, block in enumerate(blocks) if block.kind == "heading" and item.level in (None, block.level)]
    titles = [_title(blocks[at].text) for at in here]
    wanted = [_title(heading) for heading in item.headings]
    wrong, at = [], 0
    for shown, title in zip(item.headings, wanted, strict=True):
        if title not in titles[at:]:
            wrong.append(f"there is no heading {clipped(shown)!r}{' behind the one before' if title in titles else ''}")
            continue
        at = titles.index(title, at) + 1
        if titles.count(title) > wanted.count(title):
            wrong.append(f"the heading {clipped(shown)!r} is there {titles.count(title)} times")
        if item.filled and not _filled(blocks, here[at - 1]):
            wrong.append(f"nothing stands below {clipped(shown)!r}")
    if item.only and len(titles) > len(wanted) and not wrong:
        others = [title for title in titles if title not in wanted]
        wrong.append(f"there are other headings: {clipped(', '.join(others))}")
    evidence = {"headings": [clipped(title) for title in titles[:50]]}
    return Finding(item.name, not wrong, listed(wrong) or "the headings are there, in order", evidence=evidence)


def _title(text: str) -> str:
    return plain(EMPHASIS.sub("", text)).strip(" :.").lstrip("0123456789.) ") or plain(text)


def _filled(blocks: tuple[Block, ...], at: int) -> bool:
    """Whether the section of the heading has something in it, be it below a heading of a lower rank."""
    for block in blocks[at + 1 :]:
        if block.kind == "heading":
            if block.level <= blocks[at].level:
                return False
        elif block.rows or words(block.text):
            return True
    return False


def order(item: OrderItem, document: Document) -> Finding:
    seen, at = plain(document.shown), 0
    for phrase in item.phrases:
        match = whole_words(plain(phrase)).search(seen, at)
        if match is None:
            there = whole_words(plain(phrase)).search(seen) is not None
            how = "does not come behind the one before" if there else "does not occur"
            return Finding(item.name, False, f"{clipped(phrase)!r} {how}")
        at = match.end()
    return Finding(item.name, True, "the phrases occur in order")


def table(item: TableItem, document: Document) -> Finding:
    wanted = [plain(column) for column in item.columns]
    found = [block.rows for block in document.of("table") if [plain(cell) for cell in block.rows[0]] == wanted]
    if len(found) != 1:
        seen = [[clipped(cell) for cell in block.rows[0]] for block in document.of("table")[:5]]
        how = "no table has these columns" if not found else f"{len(found)} tables have these columns"
        return Finding(item.name, False, how, evidence={"tables": seen})
    rows = found[0][1:]
    wrong = []
    if any(len(row) != len(wanted) for row in rows):
        wrong.append("a row has more or fewer cells than there are columns")
    if any(not any(words(cell) for cell in row) for row in rows):
        wrong.append("a row is empty")
    if len(rows) < item.least_rows:
        wrong.append(f"{len(rows)} of at least {item.least_rows} rows")
    if item.most_rows is not None and len(rows) > item.most_rows:
        wrong.append(f"{len(rows)} rows, at most {item.most_rows} may be")
    if not wrong:
        wrong += [fault for column in item.sums if (fault := _sum_fault(rows, wanted.index(plain(column)), column))]
    evidence = {"rows": len(rows)}
    return Finding(item.name, not wrong, listed(wrong) or "the table is there and complete", evidence=evidence)


def _sum_fault(rows: tuple[tuple[str, ...], ...], at: int, column: str) -> str:
    numbers = [figure(row[at]) for row in rows]
    if len(rows) < 2:
        return f"{clipped(column)!r} has nothing to add up"
    read = [number for number in numbers if number is not None]
    if len(read) < len(numbers):
        return f"a cell of {clipped(column)!r} is not one number"
    total = sum((number.value for number in read[:-1]), start=type(read[0].value)())
    if total == read[-1].value:
        return ""
    return f"{clipped(column)!r} adds up to {clipped(str(total))}, the last row says {clipped(read[-1].text)}"


def code(item: CodeItem, document: Document) -> Finding:
    names = PYTHON_NAMES if item.language.lower() in PYTHON_NAMES else (item.language.lower(),)
    blocks = [block for block in document.of("code") if not item.language or block.language in names]
    whole = [block for block in blocks if block.closed and block.text.strip()]
    if not whole:
        how = "there is no such code block" if not blocks else "the code block is empty or not closed"
        return Finding(item.name, False, how)
    for block in whole:
        fault = _code_fault(block)
        if fault:
            return Finding(item.name, False, fault)
    return Finding(item.name, True, "the code block is there", evidence={"blocks": len(whole)})


def _code_fault(block: Block) -> str:
    try:
        if block.language in PYTHON_NAMES:
            ast.parse(block.text)
        elif block.language == "json":
            read_json(block.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError) as error:
        # The last two are what CPython's own reader makes of text that is nested too deeply.
        return f"the {clipped(block.language)} code cannot be parsed: {clipped(str(error))}"
    return ""


def format_of(item: FormatItem, document: Document) -> Finding:
    if item.format == "json":
        try:
            read_json(document.raw)
        except JsonError as error:
            return Finding(item.name, False, f"not JSON: {error}")
        return Finding(item.name, True, "the whole text is JSON")
    if any(not block.closed for block in document.of("code")):
        return Finding(item.name, False, "a code block is not closed")
    built = [block.kind for block in document.blocks if block.kind != "paragraph"]
    marked = "**" in document.raw or "`" in document.raw or "](" in document.raw
    if item.format == "plain":
        what = built[0] if built else "markup"
        return Finding(item.name, not (built or marked), f"has Markdown: {what}" if built or marked else "plain text")
    return Finding(item.name, bool(built), "Markdown with structure" if built else "has no structure of Markdown")


def json_fits(item: JsonItem, document: Document) -> Finding:
    text = document.raw
    if item.within == "block":
        blocks = [block for block in document.of("code") if block.language in JSON_NAMES and block.closed]
        if len(blocks) != 1:
            return Finding(item.name, False, f"{len(blocks)} code blocks of JSON, exactly one must be")
        text = blocks[0].text
    try:
        value = read_json(text)
    except JsonError as error:
        return Finding(item.name, False, f"not JSON: {error}")
    try:
        faults = sorted(validator(item.rules).iter_errors(value), key=lambda fault: fault.json_path)
    except RecursionError:
        return Finding(item.name, False, "nested too deeply")
    except OverflowError:
        # A multiple is asked for, and the number is beyond floating point.
        return Finding(item.name, False, "a number is too large to be checked")
    if not faults:
        return Finding(item.name, True, "fits the schema")
    listing = [{"at": clipped(fault.json_path), "rule": clipped(str(fault.validator))} for fault in faults[:10]]
    reason = f"does not fit the schema at {clipped(faults[0].json_path)}: {clipped(str(faults[0].validator))}"
    return Finding(item.name, False, reason, evidence={"faults": listing})


@lru_cache(maxsize=64)
def validator(rules: str) -> Any:
    """The validator of a schema. Nothing is ever fetched: a reference that leaves the schema is refused (SpecError)."""
    try:
        schema = read_json(rules)
    except JsonError as error:
        raise SpecError(f"the JSON schema is not JSON: {error}", hint="Write the schema as JSON text.") from error
    for reference in _references(schema):
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SpecError(
                f"the JSON schema refers to {clipped(str(reference))}, outside itself",
                hint="Put what is referred to under $defs and refer to it with #/$defs/NAME.",
            )
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (jsonschema.SchemaError, RecursionError) as error:
        raise SpecError(
            f"the JSON schema cannot be used: {clipped(str(error))}", hint="See json-schema.org."
        ) from error
    quick = jsonschema.validators.extend(kind, {"uniqueItems": _unique_items})
    return quick(schema, registry=Registry())


def _unique_items(checker: Any, wanted: bool, value: Any, schema: Any) -> Iterator[Any]:
    """The library compares every two objects, which takes minutes for ten thousand."""
    if wanted and checker.is_type(value, "array"):
        texts = sorted(map(canonical, value))
        if any(one == other for one, other in pairwise(texts)):
            yield jsonschema.ValidationError("an item is there twice")


def canonical(value: Any) -> str:
    """The same text for equal values of JSON, another one for others: 1.0 is 1, and true is no number."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{canonical(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


def _references(schema: Any) -> list[Any]:
    found, waiting = [], [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += [part[name] for name in ("$ref", "$dynamicRef", "$recursiveRef") if name in part]
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise JsonError("an object has a name twice")
    return content


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads no more than 4,300 digits
        raise JsonError(f"a number of {len(text)} digits is not read") from None


def _constant(name: str) -> Any:
    raise JsonError(f"{name} is no JSON")
