"""Regular expressions to be written, from a description in words; hidden texts are matched with them.

Invariants: the reference matches exactly those tests that should match, and half of the tests differ in one character
from a matching text. An answer is a program with a function `pattern()` that returns the expression: the kind `program`
is the one that runs submissions in a sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.programs.list_functions import program_taskset
from verifiers.programs.spec import Example, ProgramSpec

FUNCTION = "pattern"
_DRIVER = "import re\n\n\ndef drive(solution, text):\n    return re.fullmatch(solution.pattern(), text) is not None\n"
_SHOWN, _TESTS, _ATTEMPTS = 3, 9, 500
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_OTHERS = "aQ7-_:.,x0Z"
_WORDS = ("red", "green", "blue", "north", "south", "east", "west", "open", "closed", "low", "high", "new", "old")


@dataclass(frozen=True)
class Part:
    """Piece of a text: its description, its pattern, and a generator of matches."""

    words: str
    pattern: str
    draw: Callable[[Random], str]


def _some(pool: str, least: int, most: int, rng: Random) -> str:
    return "".join(rng.choices(pool, k=rng.randint(least, most)))


def _part(rng: Random) -> Part:
    least = rng.randint(1, 3)
    most = least + rng.randint(1, 3)
    sort = rng.randrange(7)
    if sort < 3:
        name, pool, chars = (
            ("digits", "0123456789", "[0-9]"),
            ("small letters from a to z", _LETTERS, "[a-z]"),
            ("capital letters from A to Z", _LETTERS.upper(), "[A-Z]"),
        )[sort]
        if rng.random() < 0.5:
            return Part(f"exactly {most} {name}", f"{chars}{{{most}}}", partial(_some, pool, most, most))
        return Part(f"{least} to {most} {name}", f"{chars}{{{least},{most}}}", partial(_some, pool, least, most))
    if sort < 5:
        words = sorted(rng.sample(_WORDS, 2 + rng.randrange(2)))
        return Part(f"one of the words {', '.join(words)}", f"(?:{'|'.join(words)})", lambda rng: rng.choice(words))
    if sort == 5:
        pool = "".join(sorted(rng.sample(_LETTERS, 3)))
        return Part(
            f"{least} or more letters, each of them {pool[0]}, {pool[1]} or {pool[2]}",
            f"[{pool}]{{{least},}}",
            partial(_some, pool, least, least + 3),
        )
    word = rng.choice(_WORDS)
    return Part(f"the word {word}, or nothing", f"(?:{word})?", lambda rng: rng.choice((word, "")))


def _sign(sign: str) -> Part:
    return Part(f"the sign {sign}", re.escape(sign), lambda _: sign)


def _codes(level: int, rng: Random) -> list[Part]:
    """Makes the pieces of a text to match: consecutive ones, separated by signs."""
    parts = [_part(rng)]
    for _ in range(1 + level):
        sign = rng.choice("-_:/")
        parts += [_sign(sign), _part(rng)]
    return parts


def _lists(level: int, rng: Random) -> list[Part]:
    """Makes the pieces of a text to match: a head, and items repeated with a separator."""
    item, sign, least = _part(rng), rng.choice(",;|"), 1 + rng.randrange(2)
    most = least + 1 + rng.randrange(2)
    listed = Part(
        f"{least + 1} to {most + 1} times {item.words}, with the sign {sign} between two of them",
        f"{item.pattern}(?:{re.escape(sign)}{item.pattern}){{{least},{most}}}",
        lambda rng: sign.join(item.draw(rng) for _ in range(rng.randint(least, most) + 1)),
    )
    return [*(_codes(level - 1, rng) if level else [_part(rng)]), _sign("="), listed]


def _choices(level: int, rng: Random) -> list[Part]:
    """Makes one piece of a text to match that has one of two or three forms."""
    forms = [_codes(max(0, level - 1), rng) for _ in range(2 + level // 3)]
    said = "; or ".join(", then ".join(part.words for part in form) for form in forms)
    pattern = "|".join("".join(part.pattern for part in form) for form in forms)
    return [Part(f"one of these forms: {said}", f"(?:{pattern})", lambda rng: _drawn(rng.choice(forms), rng))]


def _drawn(parts: list[Part], rng: Random) -> str:
    return "".join(part.draw(rng) for part in parts)


def _near(text: str, rng: Random) -> str:
    """Returns the text with one character removed, inserted or replaced."""
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(("", rng.choice(_OTHERS), text[at] + rng.choice(_OTHERS))) + text[at + 1 :]


_ASKED = (
    (
        "Write a regular expression, as Python's `re` reads it, that matches a text as a whole exactly where it is "
        "built so:"
    ),
    "Which regular expression of Python's `re` matches the whole of a text if, and only if, it has these parts:",
    (
        "A text is right where it has these parts. Give a regular expression of Python's `re` that matches right "
        "texts, as a whole, and no others:"
    ),
)


def _made(sort: Callable[[int, Random], list[Part]], level: int, rng: Random) -> Item:
    for _ in range(_ATTEMPTS):
        parts = sort(level, rng)
        pattern = "".join(part.pattern for part in parts)
        matches = re.compile(pattern).fullmatch
        right = dict.fromkeys(text for _ in range(6 * _TESTS) if (text := _drawn(parts, rng)))
        near = dict.fromkeys(_near(text, rng) for text in right for _ in range(3))
        wrong = [text for text in near if not matches(text)]
        longer = [text for one in right for sign in _OTHERS if not matches(text := one + sign)]
        later = [text for one in right for sign in _OTHERS if not matches(text := sign + one)]
        if len(right) >= _TESTS + _SHOWN and len(wrong) >= _TESTS + _SHOWN and longer and later:
            break
    else:
        raise AssertionError("no texts were found")  # unreachable with these tables
    yes, no = (
        list(right)[: _TESTS + _SHOWN],
        [*rng.sample(wrong, _TESTS + _SHOWN), rng.choice(longer), rng.choice(later)],
    )
    said = "\n".join(f"{at}. {part.words}" for at, part in enumerate(parts, 1))
    text = (
        f"{rng.choice(_ASKED)}\n{said}\nThe parts follow each other without blanks.\n"
        f"It matches, for example: {', '.join(map(repr, yes[:_SHOWN]))}\n"
        f"It does not match: {', '.join(map(repr, no[:_SHOWN]))}\n"
        f"Write a Python program with a function `{FUNCTION}()` that returns the expression as a text, and end with it "
        "in one fenced code block."
    )
    tests = [(one, True, at < _SHOWN) for at, one in enumerate(yes)] + [
        (one, False, at < _SHOWN) for at, one in enumerate(no)
    ]
    spec = ProgramSpec(
        function=FUNCTION,
        driver=_DRIVER,
        examples=tuple(
            Example(arguments=repr(one), expected=repr(matched), visible=shown) for one, matched, shown in tests
        ),
    )
    return Item(text=text, key=pattern, spec=spec, answer=f"def {FUNCTION}():\n    return {pattern!r}\n")


REGULAR_EXPRESSIONS = program_taskset(
    "regular_expressions",
    1,
    {
        "expressions_of_codes": partial(_made, _codes),
        "expressions_of_lists": partial(_made, _lists),
        "expressions_of_choices": partial(_made, _choices),
    },
    null_answers=tuple(f"def {FUNCTION}():\n    return {result!r}\n" for result in ("", ".*", ".+", "[a-z]+", "x")),
)
