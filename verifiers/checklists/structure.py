"""Decides items about the structure of a text: headings, order, tables, code, format, JSON."""

from __future__ import annotations

import ast
import builtins
import re
import unicodedata
from collections.abc import Sequence
from itertools import combinations, takewhile

from common.strict_json import NotJsonError
from verifiers.answers.grammar.numerals import Decimals
from verifiers.checklists.document import Document, ItemFinding, finding, listed
from verifiers.checklists.hollow import SHORT_SECTION, empty_columns, is_all_comment, is_gap, own_words, section_text
from verifiers.checklists.json_schema import faults_of, read_json
from verifiers.checklists.markdown import MarkdownBlock
from verifiers.checklists.numerals.fact_figures import figure
from verifiers.checklists.numerals.numbers import Figure, decimals_of
from verifiers.checklists.spec import CodeItem, FormatItem, HeadingsItem, JsonItem, OrderItem, TableItem
from verifiers.checklists.words.characters import plain, whole_words
from verifiers.checklists.words.prose import words
from verifiers.contract.text import escaped

SIGNS = frozenset("+-−–—()%‰°.,'’*~≈_/⁄^")
"""Characters allowed in a numeric cell besides letters, digits and currency signs."""

LONGEST_ENDING = 3
"""`Kind` and `Kinder` count as the same word, `Euro` and `Eurocent` do not."""


def sum_fault(cells: Sequence[str], decimals: Decimals, column: str) -> str:
    """Returns the reason why a table column's last cell is not the sum of those above; empty if it is."""
    if len(cells) < 2:
        return f"{column!r} has nothing to add up"
    read = [number for cell in cells if (number := figure(cell, decimals)) is not None]
    if len(read) < len(cells) or not all(map(_is_plain, cells)):
        return f"a cell of {column!r} is not one number"
    if len({number.percent for number in read}) > 1:
        return f"{column!r} mixes shares and numbers"
    rests = {(number.unit, _rest(cell, number)) for cell, number in zip(cells, read, strict=True)} - {("", ())}
    if not all(_is_one(*pair) for pair in combinations(rests, 2)):
        return f"{column!r} mixes units"
    total = sum((number.value for number in read[:-1]), start=type(read[0].value)())
    if total == read[-1].value:
        return ""
    return f"{column!r} adds up to {escaped(str(total))}, the last row says {escaped(read[-1].text)}"


def _is_plain(cell: str) -> bool:
    signs = (one for one in unicodedata.normalize("NFKC", cell) if not (one.isalnum() or one.isspace()))
    return all(one in SIGNS or unicodedata.category(one) in ("Sc", "Mn", "Mc") for one in signs)


def _rest(cell: str, number: Figure) -> tuple[str, ...]:
    """Returns the words in a table cell that stand beside its number, such as a unit."""
    beside = plain(cell).replace(plain(number.text).removeprefix("-"), " ")
    return tuple(words(re.sub(r"[\d.,'’]+", " ", beside)))


def _is_one(first: tuple[str, tuple[str, ...]], second: tuple[str, tuple[str, ...]]) -> bool:
    """True if two table cells have the same unit or, without units, the same words up to endings."""
    (unit, rest), (other_unit, other_rest) = first, second
    if unit and other_unit:
        return unit == other_unit
    return len(rest) == len(other_rest) and all(map(_alike, rest, other_rest))


def _alike(one: str, other: str) -> bool:
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return common >= (min(len(one), len(other)) + 1) // 2 and max(len(one), len(other)) - common <= LONGEST_ENDING


DOES = (
    *(ast.Call, ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign, ast.NamedExpr, ast.Raise, ast.Assert),
    *(ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, ast.BinOp, ast.comprehension),
)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OVER_NAMES = (ast.Compare, ast.BoolOp, ast.Subscript, ast.Attribute, ast.FormattedValue)


