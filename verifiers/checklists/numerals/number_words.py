"""English number words: `two hundred and five`, `a million`, `two thirds`, `half a million`.

`one` and `a` alone do not count: they are pronouns and articles as often.

German, French, Spanish, Italian, Portuguese and Dutch number words, as the library text2num reads them:
`zweihundertfünf`, `deux virgule cinq`, `un millón`.

Invariants: words are numbers only in a text of their language, or before its word for a share (`fünf Prozent`). An
ambiguous word (`un`, `neuf`, `sei`) alone is not a number, nor is a factor after digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from text_to_num import alpha2digit

SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
SMALL = "zero - two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
SMALL += " eighteen nineteen"
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {
    **{word: value for value, word in enumerate(SMALL.split()) if word != "-"},
    **{word: 10 * value for value, word in enumerate(TENS.split()) if word != "-"},
}
NAMES = "|".join([*WORDS, *SCALES, "one"])
SPELLED = re.compile(
    rf"(?<!\w)(?:(?P<article>an?|half\sa|a\squarter\sof\sa|quarter\sof\sa)\s(?=(?:{'|'.join(SCALES)})(?!\w)))?"
    rf"(?P<words>(?:{NAMES})(?:[-\s]+(?:and\s+)?(?:{NAMES}))*)(?!\w)",
    re.IGNORECASE,
)
LOWERS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7}
LOWERS |= {"eighth": 8, "ninth": 9, "tenth": 10}
LOWER = re.compile(rf"[-\s]({'|'.join(LOWERS)})(s?)(?!\w)", re.IGNORECASE)
ORDINAL = re.compile(
    r"[-\s](?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|hundredth|thousandth|millionth)(?!\w)",
    re.IGNORECASE,
)


MOST_WORDS = 40


class SpelledNumber:
    def __init__(self, start: int, end: int, value: Fraction, ordinal: bool) -> None:
        self.start, self.end, self.value, self.ordinal = start, end, value, ordinal


def spelled(text: str, shares: re.Pattern[str]) -> Iterator[SpelledNumber]:
    """Yields the numbers that a text writes in English words; a lone `one` only before a share, `one percent`."""
    for match in SPELLED.finditer(text):
        parts = [part for part in re.findall(r"[a-z]+", match["words"].lower()) if part != "and"]
        if len(parts) > MOST_WORDS:
            continue
        article = (match["article"] or "").lower()
        lower = LOWER.match(text, match.end())
        share = shares.match(text, match.end())
        if not article and not share and (parts == ["one"] or all(part in SCALES for part in parts)):
            continue
        total = small = 0
        for part in parts:
            if part == "hundred":
                small = max(small, 1) * 100
            elif part in SCALES:
                total, small = total + max(small, 1) * SCALES[part], 0
            else:
                small += 1 if part == "one" else WORDS[part]
        value = Fraction(total + small) * (Fraction(1, 2) if "half" in article else 1)
        value *= Fraction(1, 4) if "quarter" in article else 1
        end, ordinal = match.end(), ORDINAL.match(text, match.end()) is not None
        if lower and lower[1].lower() not in ("half", "quarter") and not lower[2]:
            lower = None
        if lower and value < 20:
            value, end, ordinal = value / LOWERS[lower[1].lower()], lower.end(), False
        yield SpelledNumber(match.start(), end, value, ordinal)


TOKEN = re.compile(r"[^\W\d_]+(?:[-\u2010\u2011][^\W\d_]+)*")
VALUE = re.compile(r"(\d{1,30})(?:,(\d{1,30}))?")
NEVER = re.compile(r"(?!)")
HALVES = {"de": re.compile(r"(\w+?)einhalb\w?"), "nl": re.compile(r"(\w+?)(?:ën|en)(?:een)?hal(?:f|ve)")}
"""`dreieinhalb`, `drieënhalf`."""
SHARES = {
    "de": re.compile(r"[\s-](?:prozent|promille)", re.IGNORECASE),
    "fr": re.compile(r"\s(?:pour\s(?:cent|mille)(?!\w))", re.IGNORECASE),
    "es": re.compile(r"\s(?:por\s(?:ciento|mil)(?!\w))", re.IGNORECASE),
    "it": re.compile(r"\s(?:per\s(?:cento|mille)(?!\w))", re.IGNORECASE),
    "pt": re.compile(r"\s(?:por\s(?:cento|mil)(?!\w))", re.IGNORECASE),
    "nl": re.compile(r"[\s-](?:procent|promille)", re.IGNORECASE),
}
WITHIN = {"de": "komma und", "fr": "virgule et", "es": "coma y", "it": "virgola e", "pt": "vírgula e", "nl": "komma en"}
"""Words between the words of one number."""
DOUBTFUL = {
    "de": "ein eine einen einem einer eines eins acht elf sieben",
    "fr": "un une neuf neuve son",
    "es": "un una uno unos unas",
    "it": "un uno una un' sei",
    "pt": "um uma uns umas",
    "nl": "een één eens acht elf",
}
"""Words that are articles, pronouns, verbs or adjectives as often as numbers."""
FOREIGN_LOWERS = {
    "de": "- - - drittel viertel fünftel sechstel siebtel achtel neuntel zehntel",
    "fr": "- - demis tiers quarts cinquièmes sixièmes septièmes huitièmes neuvièmes dixièmes",
    "es": "- - medios tercios cuartos quintos sextos séptimos octavos novenos décimos",
    "it": "- - mezzi terzi quarti quinti sesti settimi ottavi noni decimi",
    "pt": "- - meios terços quartos quintos sextos sétimos oitavos nonos décimos",
    "nl": "- - - derde kwart vijfde zesde zevende achtste negende tiende",
}
"""Denominators, at the index of their number: `zwei Drittel`."""
FOREIGN_SCALES = {
    "de": "hundert tausend million millionen milliarde milliarden billion billionen",
    "fr": "cent cents mille million millions milliard milliards billion billions",
    "es": "cien ciento mil millón millon millones billón billones",
    "it": "cento mille mila milione milioni miliardo miliardi",
    "pt": "cem cento mil milhão milhões bilhão bilhões",
    "nl": "honderd duizend miljoen miljard biljoen",
}
ARTICLES = frozenset(["ein", "eine", "einer", "einen", "einem", "un", "une", "uno", "una", "um", "uma", "een"])
MOST_TOKENS = 20
MOST_LETTERS = 60


def foreign(text: str, language: str) -> Iterator[tuple[int, int, Fraction]]:
    """Yields start, end and value of each number written in words of another language than English. `language` is the
    text's; words of others count only before a share."""
    tokens = [token for token in TOKEN.finditer(text) if len(token.group()) <= MOST_LETTERS]
    for code in SHARES:
        if code != language and not SHARES[code].search(text):
            continue
        yield from (one for one in _numbers(text, tokens, code) if code == language or SHARES[code].match(text, one[1]))


