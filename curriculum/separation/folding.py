"""Tokens and n-grams of a text: equal for texts that look alike, or differ only in case, blanks or marks.

Invariants: pure; numbers and mathematical signs stay, because they are the question. Letters of other scripts that look
like Latin ones become Latin, combining accents, invisible characters and HTML entities are resolved, and compatible
forms of Unicode (full width, mathematical letters) are replaced.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence

MOST_TOKENS = 20_000
"""Tokens read per text; the rest is ignored."""
GRAM = 8
"""Tokens per n-gram (GPT-3, 2005.14165, appendix C, uses 13; 8 finds shorter copies)."""
SPAN = 6 * GRAM
"""Characters per n-gram of a text without blanks."""
NUMBER = "#"
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|[^\w\s]|_")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PUNCTUATION = frozenset(".,;:!?\"'`´‘’“”…·«»()[]{}$\\_")
"""Marks that a copy may move, with brackets and LaTeX signs among them."""
_BEFORE_A_SIGN = frozenset("+-*/^=<>−×÷|~")
_LATIN = str.maketrans(
    # Cyrillic, Greek, Armenian and other letters with the shape of a Latin one, before case is ignored.
    "АВСЕНІЈКМОРЅТУХԚԜҮавсенһікјмоԛрѕтухԝѵԁӏүєґгΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβγεηικμνορτυχωօոսհցքɑɡıɩʏʀɴʙʜʟᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢ",
    "abcehijkmopstyxqwyabcehhikjmoqpstyxwvdlyerrabezhikmnoptyxabyenikuvoptuxwonuhgpagiiyrnbhlacdejkmoptuvwz",
)
_BLANK_LETTERS = dict.fromkeys((0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0, *range(0x300, 0x370), *range(0xFE00, 0xFE10)))
"""Letters and signs without a shape, and marks that combine with the letter before them."""


def folded(text: str) -> str:
    """Returns a text in lower case, with what looks alike written alike."""
    plain = html.unescape(html.unescape(text)) if "&" in text else text
    if plain.isascii():
        return plain.casefold()
    plain = unicodedata.normalize("NFKD", plain).translate(_BLANK_LETTERS)
    plain = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFKC", plain.translate(_LATIN)).casefold().translate(_LATIN)


def tokens_of(text: str) -> tuple[str, ...]:
    """Returns a text's folded words, numbers and signs, in order."""
    found = _TOKEN.findall(_THOUSANDS.sub("", folded(text[: 8 * MOST_TOKENS])))
    return tuple(token for token in found if token not in _PUNCTUATION)[:MOST_TOKENS]


def joined(tokens: Sequence[str]) -> str:
    """Returns tokens without the blanks between them, except between numbers: equal for a copy without blanks."""
    return re.sub(r"(?<=\d) (?!\d)|(?<!\d) ", "", " ".join(tokens))


def without_numbers(tokens: Sequence[str]) -> tuple[str, ...]:
    """Replaces each run of numbers among the tokens by one mark; a number includes its sign."""
    found: list[str] = []
    for place, token in enumerate(tokens):
        if is_number(token):
            if not found or found[-1] != NUMBER:
                found.append(NUMBER)
        elif not _is_sign(tokens, place):
            found.append(token)
    return tuple(found)


def _is_sign(tokens: Sequence[str], place: int) -> bool:
    """True if this + or - is the sign of a number, not an operator."""
    ahead = tokens[place] in "+-−" and place + 1 < len(tokens) and is_number(tokens[place + 1])
    return ahead and (place == 0 or tokens[place - 1] in _BEFORE_A_SIGN or tokens[place - 1].isalpha())


def is_number(token: str) -> bool:
    return token[0].isdigit()


def numbers_in(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(token for token in tokens if is_number(token))


def grams_of(tokens: Sequence[str], size: int = GRAM) -> set[int]:
    """Returns hashes of all runs of `size` consecutive tokens, valid in this process only."""
    return {hash(tuple(tokens[place : place + size])) for place in range(len(tokens) - size + 1)}


def stands(text: str, whole: str, at: int) -> bool:
    """True if a text stands at this place of another one, and not within a longer number."""
    end = at + len(text)
    split = (whole[at - 1 : at].isdigit() and text[0].isdigit()) or (
        whole[end : end + 1].isdigit() and text[-1].isdigit()
    )
    return whole.startswith(text, at) and not split


def spans_of(text: str) -> frozenset[int]:
    """Returns hashes of all runs of `SPAN` characters of a text without blanks, valid in this process only."""
    return frozenset(hash(text[place : place + SPAN]) for place in range(len(text) - SPAN + 1))


def shortened(tokens: Sequence[str], *, words_only: bool = False) -> set[int]:
    """Returns hashes of the token sequence, and of it without each one of its tokens. Two texts that differ in one
    token share a hash, wherever it stands (deletion neighbourhood, as in SymSpell). With `words_only` no number is left
    out."""
    whole = tuple(tokens)
    found = {hash(whole)}
    for place, token in enumerate(whole):
        if not (words_only and is_number(token)):
            found.add(hash(whole[:place] + whole[place + 1 :]))
    return found
