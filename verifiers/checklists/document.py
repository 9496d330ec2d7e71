"""A text as a reader sees it: headings, list items, tables, code, paragraphs, notes; and where it cannot be read.

The text is Markdown as markdown-it-py reads it: CommonMark, the tables and the struck text of GitHub, footnotes. Beside
that it may have a short list of inline tags without attributes, none inside itself. Everything else that a page does
not show, or that could hide something, is a fault with its place: another tag, an attribute, a comment, the title of a
link, a link that shows nothing, words behind the language of a code block, a definition or a footnote that nothing
shown cites, a cell beyond its table, a tag that its block does not close;
and every character that `verifiers.checklists.characters` does not allow. Whatever the fault: comments, titles,
definitions and cells beyond the table are part of no block; the text between tags is.

Addresses of links and images, what stands for an image, and the name by which a footnote is cited, are allowed and part
of no block. Reading never fails.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from verifiers.checklists.characters import character_faults, visible
from verifiers.checklists.claims import without_claims
from verifiers.checklists.spec import Unreadable
from verifiers.contract.text import escaped

MAX_NESTING = 60
MAX_OPEN_BRACKETS = 5_000
"""More than are closed: the parser needs time that grows with their square."""
NOTE = re.compile("\ue000([^\ue000\ue001]*)\ue001")
"""Where a footnote is cited, by its name: a reader sees a number there."""


def _footnotes(state: StateCore) -> None:
    """What the parser forgets when it moves the footnotes to the end: how often each is written, and where, and which
    are cited from what is shown, be it by way of another footnote."""
    written: Counter[str] = Counter()
    cites: dict[str, set[str]] = {}
    within = [""]
    for token in state.tokens:
        if token.type == "footnote_reference_open":
            within.append(token.meta["label"])
            written[within[-1]] += 1
            state.env.setdefault("footnote_maps", {})[within[-1]] = token.map
        elif token.type == "footnote_reference_close":
            within.pop()
        for part in token.children or ():
            if part.type == "footnote_ref":
                cites.setdefault(within[-1], set()).add(part.meta["label"])
    shown, waiting = {""}, [""]
    while waiting:
        fresh = cites.get(waiting.pop(), set()) - shown
        shown |= fresh
        waiting += fresh
    state.env["footnote_faults"] = [name for name in written if name not in shown or written[name] > 1]


PARSER = (
    MarkdownIt("commonmark", {"html": True, "store_labels": True, "maxNesting": MAX_NESTING})
    .enable(["table", "strikethrough"])
    .use(footnote_plugin)
    .disable("footnote_inline")
)
PARSER.core.ruler.before("footnote_tail", "footnotes", _footnotes)
TAGS = ("b", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "strong", "sub", "sup", "u", "var")
TAG = re.compile(rf"<(/?)({'|'.join(TAGS)})>|<br ?/?>", re.IGNORECASE)
MARKUP = re.compile(r"<[A-Za-z/!?]")
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
ANY_TAG = re.compile(r"<[A-Za-z/!?][^<>]*(?:>|\Z)")
ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"'\u201d)\]}\ue000]+", re.IGNORECASE)
SIGNS = re.compile(r"[*_~`\\\[\]]|-\s")
"""What may cut a word that a reader sees in one piece."""
NARROW = re.compile("[\u2006-\u200a\u202f\u205f\u2800]")
"""Spaces so narrow that they may do so, too, and the blank of Braille."""

BlockKind = Literal["heading", "item", "table", "code", "paragraph", "note"]
PROSE: tuple[BlockKind, ...] = ("item", "note", "paragraph")


@dataclass(frozen=True)
class TextFault:
    """One place where a text cannot be read."""

    ground: Unreadable
    line: int
    """From 1, as `column`; columns are counted in NFC."""
    column: int
    what: str
    """Escaped."""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.what}"


@dataclass(frozen=True)
class MarkdownBlock:
    kind: BlockKind
    text: str
    """As a reader sees it, in one line; of code the source, of a table nothing."""
    level: int = 0
    language: str = ""
    closed: bool = True
    """Of code: whether its fence is closed."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Of a table: its header and its rows."""
    quoted: bool = False
    """Whether it is in a quotation set apart with `>`."""


