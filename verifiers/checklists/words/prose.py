"""Words and sentences.

A word is a run of letters and digits, with apostrophes, hyphens and points inside, and commas between digits (`don't`,
`well-known`, `3,140.5`); in scripts without spaces each character is one. Sentences come from `sentencex`, Wikimedia's
segmenter, which knows the abbreviations of many languages. Wrong splits are joined again: a sentence does not begin
with a lower-case letter in a text that begins with a capital, nor after an abbreviation, a list number or a day before
a word, nor with the `と` after a quotation. A sentence ends after a number with an abbreviated unit, after `?!` and
after an ellipsis, before a capital.

Language detection by script or function words, as far as sentences and numbers need it.

A wrong guess costs an abbreviation or requires a number to be written plainly; it never lets a text pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import sentencex

from verifiers.checklists.words.characters import script_of

LITTLE_WORDS = {
    "en": "the of and is was were to in that it for with are this from by an be has have not which you he she they"
    " do i at as on but we what no so or me my a",
    "de": "der die das und ist nicht ein eine mit von zu den im sich auf für auch dem des wird sind es wir ich hat"
    " am zum bis er vom bei nach wurde oder aber wie noch nur",
    "fr": "le la les et est une des du que qui dans pour pas sur au ne ce il elle sont avec plus nous par aux ont",
    "es": "el la los las y es una de que en por con para se del al no su como más fue son lo pero ha",
    "it": "il la gli e è una di che in per con del della non si da sono al più nel alla dei le ha anche",
    "pt": "o a os as e é uma de que em por com para se do da não no na dos das mais foi ao são",
    "nl": "de het een en is van in op te dat niet met voor zijn aan er ook als bij door maar naar wordt werd",
    "pl": "w i z na się nie jest do to że jak po ale od za przez ma tym być są jego dla oraz",
    "sv": "och att det som en på är av för med den till inte har ett om var jag men",
    "da": "og at det som en på er af for med den til ikke har et om var jeg men blev",
    "tr": "ve bir bu için ile da de çok olarak daha gibi olan en ama ne var",
    "cs": "a je v na se že z to do pro jako ale by po od za jeho jsou byl při",
    "id": "yang dan di dengan untuk dari ini pada adalah itu ke dalam tidak akan oleh",
}
BY_SCRIPT = {
    "CYRILLIC": "ru", "GREEK": "el", "ARABIC": "ar", "HEBREW": "he", "DEVANAGARI": "hi", "CJK": "zh", "HIRAGANA": "ja",
    "KATAKANA": "ja", "HANGUL": "ko", "ARMENIAN": "hy", "ETHIOPIC": "am", "MYANMAR": "my", "THAI": "th",
    "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "GUJARATI": "gu", "GEORGIAN": "ka",
}  # fmt: skip
WHERE = {word: [code for code in LITTLE_WORDS if word in LITTLE_WORDS[code].split()] for word in
         " ".join(LITTLE_WORDS.values()).split()}  # fmt: skip
LETTERS = {"pl": "łęąśżź", "cs": "řůě", "tr": "ğı", "pt": "ãõ", "es": "ñ", "de": "ß", "fr": "œ"}
"""Distinctive letters, counted outside names. They weigh more than function words, which languages share."""
UNKNOWN = re.compile("[ățșőűơư]", re.IGNORECASE)
"""Letters of unsupported languages with Latin script."""
COMMA = frozenset({"de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da", "tr", "cs", "id", "ru", "el", "hy", "ka"})
"""Languages with a decimal comma; Mexican Spanish, which has a point, is recognised by its numbers."""
ENOUGH = 8
"""Words without any function word from which the language counts as unsupported."""


@lru_cache(maxsize=256)
def language_of(text: str, otherwise: str = "en") -> str:
    """Guesses a text's language and returns its code, such as `en`. Returns `otherwise` if unknown, an empty text if
    the script's language is unsupported."""
    scripts = Counter(script_of(one) for one in text[:20_000] if one.isalpha())
    script = max(scripts, key=lambda one: scripts[one], default="LATIN")
    if script != "LATIN":
        if script in ("CJK", "HIRAGANA", "KATAKANA") and scripts["HIRAGANA"] + scripts["KATAKANA"]:
            return "ja"
        return "fa" if script == "ARABIC" and re.search("[پچژگک]", text) else BY_SCRIPT.get(script, "")
    small = text[:20_000].casefold()
    found = re.findall(r"[^\W\d_]+", small)
    votes: Counter[str] = Counter()
    for word in found:
        votes.update({code: 6 // len(WHERE[word]) for code in WHERE.get(word, ())})
    unnamed = " ".join(re.findall(r"(?<![^\W\d_])[^\W\d_A-Z][^\W\d_]*", text[:20_000]))
    votes.update({code: 6 * sum(map(unnamed.count, letters)) for code, letters in LETTERS.items()})
    if len(UNKNOWN.findall(unnamed)) > 1:
        return ""
    best = max(LITTLE_WORDS, key=lambda code: votes[code])
    if votes[best] >= 3:
        return "en" if votes["en"] == votes[best] else best
    return otherwise if len(found) < ENOUGH or votes["en"] else ""


UNSPACED = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\u0e01-\u0e2e"
"""Characters of scripts without spaces."""
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+(?:(?:['\u2019.\-\u2010\u2011]|(?<=\d),(?=\d))[^\W_{UNSPACED}]+)*")
MOST_AT_ONCE = 8_000
"""Characters per call; longer blocks are cut at a blank, because quotation marks cost quadratic time."""
CHAINED = re.compile("[-.\u2010\u2011]")
REPEATED = 6
"""Words of a run that is a repetition, not a name or a phrase, from its third time on."""
TRAILING_DIGITS = re.compile(r"(?<=[^\W\d_])\d+$")
LONGEST_COMPOUND = 4
"""Maximum parts of a hyphenated word that counts as one: `jack-of-all-trades`."""
SHORT = "approx mt ft tbsp tsp gov sen rep capt col gen lt sgt rev hon dept est fig figs eq cf vs no nos vol pp p"
SHORT += (
    " ca vgl abb tab bzw dhr mevr sig dott prof dr mr mrs ms st art hr fr u mme mlle mmes np tzw tj e.g i.e z.b d.h"
)
SHORT += " hab inż ks ul mgr płk mjr kpt lek gm woj św nr rys ryc zob tzn tzw m.in np por godz red ing mudr judr doc"
SHORT += " mgr tj např atd viz sv"
JOINS = frozenset(SHORT.split())
"""Abbreviations that precede their noun, besides those that the library knows."""
NUMBERED = frozenset(
    {"no", "nos", "p", "pp", "art", "fig", "figs", "eq", "vol", "ca", "approx", "abb", "tab", "nr", "por", "godz"}
)
"""Abbreviations that precede a number, and are ordinary words or letters elsewhere."""
SPELLED = re.compile(
    rf"(?<![^\W_])(?:[^\W_{UNSPACED}](?:[\W_]{{1,3}}[^\W_{UNSPACED}]){{7,}}"
    rf"|[^\W\d_{UNSPACED}](?:(?:[^\w\n]|_)[^\W\d_{UNSPACED}]){{3,}})(?![^\W_])"
)
"""A word in single letters: four with the same sign between any two; eight, digits too, with up to three signs."""
UNIT_ENDS = re.compile(
    r"(?:\b[тТ]\. ?[дп]|(?<=\d)[ \u00a0\u202f](?:[cmk]?m|[mk]?g|m?l|min|sec|[смк]?м|[мк]г|м?л|мин|сек|га))"
    r"\.[\"'”’»)]*(?=\s+[^\W\d_])"
)
"""Abbreviated unit after a number; also matches `и т. д.`"""
MARKS_END = re.compile(
    r"(?:[?!\u203d][?!\u203d.\u2026]+|(?P<dots>\u2026)|(?<![\w.])no\.)[\"'”’»)]*(?=\s+[\"'“‘«(¿¡]*[^\W\d_])"
)
"""Ends that the library passes over: `?!`, an ellipsis in one sign, the word `no`."""
OPENERS = " \n\"'“‘«(¿¡"
QUOTED = re.compile("[。！？!?.…][」』”]$")
AFTER_QUOTE = re.compile(
    "と(?!ても|き|ころ|りあえず|にかく|もかく|うとう|もに)|って|などと|なんて|[\u4e00-\u9fff]{0,6}[说說问問道答喊叫][，。：！]"
)
"""Words after a quotation that belong to its sentence: `」と言った`, `”他问。`"""
LAST = 80
"""Characters of a sentence searched for its last words."""
SURROGATES = re.compile("[\ud800-\udfff]")
CLOSERS = "\"'”’»)]"
INITIALS = frozenset({"pl", "cs"})
"""Languages whose initials the library does not know."""
INITIAL = re.compile(r"(?:^|[.,(]|\b(?:[iza]|od|dla|przez|pro))\s*\b[^\W\d_a-z]\.\s*$")
DOTTED_DAYS = frozenset({"de", "da", "cs", "pl", "tr"})


def words(text: str) -> list[str]:
    return WORD.findall(text)


def word_count(text: str) -> int:
    """Counts the words of a text as people do. An abbreviation with points is one; scripts without spaces count
    characters. A long chain of words joined by hyphens or points counts as many."""
    return len(_spoken(SPELLED.sub("x", text)))


def _spoken(text: str) -> list[str]:
    parts = ((word, CHAINED.split(word)) for word in words(text))
    return [one for word, chain in parts for one in (chain if len(chain) > LONGEST_COMPOUND else [word])]


def repeated_words(text: str) -> list[str]:
    """Returns the words that only repeat: each ends a run of REPEATED words that occurred twice before. They count
    towards no required length."""
    spoken = [TRAILING_DIGITS.sub("", word.casefold()) for word in _spoken(text)]
    seen: Counter[tuple[str, ...]] = Counter()
    found: list[str] = []
    for end in range(REPEATED, len(spoken) + 1):
        run = tuple(spoken[end - REPEATED : end])
        seen[run] += 1
        if seen[run] > 2:
            found.append(spoken[end - 1])
    return found


def sentences(text: str) -> list[str]:
    """Splits one block of text into sentences. A remainder after the last full stop counts if it has a word."""
    language = language_of(text)
    capitals = text[:1].isupper() or not text[:1].isalpha()
    found: list[str] = []
    for part in _parts(SURROGATES.sub("\ufffd", text)):
        for piece in sentencex.segment(language or "en", part):
            if found and _goes_on(found[-1][-LAST:], piece, language, capitals):
                found[-1] += piece
            else:
                found.append(piece)
    found = [part for sentence in found for part in _behind(sentence, language)]
    return [sentence.strip() for sentence in found if WORD.search(sentence)]


def _behind(sentence: str, language: str) -> Iterator[str]:
    """Splits a sentence behind an end that the library passes over, if a capital follows. German nouns have one, too,
    so there an ellipsis ends nothing."""
    ends = {end.end() for end in UNIT_ENDS.finditer(sentence)}
    ends |= {end.end() for end in MARKS_END.finditer(sentence) if language != "de" or not end["dots"]}
    start = 0
    for end in sorted(ends):
        if sentence[end:].lstrip(OPENERS)[:1].isupper():
            yield sentence[start:end]
            start = end
    yield sentence[start:]


def _parts(text: str) -> list[str]:
    if len(text) <= MOST_AT_ONCE:
        return [text]
    parts, start = [], 0
    while start < len(text):
        end = start + MOST_AT_ONCE
        blank = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1
        end = blank if start < blank and end < len(text) else end
        parts.append(text[start:end])
        start = end
    return parts


def _goes_on(before: str, piece: str, language: str, capitals: bool) -> bool:
    """True if a sentence boundary is wrong: after an abbreviation or ordinal, or before a lower-case letter."""
    begins = piece.lstrip(" \n\"'“”‘’„«»([")[:1]
    if not WORD.search(before) and WORD.search(piece):
        return True
    if (capitals and begins.islower()) or (QUOTED.search(before.rstrip()) and AFTER_QUOTE.match(piece.lstrip())):
        return True
    last = (before.split() or [""])[-1].rstrip(CLOSERS)
    if not last.endswith("."):
        return False
    word = re.split(r"['’(\[\"“„«]", last[:-1])[-1].casefold()
    if word.isdecimal() and len(word) <= 2 and language in DOTTED_DAYS and begins.isalpha():
        return not re.search(r"\b(?:in|um|von|bis|seit|war|es|auf|zu)\s+\d{1,2}\.\s*$", before)
    if language == "fr" and word in ("m", "mm"):
        return True
    if language in INITIALS and INITIAL.search(before):
        return True
    return word in JOINS and (word not in NUMBERED or begins.isdigit())
