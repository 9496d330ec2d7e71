"""Finds quotations in every visible form, and checks that a source has them word for word.

Recognises double and single quotation marks of all languages, `<q>`, and block quotations with `>`. An unclosed
quotation reaches to the end of its paragraph. A set-apart note (`> **Note:** ...`) is not a quotation, but quotation
marks in it count. A quotation may omit marked parts (`...`, `[...]`), and in square brackets an editor may insert a few
words, change a letter or an ending, or resolve a pronoun. Negated statements of a source must stay negated: see
`words.claims`; for the choice of source see `attribution`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from verifiers.checklists.attribution import Attribution
from verifiers.checklists.document import Document
from verifiers.checklists.words.brackets import Cited, cited_in, cited_within
from verifiers.checklists.words.characters import is_bounded, visible
from verifiers.checklists.words.claims import denies, is_negated, may_be_left_out, may_be_put_in
from verifiers.checklists.words.prose import words

MOST = 20_000
DOUBLE = {
    "“": "”", "„": "“”\"", "‟": "”", "«": "»", "»": "«»", "‹": "›", "›": "‹›", "「": "」", "『": "』", "｢": "｣",
    "❝": "❞", "〝": "〞〟", "”": "”", '"': '"', "＂": "＂", "״": "״",
}  # fmt: skip
"""Closing marks for each mark that opens a quotation."""
OPENS = re.compile("[" + "".join(DOUBLE) + "]|``|(?<![\\w,]),,(?=\\w)|(?<!\\w)(?:''|[‘‚'❛])(?=[^\\s\\d])")
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
INSERTED = re.compile(r"(\w?)\[([^\[\]]{2,60}|(?<=\w\[)\w)\](?![^\W\u0e00-\u0eff\u3040-\u9fff])")
"""Editor's words, or the ending of a word; `[t]he` and `[un]safe` are words themselves."""
OMITTED = re.compile(r"[\[(]?(?:\.\s?\.\s?\.|…)\.?[\])]?")
MOST_INSERTED = 4
MOST_PLACES = 50
"""Maximum places in a source examined for one part: the omitted text before each is read, in quadratic time."""
LITTLE_IN_PLACE = (
    "i you he she it we they me him her us them my your his its our their this that these those here there now"
    " then today"
    " tomorrow yesterday who which is are was were be been has have had do does did a an the"
    " ich du er sie es wir ihr mich mir ihn ihm uns ihnen sein seine seinen seiner seinem ihre ihren ihrer ihrem unser"
    " unsere mein meine dieser diese dieses diesen diesem der die das den dem des hier dort heute gestern"
    " morgen ist sind"
    " war waren hat haben hatte hatten wird werden wurde wurden"
    " je tu il elle on nous vous ils elles te se le la les lui leur leurs son sa ses mon ma mes notre nos ce cet cette"
    " ces ici là hier demain est sont était étaient ont avait"
    " yo tú él ella ello ellos ellas lo los las su sus mi mis este esta esto estos estas ese esa eso aquí allí hoy ayer"
    " es son era eran fue ha han había io lui lei noi voi loro gli suo sua suoi sue questo questa questi"
    " queste qui oggi"
    " ieri è sono erano hanno aveva eu ele ela eles elas seu sua isso aqui hoje ontem são foi hij zij ze het"
    " wij hem haar"
    " hen hun zijn deze dit die dat hier was я ты он она оно мы вы они его её ее их ему ей им него неё них мой моя наш"
    " этот эта это эти тот та те здесь там сегодня вчера был была было были"
)
"""Words that an editor may replace: pronouns, articles, forms of `be` and `have`."""
IN_PLACE = "|".join(sorted(set(LITTLE_IN_PLACE.split()), key=len, reverse=True))
NO_PRONOUNS = frozenset(
    re.findall(
        r"\w+",
        "is are was were be been has have had do does did a an the ist sind war waren hat haben hatte hatten wird"
        " werden wurde wurden der die das den dem des est sont était étaient ont avait le la les es son era eran fue"
        " ha han había è sono erano hanno aveva é são foi был была было были",
    )
)
PRONOUNS = frozenset(LITTLE_IN_PLACE.split()) - NO_PRONOUNS
STOPS = r"(?=\W*(?:$|[.!?…,;:]))"
"""Positions where an editor's words may end a quotation: at the end of a clause, or at a pronoun."""
IN_BETWEEN = rf"\W*(?:(?i:{IN_PLACE})\b\W+){{0,4}}?"
ENDINGS = frozenset(["s", "es", "ed", "d", "ing", "en", "n", "e", "t", "te", "ten", "er", "em", "st"])
"""Word endings in square brackets: `hold[s]`."""
ENDING = r"(?:s|es|ed|d|ing|en|n|e|t|te|ten|er|em|st)?"


