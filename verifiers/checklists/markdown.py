"""A Markdown text, read once: blocks, faults with their places, addresses and footnotes.

A block has the text that a reader sees, so struck text is dropped. Private-use characters, which no text may contain,
mark footnote references, superscripts, subscripts and code.

CommonMark parser with GitHub's tables and strikethrough, and footnotes, from `markdown-it-py`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from verifiers.checklists.spec import Unreadable
from verifiers.checklists.words.characters import character_faults, visible
from verifiers.contract.text import escaped

MAX_NESTING = 60


def _footnotes(state: StateCore) -> None:
    """Records for each footnote its position, if it is duplicated, and if visible text cites it. The parser loses this
    when it moves footnotes to the end. A citation from a cited footnote counts."""
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


MAX_OPEN_BRACKETS = 5_000
"""Maximum surplus of opening brackets: the parser's time grows with their square."""
NOTE = re.compile("\ue000([^\ue000\ue001]*)\ue001")
"""Footnote reference, by name; a reader sees a number there."""
RAISED, LOWERED, LEVEL = "\ue002", "\ue003", "\ue004"
"""Markers before raised text, before lowered text, and after either."""
CODE, CODE_END = "\ue005", "\ue006"
"""Markers around inline code, which is neither cited nor quoted."""
CODE_SPAN = re.compile(f"{CODE}[^{CODE_END}]*{CODE_END}")
OFF_LINE = re.compile(f"([{RAISED}{LOWERED}])([^{RAISED}{LOWERED}{LEVEL}]*){LEVEL}")
MARKS = re.compile(f"[{RAISED}{LOWERED}{LEVEL}{CODE}{CODE_END}]")
SUPERSCRIPT = str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
SUBSCRIPT = str.maketrans("0123456789+-\u2212", "₀₁₂₃₄₅₆₇₈₉₊₋₋")
SHOWN_AS = {
    "<q>": "\u201c", "</q>": "\u201d", "<sup>": RAISED, "</sup>": LEVEL, "<sub>": LOWERED, "</sub>": LEVEL,
    "<code>": CODE, "</code>": CODE_END, "<kbd>": CODE, "</kbd>": CODE_END, "<br>": "\n", "<br/>": "\n", "<br />": "\n",
}  # fmt: skip
"""Visible text of each tag, or its marker."""
STRUCK = frozenset({"<s>", "<del>"})
TAGS = ("b", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "strong", "sub", "sup", "u", "var")
TAG = re.compile(rf"<(/?)({'|'.join(TAGS)})>|<br ?/?>", re.IGNORECASE)
BETWEEN_DIGITS = re.compile("(?<=[0-9])[\u00a0\u2000-\u200a\u202f\u205f](?=[0-9])")
BLANKS = re.compile(r"[^\S\u202f]+|(?<![0-9])\u202f|\u202f(?![0-9])")
"""Word separators; a narrow blank between digits is kept, because it separates thousands."""
MARKUP = re.compile(r"<[A-Za-z/!?]")
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
ANY_TAG = re.compile(r"<[A-Za-z/!?][^<>]*(?:>|\Z)")
STRUCK_HTML = re.compile(r"<(s|del)>.*?</\1>", re.DOTALL | re.IGNORECASE)
SITE = re.compile(
    r"(?<![\w@./-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:(?:com|org|net|edu|gov|info|eu|example|test)(?![\w@-])"
    r"|[a-z]{2}(?=/))(?:/[^\s<>\"'\u201d)\]}\ue000-\ue006]*)?"
)
"""Web address without a scheme, in lower case; not an e-mail address."""
ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"'\u201d)\]}\ue000-\ue006]+", re.IGNORECASE)


def unmarked(text: str) -> str:
    """Removes footnote references and internal markers (of raised text and inline code) from a block's text."""
    return MARKS.sub("", NOTE.sub("", text))


def marked(text: str) -> str:
    """Rewrites footnote references as `[^name]`, raised or lowered numbers in Unicode, and removes other marks."""
    return MARKS.sub("", OFF_LINE.sub(_off_line, NOTE.sub(r"[^\1]", text)))


def quotable(text: str) -> str:
    """Formats a block's text with footnote references as `[^name]`, and inline code replaced by a mark."""
    return marked(CODE_SPAN.sub(" ` ", text))


def _off_line(part: re.Match[str]) -> str:
    if not re.fullmatch("[0-9+,\u2212-]+", part[2]):
        return part[2]
    return part[2].translate(SUPERSCRIPT if part[1] == RAISED else SUBSCRIPT)


BlockKind = Literal["heading", "item", "table", "code", "paragraph", "note"]
PROSE: tuple[BlockKind, ...] = ("item", "note", "paragraph")


@dataclass(frozen=True)
class TextFault:
    """One place where a text cannot be read."""

    ground: Unreadable
    line: int
    """Line number, from 1, as is `column`; columns are counted in NFC."""
    column: int
    what: str
    """Description, escaped."""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.what}"


@dataclass(frozen=True)
class MarkdownBlock:
    kind: BlockKind
    text: str
    """Visible text in one line; the source for code, empty for a table."""
    level: int = 0
    language: str = ""
    closed: bool = True
    """False for a code block with an unclosed fence."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Header and rows of a table."""
    name: str = ""
    """Name of a footnote."""
    quoted: bool = False
    """True within a block quotation (`>`)."""

    def shown_by(self, show: Callable[[str], str]) -> MarkdownBlock:
        """Returns the block with `show` applied to its text or cells; code is unchanged."""
        if self.kind == "code":
            return self
        rows = tuple(tuple(map(show, row)) for row in self.rows)
        return replace(self, text=show(self.text), rows=rows)


