"""Finds citations in a text: keys in brackets, names with a year, raised numbers.

Square brackets contain one or more keys (`[1, 3–5]`, `[A, p. 12]`, `[see Smith 2020; Jones 2019]`), except ticks,
omissions, a changed letter (`[t]he`) and editors' remarks. In round brackets, braces or raised, a text is a key if it
is a source's key or looks like one; a name with a year, a page or `et al.` always is. A number in round brackets that
numbers a point (`(1) first`) or repeats a number word (`three (3)`) is not.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SQUARE = re.compile(r"[\[【〔［⟦]([^\[\]【】〔〕［］⟦⟧\n]{1,200})[\]】〕］⟧](?!\()")
ROUND = re.compile(r"(?<!\])[(（{⟨〈]([^()（）{}⟨⟩〈〉\n]{1,200})[)）}⟩〉]")
RAISED = re.compile("[⁰¹²³⁴-⁹]+(?:[,⁻][⁰¹²³⁴-⁹]+)*(?![⁺⁻])")
NARROWED = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x3001: 0x2C}
"""Full-width signs and digits mapped to their ASCII forms of the same length, so that positions stay valid."""
NORMAL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
NO_KEYS = frozenset({"", "x", "X", "...", "…", "sic", "sic!"})
REMARK = re.compile(
    r"(?:my |our |the author's |original )?(?:emphasis|italics|translations?|translated|citation|source|editor|laughter"
    r"|applause|pause|redacted|inaudible|note|footnote|ed)\b.{0,40}|\W+|!\w+|[-+]?[\d.,\s]+[,;][-+\d.,\s]+|\d*\.\d+",
    re.IGNORECASE,
)
"""Other content of square brackets: editors' remarks, intervals."""
LEAD = re.compile(
    r"^(?:see(?: also)?|cf\.?|e\.g\.,?|vgl\.|siehe(?: auch)?|voir|véase|also|source:|ref\.|after|@)\s*", re.IGNORECASE
)
LOCATOR = re.compile(
    r"[,:;]?\s*(?:\b(?:pp?|S|ss?|ch|chap|chapter|sec|section|fig|figure|tab|table|vol|no|lines?|ll?|para|art|Kap"
    r"|Abb|pages?"
    r"|Seite|páginas?|pos|loc|f+|n)\b\.?|§+|¶)\s*[\divxlc]+.*$|:\s*\d+.*$|,\s*(?:ibid|emphasis|translat)\w*.*$",
    re.IGNORECASE,
)
JOINS = re.compile(r"\s*[,/]\s*|\s+(?:and|und|et|y|&)\s+")
YEAR = r"(?:1[5-9]|20)\d\d[a-z]?|n\.\s?d\.|in press|forthcoming"
PARTICLES = "and|&|et|und|y|e|og|och|en|al\\.?|von|van|der|den|de|del|della|la|le|du|di|da|dos|bin|ibn|ter|zu"
SMALL = re.compile(rf"{PARTICLES}|al")
NAMES = rf"[^\W\d_][\w'’.\-]*(?:,?\s(?:{PARTICLES}|[^\W\d_a-z][\w'’.\-]*)){{0,6}}"
NAME_YEAR = re.compile(rf"({NAMES})(?:,\s?|\s)\(?({YEAR})\)?")
NAME_PAGE = re.compile(rf"({NAMES}),\s(?:pp?|S)\.\s?\d[\d\s–-]*")
NO_NAMES = re.compile(
    r"(?:jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|ene|abr|ago|dic|janv|févr|mars|avr|juin|juil"
    r"|août)\w*"
    r"|spring|summer|autumn|fall|winter|since|until|till|from|in|as|before|after|by|during|early|mid|late|circa|ca"
    r"|about"
    r"|version|release|edition|figure|fig|table|tab|chapter|section|appendix|annex|part|volume|vol|model|class|year"
    r"|fy|q\d"
    r"|windows|office|olympics?|euro|expo|world|cup|mon|tues?|wednes|thurs|fri|satur|sun(?:day)?|\w+day|born|died|est"
    r"|founded|seit|bis|ab|im|um|vor|nach|depuis|en|desde|source|data|photo|updated?|published|revised|copyright",
    re.IGNORECASE,
)
"""Words that begin a bracket with a year and are not an author's name."""
ONE_NAME = r"[^\W\d_a-z][\w'’\-]{1,40}(?:\s(?:and|&|und|et|y)\s[^\W\d_a-z][\w'’\-]{1,40}|\set al\.?)?"
NARRATIVE = re.compile(rf"(?<![\w-])({ONE_NAME})(?:['’]s?)?\s\(({YEAR})(?:[,:]\s[^()]{{1,60}})?\)")
SAYS = re.compile(
    r"\s(?:also |first |later |even )?(?:shows?|showed|argue[sd]?|finds?|found|writes?|wrote|states?|stated|reports?"
    r"|reported|claims?|claimed|says?|said|notes?|noted|suggests?|suggested|describe[sd]?|estimate[sd]?|observe[sd]?"
    r"|conclude[sd]?|puts?|measure[sd]?|calls?|called|adds?|agrees?|agreed|gives?|gave)\b"
)
BY = re.compile(r"\b(?:according to|per|by|see|following|nach|laut|selon|según|secondo)\s$", re.IGNORECASE)
NUMBER_WORD = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty(?:-\w+)?|hundred|thousand"
    r"|million"
    r"|dozen|eins?|eine|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn)\s$",
    re.IGNORECASE,
)
BEGINS = re.compile(r"(?:^|[:;,]|\b(?:and|or|und|et|y|oder|ou|o)|[.!?])\s?$")
UNITS = frozenset(
    re.findall(
        r"\w+",
        "sec min hour hours metre metres meter meters feet foot inch inches yards yard miles mile mol pixel pixels"
        " hectare kpc",
    )
)