@dataclass(frozen=True)
class Document:
    raw: str
    claims: bool = True
    """Whether sentences count in which the text speaks of itself."""
    data: bool = False
    """Whether it is data, such as JSON: then it is one paragraph, as it is written."""

    @cached_property
    def _read(self) -> _Reader:
        return _Reader(self.raw, self.data)

    @property
    def faults(self) -> tuple[TextFault, ...]:
        """In order of their lines."""
        return tuple(sorted(set(self._read.faults), key=lambda fault: (fault.line, fault.column)))

    @cached_property
    def _counted(self) -> tuple[MarkdownBlock, ...]:
        if self.claims:
            return tuple(self._read.blocks)
        without = (
            replace(block, text=without_claims(block.text)) if block.kind in PROSE else block
            for block in self._read.blocks
        )
        return tuple(block for block in without if block.text or block.kind not in PROSE)

    @cached_property
    def blocks(self) -> tuple[MarkdownBlock, ...]:
        return self._with_notes("")

    @cached_property
    def cited_blocks(self) -> tuple[MarkdownBlock, ...]:
        """The blocks, with `[^name]` where a footnote is cited."""
        return self._with_notes(r"[^\1]")

    def _with_notes(self, form: str) -> tuple[MarkdownBlock, ...]:
        if not self._read.notes:
            return self._counted
        return tuple(
            block
            if block.kind == "code"
            else replace(
                block,
                text=NOTE.sub(form, block.text),
                rows=tuple(tuple(NOTE.sub(form, cell) for cell in row) for row in block.rows),
            )
            for block in self._counted
        )

    def of(self, *kinds: BlockKind) -> tuple[MarkdownBlock, ...]:
        return tuple(block for block in self.blocks if block.kind in kinds)

    @cached_property
    def prose(self) -> str:
        """Headings, list items, paragraphs and notes, one a line."""
        return "\n".join(block.text for block in self.of("heading", *PROSE))

    @cached_property
    def shown(self) -> str:
        """The prose and the cells of tables: all that a reader reads, apart from code."""
        return _joined(self.blocks)

    @cached_property
    def cited(self) -> str:
        """What is shown, with `[^name]` where a footnote is cited."""
        return _joined(self.cited_blocks)

    @cached_property
    def everything(self) -> str:
        """What is shown, and code."""
        return "\n".join([self.shown, *(block.text for block in self.of("code"))])

    @property
    def addresses(self) -> tuple[str, ...]:
        """Web addresses outside code, as written, without the full stop of a sentence."""
        return tuple(address.rstrip(".,;:!?*_") for address in self._read.addresses if address)

    @property
    def notes(self) -> frozenset[str]:
        """The names of its footnotes."""
        return frozenset(self._read.notes)

    @property
    def is_marked_up(self) -> bool:
        """Whether it has anything of Markdown but paragraphs of text."""
        return self._read.marked or any(block.kind != "paragraph" or block.quoted for block in self._read.blocks)


def _joined(blocks: Iterable[MarkdownBlock]) -> str:
    texts = (block for block in blocks if block.kind != "code")
    return "\n".join("\n".join(" | ".join(row) for row in block.rows) or block.text for block in texts)