def _numbers(text: str, tokens: list[re.Match[str]], code: str) -> Iterator[tuple[int, int, Fraction]]:
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and end - at < MOST_TOKENS and (end == at or _near(text, tokens, end)):
            word = tokens[end].group().casefold()
            if not _is_number(word, code) and not (end > at and word in WITHIN[code].split()):
                break
            end += 1
        found = _longest(text, tokens, at, end, code)
        if found is None:
            at += 1
            continue
        last, value = found
        below = tokens[last + 1].group().casefold() if last + 1 < len(tokens) and _near(text, tokens, last + 1) else "-"
        if below != "-" and below in FOREIGN_LOWERS[code].split() and value < 20:
            last, value = last + 1, value / FOREIGN_LOWERS[code].split().index(below)
        if _counts(text, tokens, at, last, code):
            yield tokens[at].start(), tokens[last].end(), value
        at = last + 1


def _near(text: str, tokens: list[re.Match[str]], at: int) -> bool:
    return text[tokens[at - 1].end() : tokens[at].start()] in (" ", "\n", "\u00a0")


def _longest(text: str, tokens: list[re.Match[str]], at: int, end: int, code: str) -> tuple[int, Fraction] | None:
    """Finds the longest number in words that begins at token `at`. Returns its last token and its value, or None."""
    for last in range(end - 1, at - 1, -1):
        value = _value(" ".join(text[tokens[at].start() : tokens[last].end()].casefold().split()), code)
        if value is not None:
            return last, value
    return None


def _counts(text: str, tokens: list[re.Match[str]], at: int, last: int, code: str) -> bool:
    before = text[: tokens[at].start()].rstrip()
    words = {token.group().casefold() for token in tokens[at : last + 1]}
    if words <= set(FOREIGN_SCALES[code].split()):
        if before[-1:].isdigit():
            return False
        article = at > 0 and tokens[at - 1].group().casefold() in ARTICLES and tokens[at - 1].end() == len(before)
        return article or SHARES[code].match(text, tokens[last].end()) is not None
    return not words <= set(DOUBTFUL[code].split()) or SHARES[code].match(text, tokens[last].end()) is not None


@lru_cache(maxsize=4_096)
def _is_number(word: str, code: str) -> bool:
    return word in f"{DOUBTFUL[code]} {FOREIGN_SCALES[code]}".split() or _value(word, code) is not None


@lru_cache(maxsize=4_096)
def _value(words: str, code: str) -> Fraction | None:
    """Returns the number that a whole phrase in the language `code` means; None if it is not one."""
    if words in DOUBTFUL[code].split() and words[:2] in ("un", "ei"):
        return Fraction(1)
    if words in ("anderthalb", "anderthalbe", "anderhalf", "anderhalve"):
        return Fraction(3, 2)
    if half := HALVES.get(code, NEVER).fullmatch(words):
        whole = _value(half[1], code)
        return None if whole is None else whole + Fraction(1, 2)
    read = VALUE.fullmatch(alpha2digit(words, code, 0))
    if read is None:
        return None
    return Fraction(f"{read[1]}.{read[2]}") if read[2] else Fraction(read[1])