def is_idle_python(tree: ast.Module) -> bool:
    """True if a Python module neither defines anything nor does anything when run."""
    nodes = list(ast.walk(tree))
    within = {id(part) for node in nodes if isinstance(node, DEFINITIONS) for part in ast.walk(node)}
    known = set(dir(builtins)) | {name for node in nodes for name in _defined(node)}
    return not any(_does(node, known) for node in nodes if not isinstance(node, ast.Return) or id(node) in within)


def _does(node: ast.AST, known: set[str]) -> bool:
    if isinstance(node, DOES):
        return True
    if isinstance(node, ast.Return):
        return node.value is not None and not _is_constant(node.value, None, ...)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    if isinstance(node, ast.ClassDef):
        return bool(node.bases) or any(isinstance(part, (ast.AnnAssign, ast.FunctionDef)) for part in node.body)
    if isinstance(node, OVER_NAMES):
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        return names <= known
    return False


def _is_constant(node: ast.expr, *values: object) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.id] if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else []


JSON_NAMES = ("", "json")
TEXT_NAMES = ("text", "txt", "plain", "md", "markdown", "diff")
PYTHON_NAMES = ("python", "py", "python3")
PLAIN_TOO = re.compile(r"(?m)^(?:\d{1,2}\. (?=[^\W\d_]+ (?:1\d|20)\d\d\b)|--[ \t]*$)()")
"""Plain letter text that CommonMark reads as a list or heading: a date, the line above a signature."""
ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]|&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]\w+);")


def headings(item: HeadingsItem, document: Document) -> ItemFinding:
    blocks = document.blocks
    here = [at for at, block in enumerate(blocks) if block.kind == "heading" and item.level in (None, block.level)]
    titles = [_title(blocks[at].text) for at in here]
    wanted = [_title(heading) for heading in item.headings]
    wrong: list[str] = []
    sections: list[frozenset[str]] = []
    texts: list[str] = []
    at = 0
    for shown, title in zip(item.headings, wanted, strict=True):
        if title not in titles[at:]:
            wrong.append(f"missing heading {escaped(shown)!r}{' after the one before' if title in titles else ''}")
            continue
        at = titles.index(title, at) + 1
        if titles.count(title) > wanted.count(title):
            wrong.append(f"the heading {escaped(shown)!r} occurs {titles.count(title)} times")
        if item.filled:
            said = section_text(blocks, here[at - 1])
            if is_gap(said, blocks[here[at - 1]].text):
                wrong.append(f"the section {escaped(shown)!r} is empty")
            own = own_words(said, blocks[here[at - 1]].text)
            if own in sections or said in texts:
                wrong.append(f"{escaped(shown)!r} repeats another section")
            if len(own) >= SHORT_SECTION:
                sections.append(own)
                texts.append(said)
    if item.only and len(titles) > len(wanted) and not wrong:
        others = [title for title in titles if title not in wanted]
        wrong.append(f"unexpected headings: {escaped(', '.join(others))}")
    reason = listed(wrong) or "all headings are present, in order"
    return finding(item, not wrong, reason, headings=[escaped(title) for title in titles[:50]])


def _title(text: str) -> str:
    return plain(text.strip("*_")).strip(" :.").lstrip("0123456789.) ") or plain(text)


def order(item: OrderItem, document: Document) -> ItemFinding:
    seen, at = document.phrases, 0
    for phrase in item.phrases:
        match = whole_words(plain(phrase)).search(seen, at)
        if match is None:
            there = whole_words(plain(phrase)).search(seen) is not None
            how = "does not come after the one before" if there else "does not occur"
            return finding(item, False, f"{escaped(phrase)!r} {how}")
        at = match.end()
    return finding(item, True, "the phrases occur in order")