class _Reader:
    """One reading of one text."""

    def __init__(self, raw: str, data: bool) -> None:
        text = unicodedata.normalize("NFC", raw.replace("\r\n", "\n").replace("\r", "\n"))
        self.blocks: list[MarkdownBlock] = []
        self.faults: list[TextFault] = []
        self.addresses: list[str] = []
        self.notes: set[str] = set()
        self.marked = False
        self._lines = text.split("\n")
        self._shown: list[tuple[int, str]] = []
        self._cited: set[str] = set()
        starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        for at, ground, what in character_faults(text):
            line = bisect_right(starts, at)
            self.faults.append(TextFault(ground, line, at - starts[line - 1] + 1, what))
        if data:
            self.blocks.append(MarkdownBlock("paragraph", visible(text)))
        elif text.count("[") - text.count("]") > MAX_OPEN_BRACKETS:
            self._fault("nesting", None, "[", f"more than {MAX_OPEN_BRACKETS:,} brackets that are not closed")
        else:
            self._markdown(text)

    def _markdown(self, text: str) -> None:
        known: dict[str, Any] = {}
        self._walk(PARSER.parse(text, known))
        definitions = known.get("references", {})
        unused = [definitions[label]["map"] for label in definitions if label not in self._cited]
        for at in (*unused, *(twice["map"] for twice in known.get("duplicate_refs", ()))):
            self._fault("definitions", at, "[", "a definition that nothing cites")
        for name in known["footnote_faults"]:
            what = "a footnote that nothing shown cites, or that is there twice"
            self._fault("definitions", known["footnote_maps"][name], "[^", what)
        if not self.faults:
            # What signs cut into pieces, and what entities stand for.
            starts = [0, *accumulate(len(text) + 1 for _, text in self._shown)]
            for at, ground, what in character_faults("\n".join(text for _, text in self._shown)):
                line, _ = self._shown[bisect_right(starts, at) - 1]
                self.faults.append(TextFault(ground, line + 1, 1, what))

    def _walk(self, tokens: list[Token]) -> None:
        quotes = notes = 0
        items: list[int | None] = []
        """For each list item around this place, where its block is."""
        rows: list[tuple[str, ...]] = []
        row: list[str] = []
        row_map: list[int] | None = None
        for before, token in pairwise([Token("", "", 0), *tokens]):
            if token.level >= MAX_NESTING - 2:
                self._fault("nesting", token.map, "", "nested too deeply")
                return
            match token.type:
                case "blockquote_open" | "blockquote_close":
                    quotes += token.nesting
                case "footnote_open" | "footnote_close":
                    notes += token.nesting
                case "list_item_open":
                    items.append(None)
                case "list_item_close":
                    items.pop()
                case "table_open":
                    rows = []
                case "tr_open":
                    row = []
                case "tr_close":
                    rows.append(tuple(row[: self._width(row_map, len(row))]) if rows else tuple(row))
                case "table_close":
                    self.blocks.append(MarkdownBlock("table", "", rows=tuple(rows)))
                case "fence" | "code_block":
                    self.blocks.append(self._code(token))
                case "html_block":
                    self.blocks.append(MarkdownBlock("paragraph", self._html(token), quoted=quotes > 0))
                case "inline":
                    text = self._inline(token)
                    if before.tag in ("th", "td"):
                        row.append(text)
                        row_map = token.map
                    elif before.tag != "p":
                        self.blocks.append(MarkdownBlock("heading", text, level=int(before.tag[1])))
                    elif items and items[-1] is not None:
                        item = self.blocks[items[-1]]
                        self.blocks[items[-1]] = replace(item, text=f"{item.text} {text}")
                    elif text:
                        kind: BlockKind = "note" if notes else "item" if items else "paragraph"
                        items[-1:] = [len(self.blocks)] if items else []
                        self.blocks.append(MarkdownBlock(kind, text, quoted=quotes > 0))

    def _line(self, token: Token, text: str) -> str:
        """In one line, without web addresses and what is ignorable; it is remembered as it was."""
        self._shown.append((token.map[0] if token.map else 0, NOTE.sub("", text)))
        self.addresses += ADDRESS.findall(text)
        return " ".join(visible(ADDRESS.sub("", text)).split())

    def _fault(self, ground: Unreadable, lines: list[int] | None, sign: str, what: str) -> None:
        """A fault at the first place of `sign` within these lines, else anywhere."""
        start, end = lines or (0, len(self._lines))
        near = (
            at
            for at in (*range(start, min(end, len(self._lines))), *range(len(self._lines)))
            if sign in self._lines[at]
        )
        at = next(near, start)
        self.faults.append(TextFault(ground, at + 1, max(0, self._lines[at].find(sign)) + 1, what))

    def _width(self, lines: list[int] | None, columns: int) -> int:
        """How many cells a row of a table was written with; more than the table shows are a fault."""
        line = self._lines[lines[0]] if lines else ""
        cells = escapedSplit(re.sub(r"^[\s>]*\|?|\|?\s*$", "", line))
        if len(cells) > columns:
            self._fault("cells", lines, cells[columns], "a cell beyond the columns of its table")
        return len(cells)

    def _code(self, token: Token) -> MarkdownBlock:
        start, end = token.map or (0, 0)
        fence = re.escape(token.markup[:1]) + f"{{{len(token.markup)},}}"
        closed = not token.markup or (
            end - 1 > start and bool(re.fullmatch(rf"[\s>]*{fence}\s*", self._lines[end - 1]))
        )
        language, _, more = token.info.strip().lower().partition(" ")
        if more:
            self._fault("titles", token.map, token.info.strip(), "words behind the language of a code block")
        return MarkdownBlock("code", visible(token.content.removesuffix("\n")), language=language, closed=closed)

    def _html(self, token: Token) -> str:
        """The text of a block of HTML, as long as it has allowed tags only."""
        self.marked = True
        beside = MARKUP.search(TAG.sub("", token.content))
        if beside:
            self._fault(
                "comments" if "<!--" in token.content else "tags", token.map, beside.group(), _refused(token.content)
            )
        self._nest([match[0] for match in TAG.finditer(token.content)], token.map)
        return self._line(token, html.unescape(ANY_TAG.sub("", COMMENT.sub("", token.content))))

    def _nest(self, tags: list[str], lines: list[int] | None) -> None:
        """No tag inside itself, and none left open: what is set small again and again is not read."""
        opened: set[str] = set()
        for tag in tags:
            name = tag.strip("</>").lower()
            if tag.startswith("</"):
                opened.discard(name)
            elif name in opened:
                self._fault("tags", lines, tag, f"the tag {tag} inside itself")
            elif not name.startswith("br"):
                opened.add(name)
        if opened:
            self._fault("tags", lines, f"<{min(opened)}", f"the tag <{min(opened)}>, which its block does not close")

    def _inline(self, token: Token) -> str:
        pieces: list[str] = []
        tags: list[str] = []
        links: list[tuple[Token, int, int]] = []
        images = 0
        for part in token.children or ():
            self.marked = self.marked or part.type not in ("text", "softbreak", "hardbreak")
            if label := part.meta.get("label"):
                self._cited.add(normalizeReference(label))
            if title := part.attrs.get("title"):
                self._fault("titles", token.map, str(title), f"a title that no reader sees: {escaped(str(title))}")
            if part.type == "text" and "<!--" in part.content:
                self._fault("comments", token.map, "<!--", "the beginning of a comment")
            match part.type:
                case "text" | "code_inline":
                    pieces.append(part.content)
                case "softbreak" | "hardbreak":
                    pieces.append("\n")
                case "footnote_ref":
                    self.notes.add(str(label))
                    pieces.append(f"\ue000{label}\ue001")
                case "image":
                    images += 1
                    self.addresses.append(str(part.attrs["src"]))
                case "link_open":
                    links.append((part, len(pieces), images))
                case "link_close":
                    opening, at, before = links.pop()
                    self.addresses.append(str(opening.attrs["href"]))
                    text = "".join(pieces[at:])
                    if before == images and not visible(NOTE.sub("", text)).strip():
                        self._fault("titles", token.map, "[", "a link that shows nothing")
                    key = opening.meta.get("label")
                    if opening.markup == "autolink":
                        pieces[at:] = []
                    elif key and normalizeReference(key) == normalizeReference(text):
                        pieces[at:] = [f"[{text}]"]
                case "html_inline" if TAG.fullmatch(part.content):
                    tags.append(part.content)
                    pieces.append("\n" if part.content.lower().startswith("<br") else "")
                case "html_inline":
                    ground: Unreadable = "comments" if part.content.startswith("<!--") else "tags"
                    self._fault(ground, token.map, part.content.partition("\n")[0], _refused(part.content))
        self._nest(tags, token.map)
        text = "".join(pieces)
        return self._line(token, text)


def _refused(tag: str) -> str:
    return (
        f"a comment that no reader sees: {escaped(tag)}" if "<!--" in tag else f"no tag that is allowed: {escaped(tag)}"
    )
