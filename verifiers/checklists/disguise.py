"""Characters that are not what they seem: invisible ones, look-alikes, letters that are spread out.

`plain` is how a word must be written to count where it is required. `bare` is what a reader's eye makes of a text:
that is where forbidden words are looked for. Look-alikes follow the idea of Unicode's UTS 39 (confusables); the
table is the part of it that turns letters of other scripts, and signs made of letters, into the Latin ones they look
like.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LOOKALIKES = str.maketrans(
    {
        **dict(zip("аеорсухіјѕԁһӏԛԝкмтнвгпбьз", "aeopcyxijsdhlqwkmthbrnbb3", strict=True)),
        **dict(zip("αβεηικνορτυχωγμςϲϳ", "abenikvoptuxwyuccj", strict=True)),
        **dict(zip("օոսցհյզլքեաս", "onugh3qlptwu", strict=True)),
        **dict(zip("ɑɡıɩʟɴʀʏɪⅼꞌ", "agiilnryil'", strict=True)),
        **dict(zip("øłđħŧŋœæßþð", "oldhtnoabpd", strict=True)),
    }
)
JOINERS = "\u200c\u200d"
"""Needed in emoji and in the scripts of Persia and India; a disguise between Latin letters."""
HARMLESS = "\ufeff\u00ad\ufe0e\ufe0f\u2060"
"""Byte order mark, soft hyphen, presentation of emoji, word joiner: invisible, and honest texts have them."""
INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2061-\u206f\u3164\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
    "\U0001d173-\U0001d17a]"
)
FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
"""The flag of a region: an emoji that is spelled in tag characters."""
DIRECTIONS = "\u061c\u200e\u200f"
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
JOINED = re.compile("[A-Za-z0-9]([\u200c\u200d\u2060])(?=[A-Za-z0-9])")
NATIVE = (re.compile("[\u0370-\u03ff]"), re.compile("[\u0400-\u052f]"), re.compile("[\u0531-\u0587]"))
SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*~|/\u00b7]\w){2,}(?!\w)")


def visible(text: str) -> str:
    """Without characters that nobody sees."""
    return INVISIBLE.sub("", text).translate(dict.fromkeys(map(ord, HARMLESS + JOINERS)))


def hidden_characters(text: str) -> list[str]:
    """Those that only a disguise needs, by their numbers.

    No flags; marks of direction only where few letters are of a script that is written from right to left; joiners
    only between Latin letters.
    """
    seen = FLAG.sub("", text)
    if len(RIGHT_TO_LEFT.findall(seen)) > sum(map(str.isalpha, seen)) / 5:
        seen = seen.translate(dict.fromkeys(map(ord, DIRECTIONS)))
    found = {f"U+{ord(character):04X}" for character in INVISIBLE.findall(seen)}
    found |= {f"U+{ord(match[1]):04X}" for match in JOINED.finditer(seen)}
    return sorted(found)


def plain(text: str) -> str:
    """NFKC, case folded, invisible characters gone, white space single: how words are compared."""
    folded = unicodedata.normalize("NFKC", visible(text)).casefold()
    return " ".join(folded.replace("\u2019", "'").split())


def bare(text: str) -> str:
    """As `plain`, with accents gone and look-alikes as the Latin letters they imitate.

    A word all in Greek, Cyrillic or Armenian letters is left alone where a fifth of the letters is of that script:
    then it is a word of that language, and no disguise.
    """
    decomposed = unicodedata.normalize("NFKD", plain(text))
    marks_gone = "".join(character for character in decomposed if not unicodedata.combining(character))
    letters = sum(map(str.isalpha, marks_gone))
    native = [one for one in NATIVE if len(one.findall(marks_gone)) > letters / 5]
    if not native:
        return marks_gone.translate(LOOKALIKES)
    return re.sub(r"\w+", lambda word: _undisguised(word.group(), native), marks_gone)


def _undisguised(word: str, native: list[re.Pattern[str]]) -> str:
    own = any(len(one.findall(word)) == len(word) for one in native)
    return word if own else word.translate(LOOKALIKES)


@lru_cache(maxsize=4096)
def whole_words(phrase: str) -> re.Pattern[str]:
    """Matches a phrase that has been made `plain` or `bare`, as whole words where its script writes spaces."""
    before = "" if _unspaced(phrase[:1]) or not _is_word(phrase[:1]) else r"(?<!\w)"
    after = "" if _unspaced(phrase[-1:]) or not _is_word(phrase[-1:]) else r"(?!\w)"
    return re.compile(before + re.escape(phrase) + after)


def spaced_out(text: str) -> str:
    """Words written letter by letter in `text` (`s e c r e t`, `s.e.c.r.e.t`), joined, one a line."""
    return "\n".join(re.sub(r"[^\w]|_", "", match.group()) for match in SPACED.finditer(text))


def _is_word(character: str) -> bool:
    return bool(re.match(r"\w", character))


def _unspaced(character: str) -> bool:
    """Whether this character's script writes no spaces between words: Han, Kana, Thai, Lao, Khmer, Burmese."""
    if not character:
        return False
    name = unicodedata.name(character, "")
    return name.startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"))