def table(item: TableItem, document: Document) -> ItemFinding:
    wanted = [plain(column) for column in item.columns]
    found = [block.rows for block in document.of("table") if [plain(cell) for cell in block.rows[0]] == wanted]
    if len(found) != 1:
        seen = [[escaped(cell) for cell in block.rows[0]] for block in document.of("table")[:5]]
        how = "no table has these columns" if not found else f"{len(found)} tables have these columns"
        return finding(item, False, how, tables=seen)
    rows = found[0][1:]
    wrong = []
    if any(len(row) != len(wanted) for row in rows):
        wrong.append("a row has more or fewer cells than there are columns")
    if any(not any(words(cell) for cell in row) for row in rows):
        wrong.append("a row is empty")
    different = len({tuple(map(plain, row)) for row in rows})
    if different < item.least_rows:
        wrong.append(f"{different} different rows of at least {item.least_rows}")
    wrong += [f"the column {escaped(item.columns[at])!r} is empty" for at in empty_columns(rows)]
    if item.most_rows is not None and len(rows) > item.most_rows:
        wrong.append(f"{len(rows)} rows, at most {item.most_rows} allowed")
    if not wrong:
        decimals = decimals_of(document.everything)
        summed = {column: [row[wanted.index(plain(column))] for row in rows] for column in item.sums}
        wrong += [fault for column in item.sums if (fault := sum_fault(summed[column], decimals, escaped(column)))]
    return finding(item, not wrong, listed(wrong) or "the table is complete", rows=len(rows))


def code(item: CodeItem, document: Document) -> ItemFinding:
    names = PYTHON_NAMES if item.language.lower() in PYTHON_NAMES else (item.language.lower(),)
    blocks = [block for block in document.of("code") if not item.language or block.language in names]
    whole = [block for block in blocks if block.closed and block.text.strip()]
    if not whole:
        return finding(item, False, "the code block is empty or not closed" if blocks else "the code block is missing")
    fault = next(filter(None, map(_code_fault, whole)), "")
    return finding(item, not fault, fault or "the code block is present", blocks=len(whole))


def _code_fault(block: MarkdownBlock) -> str:
    try:
        if block.language in PYTHON_NAMES:
            if is_idle_python(ast.parse(block.text)):
                return "the code does nothing"
        elif block.language == "json":
            read_json(block.text)
        elif block.language not in TEXT_NAMES and is_all_comment(block.text):
            return "the code is only comments"
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError) as error:
        # CPython's parser raises the last two for text that is nested too deeply.
        return f"the {escaped(block.language)} code cannot be parsed: {escaped(str(error))}"
    return ""


def format_of(item: FormatItem, document: Document) -> ItemFinding:
    if item.format == "json":
        try:
            read_json(document.raw)
        except NotJsonError as error:
            return finding(item, False, f"not JSON: {error}")
        return finding(item, True, "the whole text is JSON")
    if any(not block.closed for block in document.of("code")):
        return finding(item, False, "a code block is not closed")
    shaped = [block for block in document.blocks if block.kind != "paragraph" or block.quoted]
    built = [block.kind for block in shaped if block.kind in ("code", "table") or block.text.strip()]
    if item.format == "plain":
        marked = Document(PLAIN_TOO.sub(r"\1", document.raw)).is_marked_up or ESCAPED.search(document.raw) is not None
        what = built[0] if built else "markup"
        return finding(item, not marked, f"has Markdown: {what}" if marked else "plain text")
    return finding(item, bool(built), "Markdown with structure" if built else "has no structure of Markdown")


def json_fits(item: JsonItem, document: Document) -> ItemFinding:
    text = document.raw
    if item.within == "block":
        blocks = [block for block in document.of("code") if block.language in JSON_NAMES and block.closed]
        if len(blocks) != 1:
            return finding(item, False, f"{len(blocks)} code blocks of JSON, exactly one is required")
        text = blocks[0].text
    try:
        faults = faults_of(item.rules, read_json(text))
    except NotJsonError as error:
        return finding(item, False, f"not JSON: {error}")
    except RecursionError:
        return finding(item, False, "nested too deeply")
    if not faults:
        return finding(item, True, "fits the schema")
    listing = [{"at": escaped(at), "rule": escaped(rule)} for at, rule in faults[:10]]
    return finding(item, False, "does not fit the schema at {at}: {rule}".format(**listing[0]), faults=listing)
