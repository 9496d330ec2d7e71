"""Words and sentences.

A word is a run of letters and digits, with apostrophes, hyphens, points and commas inside (`don't`, `well-known`,
`3.14`); in scripts without spaces each character is one. A sentence ends at `.`, `!`, `?` or an ellipsis before
white space, but not behind an abbreviation, a single letter or the number of a list.
"""

from __future__ import annotations

import re

WORD = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\u0e01-\u0e2e]"
    "|[^\\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\u0e01-\u0e2e]+"
    "(?:['\u2019.,\\-\u2010\u2011][^\\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\u0e01-\u0e2e]+)*"
)
END = re.compile("[.!?\u2026]+[\"'\u201d\u2019)\\]]*(?=\\s|$)|[\u3002\uff01\uff1f]+")
LAST_WORD = re.compile(r"([^\s(]+)$")
SHORT = "e.g i.e mr mrs ms dr prof st vs etc cf al fig figs no nos vol pp p eq ca approx inc ltd jr sr u.s u.k a.m p.m"
SHORT += " z.b d.h bzw usw u.a nr s"
ABBREVIATIONS = frozenset(SHORT.split())


def words(text: str) -> list[str]:
    return WORD.findall(text)


def sentences(text: str) -> list[str]:
    """The sentences of one block. What is left behind the last end counts as one, where it has a word."""
    found, start = [], 0
    for end in END.finditer(text):
        if end.group() == "." and _goes_on(text, end):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if WORD.search(sentence)]


def _goes_on(text: str, end: re.Match[str]) -> bool:
    """Whether the full stop belongs to an abbreviation, an initial or a numeral, and the text goes on."""
    last = LAST_WORD.search(text, max(0, end.start() - 40), end.start())
    follows = text[end.end() : end.end() + 3].lstrip()
    if last is None or not follows:
        return False
    word = last[1].casefold().strip("\"'([")
    if word in ABBREVIATIONS:
        # Before a capital some of these end a sentence as well as not ("etc."); a title never does.
        return not (word in {"etc", "usw", "inc", "ltd", "a.m", "p.m"} and follows[:1].isupper())
    return len(word) == 1 and word.isalpha() and word != "i" and last[1].isupper()
