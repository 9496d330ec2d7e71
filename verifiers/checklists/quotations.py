"""Quotations, in every form that a reader sees as one, and whether a source has them word for word.

Double and single quotation marks of all sorts and languages, `<q>`, and quotations set apart with `>`. One that is
opened and not closed reaches to the end of its paragraph. A note that is set apart (`> **Note:** ...`) is none; what
its own marks quote is. Left out of a quotation may be what is marked so (`...`, `[...]`), and in square brackets an
editor may put in a few words, or change a letter. A negation is neither put in nor left out: that holds from where the
quotation breaks off to the end of that sentence, and from the beginning of the one in which it goes on; `safety, not
distance,` negates nothing beyond itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from verifiers.checklists.brackets import Cited, cited_in, cited_within
from verifiers.checklists.characters import is_bounded, visible
from verifiers.checklists.document import Document
from verifiers.checklists.prose import words

MOST = 20_000
DOUBLE = {
    "“": "”", "„": "“”\"", "‟": "”", "«": "»", "»": "«»", "‹": "›", "›": "‹›", "「": "」", "『": "』", "｢": "｣",
    "❝": "❞", "〝": "〞〟", "”": "”", '"': '"', "＂": "＂",
}  # fmt: skip
"""Each mark that opens a quotation, and those that close it."""
OPENS = re.compile("[" + "".join(DOUBLE) + "]|``|(?<!\\w)(?:''|[‘‚'❛])(?=[^\\s\\d])")
ELIDED = re.compile(r"(?:tis|twas|twere|em|til|cause|bout|round|n|cos|nuff|s|t|d|ll|re|ve|m)\b", re.IGNORECASE)
"""Words that begin with an apostrophe."""
SINGLE_ENDS = re.compile("(?<=\\S)['’‘❜](?!\\w)")
LONGEST_SINGLE = 600
CALLOUT = re.compile(
    r"(?:\[!\w+\]|(?:\W{0,3})(?:note|tip|warning|important|caution|hint|example|update|remark|info|tl;dr|summary"
    r"|hinweis|achtung|tipp|beispiel|nota|remarque|attention|attenzione|aviso|consejo|примечание|注意|提示)\b[^.!?]{0,20}[:!.—–-])",
    re.IGNORECASE,
)
ATTRIBUTION = re.compile(r"\s(?:—|–|--|―|-)\s?(?=\S)[^—–―]{1,160}$")
ENDS = re.compile(r"[.!?。！？]\s|\n")
INSERTED = re.compile(r"\[([^\[\]]{1,60})\]")
OMITTED = re.compile(r"[\[(]?(?:\.\s?\.\s?\.|…)\.?[\])]?")
NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|hardly|un\w+|nicht|kein\w*|nie|pas|jamais|aucun\w*|nunca|non|не|нет)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
MOST_INSERTED = 4
MOST_PLACES = 50
"""In a source at which a part is looked at: what is left out before each is read, so that all of them cost a square."""
NEGATED = (
    r"(?:not|no|never|none|nobody|nothing|nor|neither|hardly|rarely|seldom|scarcely|barely|cannot|nicht|kein\w*|kaum|selten"
    r"|nie|niemals|niemand|pas|jamais|aucun\w*|nunca|jamás|non(?!-)|niet|geen|ikke|inte|не|нет|никогда)\b|\w*n't\b"
)
LEFT_OUT = re.compile(rf"\b(?:{NEGATED})", re.IGNORECASE)
CONTRAST = re.compile(r"(?<=\w), not\b[^,;:.!?]*[,;:]|\bwith no\b", re.IGNORECASE)


@dataclass(frozen=True)
class Quotation:
    start: int
    end: int
    text: str
    key: str = ""
    """Of the source that is named in it, or behind it in its sentence before another quotation."""
    key_at: int = 0
    longer: tuple[str, ...] = ()
    """What else it may be: a plural's apostrophe (`the farmers' fields`) looks as its end does."""
    unattributed: str | None = None
    """Without the name behind a dash at its end."""

    def of(self, least: int) -> list[str]:
        """What it may be, of so many words; nothing where it is no quotation of that size."""
        texts = [text for text in (self.text, *self.longer) if _size(text) >= least]
        if self.unattributed is None or not texts:
            return texts
        return [self.unattributed, *texts] if _size(self.unattributed) >= least else []


def _size(text: str) -> float:
    """In words; a character of a script without spaces is half a one."""
    return sum(0.5 if len(word) == 1 and not is_bounded(word) else 1.0 for word in words(text))


@dataclass(frozen=True)
class Passage:
    """A block, or a cell of a table, with what it cites and quotes."""

    cited: tuple[Cited, ...]
    quotations: tuple[Quotation, ...]


def passages(document: Document, known: Sequence[str]) -> Iterator[Passage]:
    for block in document.quotable_blocks:
        apart = block.quoted and not CALLOUT.match(block.text)
        for text in (block.text, *(cell for row in block.rows for cell in row)):
            cited = cited_in(text, known)
            quoted = list(_set_apart(text, cited, known) if apart else _marked(text, cited, known))
            for at, (one, other) in enumerate(pairwise(quoted)):
                if other.start < one.key_at:
                    quoted[at] = replace(one, key="")
            yield Passage(tuple(cited), tuple(quoted))


def _set_apart(text: str, cited: list[Cited], known: Sequence[str]) -> Iterator[Quotation]:
    if re.match(r"(?:—|–|--|―|-)\s?\w", text):
        return
    keys = [key for place in cited for key in place.keys if key in known]
    shown = _without(text, 0, len(text), cited, known).strip()
    named = ATTRIBUTION.search(shown)
    unattributed = shown[: named.start()].strip() if named else None
    yield Quotation(0, len(text), shown, keys[-1] if keys else "", unattributed=unattributed)


def _without(text: str, start: int, end: int, cited: list[Cited], known: Sequence[str]) -> str:
    """A part of a text, without where it cites known sources."""
    kept = []
    for place in cited_within(cited, start, end):
        if place.end <= end and set(place.keys) <= set(known):
            kept.append(text[start : place.start].rstrip())
            start = place.end
    return "".join([*kept, text[start:end]])


def _marked(text: str, cited: list[Cited], known: Sequence[str]) -> Iterator[Quotation]:
    """The quotations between marks in one block."""
    at = 0
    while (opened := OPENS.search(text, at)) is not None:
        at = start = opened.end()
        ends = _ends(text, opened.start(), start, opened.group())
        if not ends or not text[start : ends[0]].strip():
            continue
        inside, *longer = (_without(text, start, end, cited, known) for end in ends)
        keys = [key for place in cited_within(cited, start, ends[-1]) for key in place.keys if key in known]
        key, key_at = (keys[-1], start) if keys else _key_behind(text, ends[-1] + 1, cited, known)
        yield Quotation(start, ends[-1], inside, key, key_at, tuple(longer))
        at = ends[0] + 1


def _ends(text: str, at: int, start: int, mark: str) -> list[int]:
    """Where the quotation may end that this mark opens; nothing where it opens none."""
    if mark in DOUBLE:
        if mark == '"' and text[at - 1 : at].isdigit() and not text[start : start + 1].isalpha():
            return []  # inches
        if mark == "”" and not _begins(text, at):
            return []
        found = re.compile(f"[{DOUBLE[mark]}]").search(text, start, start + MOST)
        if found is None and mark in '"»›' and not _begins(text, at):
            return []
        return [found.start() if found else len(text)]
    if mark in ("``", "''"):
        found = re.compile("''|\"").search(text, start, start + MOST)
        return [found.start() if found else len(text)]
    return [] if ELIDED.match(text, start) else _single_ends(text, start)


def _begins(text: str, at: int) -> bool:
    return (at == 0 or text[at - 1] in " (\n") and text[at + 1 : at + 2].isalnum()


def _single_ends(text: str, start: int) -> list[int]:
    """The first end, and those behind it while what ends is a plural that goes on."""
    ends: list[int] = []
    for found in SINGLE_ENDS.finditer(text, start, start + LONGEST_SINGLE):
        if ends and OPENS.search(text, start, found.start()):
            break
        ends.append(found.start())
        if text[found.start() - 1] not in "sz" or not re.match(r"\s[^\W\d_]", text[found.end() :][:2]):
            break
    return ends


def _key_behind(text: str, end: int, cited: list[Cited], known: Sequence[str]) -> tuple[str, int]:
    """The key that follows in the same sentence, and where."""
    place = next(iter(cited_within(cited, end - 1, end + 200)), None)
    if place is None or ENDS.search(text[end : place.start].lstrip(".!?\"'”’»")):
        return "", 0
    return next((key for key in place.keys if key in known), ""), place.start


def same_text(text: str) -> str:
    """For comparing word for word: one sort of quotation mark and dash, white space single, case kept."""
    normal = unicodedata.normalize("NFKC", visible(re.sub(r"\[\^[^\]]*\]|[⁰¹²³⁴-⁹]+", "", text)))
    normal = re.sub("[“”„‟«»‹›「」『』❝❞〝〞〟]|``|''", '"', normal)
    normal = re.sub("(?<=\\w)[‘’‛ʼ](?=\\w)", "'", re.sub("[‘’‚‛❛❜]", "’", normal)).replace("’", '"')
    normal = re.sub("(?<!\\w)'|'(?!\\w)", '"', normal)
    return " ".join(re.sub("[\u2010-\u2015\u2212]", "-", normal).split())


def is_verbatim(quotation: str, sources: Sequence[str]) -> bool:
    """Whether one of the sources (made `same_text`) has it. Parts left out (`...`) must be marked and in order."""
    parts = [part.strip(" ,.;:\"'") for part in OMITTED.split(same_text(quotation))]
    parts = [part for part in parts if part]
    if not parts or any(len(words(part)) < 2 for part in parts[1:]):
        return False
    if len(words(" ".join(parts))) < 4 * (len(parts) - 1):
        return False
    inserted = [insertion[1] for part in parts for insertion in INSERTED.finditer(part) if len(insertion[1]) > 1]
    own = len(words(INSERTED.sub(" ", " ".join(parts))))
    if len(inserted) > MOST_INSERTED or any(NEGATION.search(one) for one in inserted):
        return False
    if len(words(" ".join(inserted))) > own / 2:
        return False
    patterns = [re.compile(_loosely(part)) for part in parts]
    return any(_has_in_order(source, patterns) for source in sources)


def _has_in_order(source: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    at = 0
    for number, pattern in enumerate(patterns):
        found = islice(pattern.finditer(source, at), MOST_PLACES)
        match = next((one for one in found if not number or _may_be_left_out(source[at : one.start()])), None)
        if match is None:
            return False
        at = match.end()
    return True


def _may_be_left_out(text: str) -> bool:
    pieces = re.split(r"[.!?]\s", CONTRAST.sub(" ", text))
    return not any(LEFT_OUT.search(piece) for piece in (pieces[0], pieces[-1]))


def _loosely(part: str) -> str:
    """The words themselves; only the case of the first letter may differ, as a sentence around it asks."""
    first, *others = re.split(r"\s*\[[^\[\]]{2,60}\]\s*", part)
    own = "|".join(re.escape(word) for one in INSERTED.findall(part) for word in words(one) if len(word) > 2)
    turned = rf"|\w+(?:{own})\b" if own else ""  # `[likely]` in the place of `unlikely`
    pieces = [
        _letter(first[:1]) + _literal(first[1:]) if first[:1].isalpha() else _literal(first),
        *map(_literal, others),
    ]
    before = r"(?<!\w)" if is_bounded(part[:1]) else ""
    after = r"(?!\w)" if is_bounded(part[-1:]) else ""
    return before + rf"\W*(?:(?!(?i:{NEGATED}{turned}))\w+\W+){{0,4}}?".join(pieces) + after


def _literal(text: str) -> str:
    """As it is, with letters in brackets in either case."""
    pieces = re.split(r"\[(\w)\]", text)
    return "".join(_letter(piece) if at % 2 else re.escape(piece) for at, piece in enumerate(pieces))


def _letter(letter: str) -> str:
    return f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() and len(letter.upper()) == 1 else re.escape(letter)