@dataclass(frozen=True)
class Quotation:
    start: int
    end: int
    text: str
    keys: frozenset[str] = frozenset()
    """Keys of sources, one of which must have the quotation; empty if any may."""
    longer: tuple[str, ...] = ()
    """Alternative readings: a plural's apostrophe (`the farmers' fields`) looks like a closing mark."""
    unattributed: str | None = None
    """Text without the name after a dash at its end."""
    denied: bool = False
    """True if the surrounding sentence denies the quotation."""

    def of(self, least: int) -> list[str]:
        """Returns the possible texts of a quotation whose end is unclear, if they have `least` words; else an empty
        list."""
        texts = [text for text in (self.text, *self.longer) if _size(text) >= least]
        if self.unattributed is None or not texts:
            return texts
        return [self.unattributed, *texts] if _size(self.unattributed) >= least else []


def _size(text: str) -> float:
    """Returns the length of a text in words; a character of a script without spaces counts half."""
    return sum(0.5 if len(word) == 1 and not is_bounded(word) else 1.0 for word in words(text))


@dataclass(frozen=True)
class Passage:
    """A block or table cell with its citations and quotations."""

    cited: tuple[Cited, ...]
    quotations: tuple[Quotation, ...]


def passages(document: Document, known: Sequence[str]) -> Iterator[Passage]:
    attribution = Attribution(document, known)
    for block in document.quotable_blocks:
        apart = block.quoted and not CALLOUT.match(block.text)
        for text in (block.text, *(cell for row in block.rows for cell in row)):
            cited = cited_in(text, known)
            found = list(_set_apart(text, cited, known) if apart else _marked(text, cited, known))
            spans = [(one.start, one.end) for one in found]
            quoted = [
                replace(
                    one,
                    keys=attribution.keys_of(text, cited, spans, at, apart),
                    denied=denies(attribution.around(text, spans, at)),
                )
                for at, one in enumerate(found)
            ]
            yield Passage(tuple(cited), tuple(quoted))
        attribution.go_on(block)


def _set_apart(text: str, cited: list[Cited], known: Sequence[str]) -> Iterator[Quotation]:
    if re.match(r"(?:—|–|--|―|-)\s?\w", text):
        return
    shown = _without(text, 0, len(text), cited, known).strip()
    named = ATTRIBUTION.search(shown)
    unattributed = shown[: named.start()].strip() if named else None
    yield Quotation(0, len(text), shown, unattributed=unattributed)


def _without(text: str, start: int, end: int, cited: list[Cited], known: Sequence[str]) -> str:
    """Returns a part of a text from which citations of known sources are removed."""
    kept = []
    for place in cited_within(cited, start, end):
        if place.end <= end and set(place.keys) <= set(known):
            kept.append(text[start : place.start].rstrip())
            start = place.end
    return "".join([*kept, text[start:end]])


def _marked(text: str, cited: list[Cited], known: Sequence[str]) -> Iterator[Quotation]:
    """Yields the quotations in quotation marks within one block of text."""
    at = 0
    while (opened := OPENS.search(text, at)) is not None:
        at = start = opened.end()
        ends = _ends(text, opened.start(), start, opened.group())
        if not ends or not text[start : ends[0]].strip():
            continue
        inside, *longer = (_without(text, start, end, cited, known) for end in ends)
        yield Quotation(start, ends[-1], inside, longer=tuple(longer))
        at = ends[0] + 1


def _ends(text: str, at: int, start: int, mark: str) -> list[int]:
    """Returns the positions where a quotation may end that a quotation mark opens; empty if the mark opens none."""
    if mark in DOUBLE:
        if mark == '"' and text[at - 1 : at].isdigit() and not text[start : start + 1].isalpha():
            return []  # inches
        if mark == "”" and not _begins(text, at):
            return []
        found = re.compile(f"[{DOUBLE[mark]}]").search(text, start, start + MOST)
        if found is None and mark in '"»›' and not _begins(text, at):
            return []
        return [found.start() if found else len(text)]
    if mark in ("``", "''", ",,"):
        found = re.compile("''|[\"“”‘]").search(text, start, start + MOST)
        return [found.start() if found else len(text)]
    return [] if ELIDED.match(text, start) else _single_ends(text, start)


def _begins(text: str, at: int) -> bool:
    return (at == 0 or text[at - 1] in " (\n") and text[at + 1 : at + 2].isalnum()