@dataclass(frozen=True)
class Cited:
    """One citation in a text; its keys are those of sources as far as known."""

    start: int
    end: int
    keys: tuple[str, ...]


def cited_in(text: str, known: Sequence[str]) -> list[Cited]:
    """Returns all citations in one block of text, in order. `known` are the keys of the sources."""
    return sorted(_BracketPlaces(text.translate(NARROWED), known), key=_start)


def cited_within(cited: Sequence[Cited], start: int, end: int) -> Sequence[Cited]:
    """Returns the citations that begin between two positions."""
    return cited[bisect_left(cited, start, key=_start) : bisect_left(cited, end, key=_start)]


def _start(place: Cited) -> int:
    return place.start


def without_cited(text: str, known: Sequence[str]) -> str:
    """Removes citations such as `[3]` from a block, because their numbers are not figures. A bracket such as `[500]`
    that is no citation stays."""
    text = text.translate(NARROWED)
    kept, at = [], 0
    for place in cited_in(text, known):
        noted = text.startswith("[^", place.start) or not text.startswith("[", place.start)
        sure = all(key in known or not NO_KEY.fullmatch(key) for key in place.keys)
        noted |= not known and not any(key.isdecimal() and int(key) > MOST_NOTES for key in place.keys)
        sure &= noted or any(not key.isdecimal() or key in known for key in place.keys)
        if place.start >= at and (sure or NAME_YEAR.fullmatch(text[place.start + 1 : place.end - 1])):
            kept.append(text[at : place.start])
            at = place.end
    return " ".join([*kept, text[at:]]) if kept else text


def shape(key: str) -> str:
    """Returns the form of a citation key: `name year`, or its runs of capitals, small letters and digits."""
    if NAME_YEAR.fullmatch(key):
        return "name year"
    return re.sub(r"9+", "9", re.sub(r"\d", "9", re.sub(r"[^\W\d_a-z]", "A", re.sub(r"[a-z]+", "a", key))))


NO_KEY = re.compile(r"\W*\d{4,}\W*|.*\d\s.*|.*[.,%$€].*")


MOST_NOTES = 30
"""Largest number in square brackets that counts as a note if there are no sources."""