class MarkdownReader:
    """Parsed Markdown text: its blocks, addresses and footnotes, and the places that cannot be read."""

    def __init__(self, raw: str, data: bool) -> None:
        text = unicodedata.normalize("NFC", raw.replace("\r\n", "\n").replace("\r", "\n"))
        self.blocks: list[MarkdownBlock] = []
        self.faults: list[TextFault] = []
        self.addresses: list[str] = []
        self.sites: list[str] = []
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
            self._fault("nesting", None, "[", f"more than {MAX_OPEN_BRACKETS:,} unclosed brackets")
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
            what = "an uncited or duplicate footnote"
            self._fault("definitions", known["footnote_maps"][name], "[^", what)
        if not self.faults:
            # Words split by markup, and characters written as entities.
            starts = [0, *accumulate(len(text) + 1 for _, text in self._shown)]
            for at, ground, what in character_faults("\n".join(text for _, text in self._shown)):
                line, _ = self._shown[bisect_right(starts, at) - 1]
                self.faults.append(TextFault(ground, line + 1, 1, what))

    def _walk(self, tokens: list[Token]) -> None:
        quotes = notes = 0
        name = ""
        items: list[int | None] = []
        """Block index for each enclosing list item."""
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
                    name = str(token.meta.get("label", ""))
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
                        named = name if kind == "note" else ""
                        self.blocks.append(MarkdownBlock(kind, text, name=named, quoted=quotes > 0))

    def _line(self, token: Token, text: str) -> str:
        """Returns the text of a parsed piece in one line. Web addresses are taken out and recorded; ignorable
        characters are removed."""
        self._shown.append((token.map[0] if token.map else 0, unmarked(text)))
        self.addresses += ADDRESS.findall(CODE_SPAN.sub(" ", text))
        self.sites += SITE.findall(ADDRESS.sub(" ", CODE_SPAN.sub(" ", text)))
        shown = BETWEEN_DIGITS.sub("\u202f", visible(ADDRESS.sub("", text)))
        return " ".join(BLANKS.split(shown.strip()))

    def _fault(self, ground: Unreadable, lines: list[int] | None, sign: str, what: str) -> None:
        """Records that a text cannot be read at the first occurrence of `sign` within the given lines, or else
        anywhere."""
        start, end = lines or (0, len(self._lines))
        near = (
            at
            for at in (*range(start, min(end, len(self._lines))), *range(len(self._lines)))
            if sign in self._lines[at]
        )
        at = next(near, start)
        self.faults.append(TextFault(ground, at + 1, max(0, self._lines[at].find(sign)) + 1, what))

    def _width(self, lines: list[int] | None, columns: int) -> int:
        """Returns the number of cells written in a table row. More cells than columns are recorded as unreadable."""
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
            self._fault("titles", token.map, token.info.strip(), "words after the language of a code block")
        return MarkdownBlock("code", visible(token.content.removesuffix("\n")), language=language, closed=closed)

    def _html(self, token: Token) -> str:
        """Returns the visible text of an HTML block. Tags that are not allowed are recorded as unreadable."""
        self.marked = True
        beside = MARKUP.search(TAG.sub("", token.content))
        if beside:
            self._fault(
                "comments" if "<!--" in token.content else "tags", token.map, beside.group(), _refused(token.content)
            )
        self._nest([match[0] for match in TAG.finditer(token.content)], token.map)
        shown = STRUCK_HTML.sub("", COMMENT.sub("", token.content))
        shown = ANY_TAG.sub(lambda tag: SHOWN_AS.get(tag[0].lower(), ""), shown)
        return self._line(token, html.unescape(shown))

    def _nest(self, tags: list[str], lines: list[int] | None) -> None:
        """Records HTML tags inside themselves, or left open, as unreadable: text shrunk repeatedly is invisible."""
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
        struck: list[int] = []
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
                case "text":
                    pieces.append(part.content)
                case "code_inline":
                    pieces.append(f"{CODE}{part.content}{CODE_END}")
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
                    if before == images and not visible(unmarked(text)).strip():
                        self._fault("titles", token.map, "[", "a link that shows nothing")
                    key = opening.meta.get("label")
                    if opening.markup == "autolink":
                        pieces[at:] = []
                    elif key and normalizeReference(key) == normalizeReference(text):
                        pieces[at:] = [f"[{text}]"]
                case "s_open":
                    struck.append(len(pieces))
                case "s_close":
                    del pieces[struck.pop() :]
                case "html_inline" if TAG.fullmatch(part.content):
                    tag = part.content.lower()
                    tags.append(tag)
                    if tag in STRUCK:
                        struck.append(len(pieces))
                    elif tag.replace("/", "") in STRUCK and struck:
                        del pieces[struck.pop() :]
                    pieces.append(SHOWN_AS.get(tag, ""))
                case "html_inline":
                    ground: Unreadable = "comments" if part.content.startswith("<!--") else "tags"
                    self._fault(ground, token.map, part.content.partition("\n")[0], _refused(part.content))
        self._nest(tags, token.map)
        text = "".join(pieces)
        return self._line(token, text)


def _refused(tag: str) -> str:
    return f"a comment that no reader sees: {escaped(tag)}" if "<!--" in tag else f"tag not allowed: {escaped(tag)}"