def _single_ends(text: str, start: int) -> list[int]:
    """Returns the possible ends of a text in single quotation marks. There are several if a mark may be an apostrophe,
    as in `dogs'`."""
    ends: list[int] = []
    for found in SINGLE_ENDS.finditer(text, start, start + LONGEST_SINGLE):
        if ends and OPENS.search(text, start, found.start()):
            break
        ends.append(found.start())
        if text[found.start() - 1] not in "sz" or not re.match(r"\s[^\W\d_]", text[found.end() :][:2]):
            break
    return ends


def same_text(text: str) -> str:
    """Normalises a text for verbatim comparison. Unifies quotation marks, dashes and blanks, and drops note numbers;
    case is kept."""
    normal = unicodedata.normalize("NFKC", visible(re.sub(r"\[\^[^\]]*\]|[⁰¹²³⁴-⁹]+", "", text)))
    normal = re.sub("[“”„‟«»‹›「」『』❝❞〝〞〟]|``|''", '"', normal)
    normal = re.sub("(?<=\\w)[‘’‛ʼ](?=\\w)", "'", re.sub("[‘’‚‛❛❜]", "’", normal)).replace("’", '"')
    normal = re.sub("(?<!\\w)'|'(?!\\w)", '"', normal)
    return " ".join(re.sub("[\u2010-\u2015\u2212]", "-", normal).split())


def is_verbatim(quotation: str, sources: Sequence[str], denied: bool = True) -> bool:
    """True if a quotation occurs word for word in one of the sources, which are given in `same_text` form. Omissions
    (`...`) must be marked and in order. What the source negates counts only if `denied`, that is if the text denies it
    as well."""
    parts = [part.strip(" ,.;:\"'") for part in OMITTED.split(same_text(quotation))]
    parts = [part for part in parts if part]
    if not parts or any(len(words(part)) < 2 for part in parts[1:]):
        return False
    if len(words(" ".join(parts))) < 4 * (len(parts) - 1):
        return False
    inserted = [one[2] for part in parts for one in INSERTED.finditer(part) if not _is_ending(one)]
    own = len(words(INSERTED.sub(r"\1 ", " ".join(parts))))
    if len(words(" ".join(inserted))) > min(MOST_INSERTED, own / 2) or not all(map(may_be_put_in, inserted)):
        return False
    patterns = [re.compile(_loosely(part)) for part in parts]
    return any(_has_in_order(source, patterns, denied) for source in sources)


def _is_ending(inserted: re.Match[str]) -> bool:
    return bool(inserted[1]) and inserted[2] in ENDINGS


def _has_in_order(source: str, patterns: Sequence[re.Pattern[str]], denied: bool) -> bool:
    at = 0
    for number, pattern in enumerate(patterns):
        found = islice(pattern.finditer(source, at), MOST_PLACES)
        match = next((one for one in found if _may_stand(source, at, one, number == 0, denied)), None)
        if match is None:
            return False
        at = match.end()
    return True


def _may_stand(source: str, at: int, found: re.Match[str], first: bool, denied: bool) -> bool:
    if first:
        return denied or not is_negated(source, found.start(), found.end())
    return may_be_left_out(source[at : found.start()])


def _loosely(part: str) -> str:
    """Builds a regular expression for part of a quotation, allowing for an editor's square brackets. A bracket matches
    what it replaces: another word ending, a few inserted words or a pronoun. All other words must match; only the case
    of the first letter may differ."""
    pieces, at = [], 0
    for inserted in INSERTED.finditer(part):
        before = part[at : inserted.end(1)].rstrip()
        ending = _is_ending(inserted)
        pieces += [_literal(before, first=not at), ENDING if ending else IN_BETWEEN]
        at = inserted.end()
        if not ending and not re.search(r"\w", part[at:]):
            named = (words(before.casefold()) or [""])[-1] in PRONOUNS
            pieces[-1] = "" if named else rf"(?:\W*\b(?i:{'|'.join(sorted(PRONOUNS))})\b|{STOPS})"
        if not ending:
            at += len(part[at:]) - len(part[at:].lstrip())
    pieces.append(_literal(part[at:], first=not at))
    before = r"(?<!\w)" if is_bounded(part[:1]) else ""
    after = r"(?!\w)" if is_bounded(part[-1:]) else ""
    return before + "".join(pieces) + after


def _literal(text: str, *, first: bool = False) -> str:
    """Builds a regular expression that matches a given text. Bracketed letters, and with `first` the first letter,
    match in either case."""
    pieces = re.split(r"\[(\w)\]", text)
    said = [_letter(piece) if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)]
    if first and pieces[0][:1].isalpha():
        said[0] = _letter(pieces[0][0]) + re.escape(pieces[0][1:])
    return "".join(said)


def _letter(letter: str) -> str:
    return f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() and len(letter.upper()) == 1 else re.escape(letter)