class _BracketPlaces:
    def __init__(self, text: str, known: Sequence[str]) -> None:
        self._text = text
        self._known = {_bare(key): key for key in known}
        self._shapes = {shape(key) for key in known}

    def __iter__(self) -> Iterator[Cited]:
        for match in SQUARE.finditer(self._text):
            letter = len(match[1]) == 1 and match[1].isalpha() and self._text[match.end() : match.end() + 1].isalpha()
            if not letter and (keys := self._square(match[1])):
                yield Cited(match.start(), match.end(), keys)
        for match in ROUND.finditer(self._text):
            if keys := self._round(match):
                yield Cited(match.start(), match.end(), keys)
        for match in NARRATIVE.finditer(self._text):
            if keys := self._narrative(match):
                yield Cited(match.start(), match.end(), keys)
        for match in RAISED.finditer(self._text):
            if keys := self._raised(match):
                yield Cited(match.start(), match.end(), keys)

    def _key(self, text: str) -> str | None:
        return self._known.get(_bare(text))

    def _square(self, inside: str) -> tuple[str, ...]:
        noted = inside.startswith("^")
        inside = inside.removeprefix("^").strip()
        if (whole := self._key(inside)) is not None:
            return (whole,)
        if noted:
            return (inside,)
        if inside in NO_KEYS or (REMARK.fullmatch(inside) and not self._all_known(inside)):
            return ()
        return tuple(self._split(inside))

    def _all_known(self, inside: str) -> bool:
        keys = [part.strip() for part in re.split(r"[,;]", inside)]
        if not self._shapes:
            return all(re.fullmatch(r"\d{1,2}", key) for key in keys)
        return all(self._key(key) or shape(key) in self._shapes for key in keys)

    def _round(self, match: re.Match[str]) -> tuple[str, ...]:
        inside, before, after = match[1].strip(), self._text[: match.start()], self._text[match.end() :]
        before = before[-40:]
        if (whole := self._key(LEAD.sub("", inside))) is not None and not self._enumerates(inside, before, after):
            return (whole,)
        if re.fullmatch(rf"(?:{YEAR})(?:[,:].*)?", inside):
            return ()
        keys = self._split(inside)
        if keys and all(self._key(key) or shape(key) in self._shapes - {"name year"} for key in keys):
            return () if self._enumerates(inside, before, after) else tuple(keys)
        named = [key for key in keys if self._key(key) or _is_reference(key)]
        if named and len(named) == len(keys):
            return tuple(named)
        page = NAME_PAGE.fullmatch(LEAD.sub("", inside))
        if page and not NO_NAMES.match(page[1]) and not re.match(r"(?:Appendix|Annex)\b", page[1]):
            return (page[1],)
        return tuple(key for key in named if self._key(key) is None or key)

    def _enumerates(self, inside: str, before: str, after: str) -> bool:
        """True if a short bracket is no citation: it numbers a point, `(a)`, or repeats a number word."""
        if len(inside) > 3 or " " in inside:
            return False
        if NUMBER_WORD.search(before):
            return True
        return BEGINS.search(before) is not None and re.match(r"\s+\w", after) is not None

    def _narrative(self, match: re.Match[str]) -> tuple[str, ...]:
        name = re.sub(r"['’]s?$", "", match[1])
        named = f"{name} {match[2]}"
        if (key := self._key(named)) is not None:
            return (key,)
        before, after = (
            self._text[max(0, match.start() - 40) : match.start()],
            self._text[match.end() : match.end() + 40],
        )
        several = re.search(r"et al|\s(?:and|&|und|et|y)\s", match[1]) is not None
        spoken = SAYS.match(after) is not None or BY.search(before) is not None
        return (named,) if (several or spoken) and not NO_NAMES.fullmatch(match[1].split()[0]) else ()

    def _raised(self, match: re.Match[str]) -> tuple[str, ...]:
        """Returns the note numbers that raised digits cite, after a word or sentence; empty for units and powers."""
        before = self._text[max(0, match.start() - 40) : match.start()]
        word = re.search(r"([^\W\d_]+)$", before)
        noted = self._text.startswith(match.group()) or not before.strip()
        if noted or (word is None and not re.search(r"[.,;:!?\"'”’»“‘«‹›」』)\]]$", before)):
            return ()
        if word and (len(word[1]) < 3 or word[1].lower() in UNITS):
            return ()
        if before[-1:] == ")" and re.search(r"\([^()]*[-+*/=][^()]*\)$", before):
            return ()
        return tuple(self._split(match.group().translate(NORMAL)))

    def _split(self, inside: str) -> list[str]:
        """Returns the citation keys inside one bracket, without introductory words and page numbers."""
        found: list[str] = []
        name = ""
        for part in re.split(r"\s*;\s*", inside):
            bare = LOCATOR.sub("", LEAD.sub("", part.strip())).strip(" ,")
            if (key := self._key(bare)) is not None:
                found.append(key)
                continue
            if named := NAME_YEAR.fullmatch(bare):
                name = named[1]
                found.append(self._key(bare) or bare)
                continue
            for piece in (LEAD.sub("", one.strip()) for one in JOINS.split(bare)):
                numbers = re.fullmatch(r"(\d{1,3})\s*[-–]\s*(\d{1,3})", piece)
                if numbers and int(numbers[1]) <= int(numbers[2]) and self._key(piece) is None:
                    found += [str(number) for number in range(int(numbers[1]), int(numbers[2]) + 1)]
                elif named := NAME_YEAR.fullmatch(piece):
                    name = named[1]
                    found.append(self._key(piece) or piece)
                elif name and re.fullmatch(YEAR, piece):
                    found.append(self._key(f"{name} {piece}") or f"{name} {piece}")
                elif piece not in NO_KEYS or self._key(piece) is not None:
                    found.append(self._key(piece) or piece)
        return found


def _is_reference(key: str) -> bool:
    named = NAME_YEAR.fullmatch(key)
    return (
        named is not None
        and not key[:1].islower()
        and not any(word.islower() and not SMALL.fullmatch(word) for word in re.findall(r"[^\W\d_]+", named[1]))
        and not any(NO_NAMES.fullmatch(word.strip(".,")) for word in named[1].split()[:1])
    )


def _bare(key: str) -> str:
    """Normalises a citation key for lookup: `Smith & Jones, 2020` becomes `Smith Jones 2020`."""
    return (
        re.sub(r"[\s,()@]+|\b(?:and|und|et|y)\b|&", " ", key.translate(NARROWED).removeprefix("^"))
        .replace("  ", " ")
        .strip()
    )
