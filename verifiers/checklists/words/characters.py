"""Characters that a text may contain, and the comparison of words.

A text may have letters, marks, numbers, punctuation, signs and spaces, each where Unicode allows it. Everything else is
a fault with its place: control and format characters, unassigned or private ones, invisible letters.
- Letters belong to a script that UAX 31 recommends, or to the majority script of the text. The cased letters of a
  word are of one script, and so are its uncased ones (Han, Kana, Hangul and Bopomofo count as one). So no Latin
  word has a Cyrillic letter in it. A Latin word may begin or end with one Greek letter: `kΩ`, `Δx`.
- A mark stands on a letter or a digit, of its script or for all scripts, at most six on one; none strikes it
  through (a sign of mathematics may be: that negates it).
- Unicode's ignorable characters are allowed where a script or an emoji needs them, and never count: a joiner or a
  selector behind an uncased letter or a sign, a soft hyphen, direction marks in a right-to-left text, and isolates
  around words that all run in one direction.
- The digits of a number are of one system.

`plain` is the form for comparing words: normalised (NFKC), case folded and without ignorable characters. `bare`
approximates what a reader sees, and is searched for forbidden words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

CharacterGround = Literal["characters", "scripts"]

IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point, and its annotation marks."""
JOINING = re.compile("[\u180b-\u180f\u200b-\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Joiners, variation selectors, and the zero-width space that Thai and Khmer break lines at."""
VISIBLE_FORMATS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Unicode's Prepended_Concatenation_Mark: end of a verse, and signs around a number."""
DIRECTIONS = "\u061c\u200e\u200f"
ANYWHERE = "\u00ad\u2060\ufeff"
"""Soft hyphen, word joiner, byte order mark."""
ISOLATED = re.compile("([\u2066-\u2068\u202a\u202b])([^\n\u2066-\u2069\u202a-\u202e]{1,200})[\u2069\u202c]")
"""Text in a directional isolate or embedding, as programs insert around names."""
FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
"""Flag of a region: an emoji spelled in tag characters."""
SELECTORS = "\ufe0e\ufe0f"
INFORMATION = "\u2139"
"""The only emoji that is a cased letter."""
BLANK, CELLS = "\u2800", range(0x2800, 0x2900)
"""The empty Braille cell, which looks like a space but is a sign."""
PICTOGRAPHS = range(0x1F000, 0x1FB00)
"""Emoji block: characters newer than this Python's Unicode data count as signs, too."""
SCRIPTS = frozenset(
    re.findall(
        r"\w+",
        "ARABIC ARMENIAN BENGALI BOPOMOFO CJK CYRILLIC DEVANAGARI ETHIOPIC GEORGIAN GREEK GUJARATI GURMUKHI HANGUL"
        " HEBREW HIRAGANA KANNADA KATAKANA KHMER LAO LATIN MALAYALAM MYANMAR ORIYA SINHALA TAMIL TELUGU THAANA THAI"
        " TIBETAN",
    )
)
"""Recommended scripts, UAX 31, table 5."""
EASTERN = frozenset({"BOPOMOFO", "CJK", "HANGUL", "HIRAGANA", "KATAKANA"})
SHARED = "MODIFIER"
"""Pseudo-script of letters for all scripts: `ʼ`, `ʻ`."""
FIRST_WORDS = {"IDEOGRAPHIC": "CJK", "VERTICAL": "CJK", "MASU": "CJK", "CARON": SHARED, "COMBINING": SHARED}
"""Scripts of characters not named after one: Kana repeat marks, Bopomofo's third tone, halfwidth voicing."""
MAX_MARKS = 6
STRIKES = 1
"""Combining class of marks that overlay their letter."""

LOOKALIKES = str.maketrans(
    {
        **dict(zip("аеорсухіјѕԁһӏԛԝкмтнвгпбьз", "aeopcyxijsdhlqwkmthbrnbb3", strict=True)),
        **dict(zip("αβεηικνορτυχωγμςϲϳ", "abenikvoptuxwyuccj", strict=True)),
        **dict(zip("օոսցհյզլքեաս", "onugh3qlptwu", strict=True)),
        **dict(zip("ɑŋœæßþꞌ", "anoabp'", strict=True)),
    }
)
"""Subset of Unicode's confusables (UTS 39): letters of other scripts, and the Latin ones they look like."""
LATIN = re.compile(
    r"LATIN (?:CAPITAL|SMALL) LETTER (?:DOTLESS |SCRIPT )?([A-Z])(?: WITH .*)?$|LATIN .*CAPITAL ([A-Z])$"
    r"|^SQUARED ([A-Z]+)$"
)
"""Latin base letter in a character name: `ø` is an `o`, the small capital `ᴛ` a `t`, and `🆓` is `free`."""
NATIVE = (re.compile("[\u0370-\u03ff]"), re.compile("[\u0400-\u052f]"), re.compile("[\u0531-\u0587]"))
SPACED = re.compile(r"(?<!\w)\w(?:(?:[^\w\n]|_)\w){2,}(?!\w)")
UNSPACED = ("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@lru_cache(maxsize=65536)
def script_of(letter: str) -> str:
    """Returns the script of a letter by its Unicode name: `LATIN`, `CJK`; also for `ｔ` and `𝐭`."""
    name = unicodedata.name(unicodedata.normalize("NFKC", letter)[0], "").partition(" ")[0].partition("-")[0]
    return FIRST_WORDS.get(name, name)


def character_faults(text: str) -> Iterator[tuple[int, CharacterGround, str]]:
    """Yields the forbidden characters of a text in NFC, each as position, reason code and description."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return
    text = ISOLATED.sub(_undirected, FLAG.sub(lambda flag: "\U0001f3f4" * len(flag.group()), text))
    letters = Counter(script_of(character) for character in text if character.isalpha())
    most = {script for script, times in letters.items() if times > letters.total() / 2}
    leftward = any(unicodedata.bidirectional(character) in ("R", "AL") for character in set(text))
    yield from _misplaced(text, leftward)
    for start, end in _runs(text):
        word = IGNORABLE.sub("", text[start:end])
        strange = [one for one in word if one.isalpha() and script_of(one) not in SCRIPTS | most | {SHARED}]
        if strange:
            yield start, "scripts", f"{_named(strange[0])}, of a script that the text is not written in"
        elif not _is_one_word(word):
            yield start, "scripts", f"letters or digits of several scripts in one word: {ascii(word[:40])[1:-1]}"


def _undirected(part: re.Match[str]) -> str:
    """Replaces text in Unicode direction marks by its content, if the marks do not change its direction."""
    letters = {unicodedata.bidirectional(one) in ("R", "AL") for one in part[2] if one.isalpha()}
    given = {"\u2066": {False}, "\u202a": {False}, "\u2067": {True}, "\u202b": {True}}
    leftward = given.get(part[1], letters)
    apart = len(letters) == 1 and letters == leftward and not any(one.isnumeric() for one in part[2])
    return f".{part[2]}." if apart else part.group()


def _misplaced(text: str, leftward: bool) -> Iterator[tuple[int, CharacterGround, str]]:
    before, marks, ignored = " ", 0, 0
    for at, character in enumerate(text):
        category = unicodedata.category(character)
        if IGNORABLE.match(character):
            ignored += 1
            joins = ignored <= 2 and JOINING.match(character) and _is_joined(before, character)
            if not joins and character not in ANYWHERE and not (leftward and character in DIRECTIONS):
                yield at, "characters", f"{_named(character)}, which no reader sees"
            continue
        ignored = 0
        if category[0] == "M":
            marks += 1
            if marks > MAX_MARKS or not _may_carry(before, character):
                yield at, "characters", f"{_named(character)}, a misplaced mark"
            continue
        if character == BLANK and ord(before) not in CELLS:
            yield at, "characters", f"{_named(character)}, which looks like a space but is not one"
        before, marks = character, 0
        if category[0] in "LNPS" or category == "Zs" or character in "\n\t" or ord(character) in PICTOGRAPHS:
            continue
        if character in VISIBLE_FORMATS:
            continue
        yield at, "characters", f"{_named(character)}, which is not a letter, mark or sign"


def _is_joined(before: str, joiner: str) -> bool:
    """True if an invisible joiner or variation selector may follow the character `before`."""
    kind = unicodedata.category(before)
    selects = joiner in SELECTORS and (kind[0] in "NP" or before == INFORMATION)
    native = kind == "Nd" and not before.isascii() and joiner not in SELECTORS
    return kind == "Lo" or kind[0] == "S" or ord(before) in PICTOGRAPHS or selects or native


def _may_carry(letter: str, mark: str) -> bool:
    name, kind = unicodedata.name(mark, ""), unicodedata.category(letter)
    if name.startswith("COMBINING"):
        keycap = unicodedata.category(mark) == "Me" and letter in "0123456789#*"
        over = unicodedata.combining(mark) == STRIKES and kind != "Sm"
        return keycap or ((kind[0] in "LNS" or letter == "\u25cc") and unicodedata.combining(mark) != 0 and not over)
    return kind in ("Lo", "Lm", "Nd") or letter == "\u25cc"


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of each run of letters, marks and digits that is not all ASCII."""
    start = -1
    for at, character in enumerate(f"{text} "):
        inside = character.isalnum() or unicodedata.category(character)[0] == "M" or IGNORABLE.match(character)
        if inside and start < 0:
            start = at
        elif not inside and start >= 0:
            if not text[start:at].isascii():
                yield start, at
            start = -1


@lru_cache(maxsize=4096)
def _is_one_word(word: str) -> bool:
    normal = unicodedata.normalize("NFKC", word)
    letters = [one for one in normal if one.isalpha() and script_of(one) != SHARED]
    cased = [script_of(one) for one in letters if unicodedata.category(one) in ("Lu", "Ll", "Lt")]
    others = {"CJK" if script_of(one) in EASTERN else script_of(one) for one in letters} - set(cased)
    if set(cased) == {"GREEK", "LATIN"} and cased.count("GREEK") == 1 and "GREEK" in (cased[0], cased[-1]):
        cased, others = ["LATIN"], others - {"GREEK"}
    systems = {ord(one) - unicodedata.decimal(one) for one in normal if one.isdecimal()}
    return len(set(cased)) <= 1 and len(others) <= 1 and len(systems) <= 1


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()


def visible(text: str) -> str:
    """Removes invisible characters, those that Unicode calls ignorable, from a text."""
    return IGNORABLE.sub("", text)


def plain(text: str) -> str:
    """Normalises a text for comparing words: NFKC, case folded, no ignorable characters, single blanks."""
    folded = unicodedata.normalize("NFKC", visible(text)).casefold()
    return " ".join(folded.replace("\u2019", "'").split())


def bare(text: str) -> str:
    """Normalises a text for comparison, also removing accents and replacing look-alike letters by Latin ones. A word
    all in Greek, Cyrillic or Armenian letters is left alone if more than a fifth of the letters is of that script: then
    it is a word of that language, not a disguise."""
    decomposed = unicodedata.normalize("NFKD", plain(text))
    marks_gone = "".join(character for character in decomposed if not unicodedata.combining(character))
    if marks_gone.isascii():
        return marks_gone
    marks_gone = marks_gone.translate({ord(character): _latin(character) for character in set(marks_gone)})
    letters = sum(map(str.isalpha, marks_gone))
    native = [one for one in NATIVE if len(one.findall(marks_gone)) > letters / 5]
    if not native:
        return marks_gone.translate(LOOKALIKES)
    return re.sub(r"\w+", lambda word: _undisguised(word.group(), native), marks_gone)


@lru_cache(maxsize=65536)
def _latin(character: str) -> str:
    found = None if character.isascii() else LATIN.search(unicodedata.name(character, ""))
    return next(filter(None, found.groups())).lower() if found else character


def _undisguised(word: str, native: list[re.Pattern[str]]) -> str:
    own = any(len(one.findall(word)) == len(word) for one in native)
    return word if own else word.translate(LOOKALIKES)


@lru_cache(maxsize=4096)
def whole_words(phrase: str) -> re.Pattern[str]:
    """Compiles a pattern that finds a normalised phrase as whole words, where its script separates words by spaces."""
    before = r"(?<!\w)" if is_bounded(phrase[:1]) else ""
    after = r"(?!\w)" if is_bounded(phrase[-1:]) else ""
    return re.compile(before + re.escape(phrase) + after)


def spaced_out(text: str) -> str:
    """Joins the words that a text writes letter by letter, such as `s e c r e t`. Returns one per line."""
    return "\n".join(re.sub(r"[^\w]|_", "", match.group()) for match in SPACED.finditer(text))


def is_bounded(character: str) -> bool:
    """True for a letter or digit of a script that separates words by spaces."""
    return bool(re.match(r"\w", character)) and not unicodedata.name(character, "").startswith(UNSPACED)
