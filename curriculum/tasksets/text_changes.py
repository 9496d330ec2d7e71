"""Texts that are changed step by step, and encodings: the result is written exactly as it has to be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.statements import COLOURS, DRINKS, GOODS, PETS, TRADES
from verifiers.exact.spec import ExactSpec

_WORDS = (*COLOURS, *DRINKS, *GOODS, *PETS, *TRADES)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
Change = tuple[str, Callable[[str], str]]


def _words(level: int, rng: Random) -> str:
    return " ".join(rng.sample(_WORDS, 3 + level))


def _changes(rng: Random) -> list[Change]:
    one, two = rng.sample("aeiorstln", 2)
    shift = rng.randint(1, 6)
    return [
        ("reverse the whole text, character by character", lambda x: x[::-1]),
        ("reverse the order of the words", lambda x: " ".join(x.split(" ")[::-1])),
        ("sort the words by the codes of their characters", lambda x: " ".join(sorted(x.split(" ")))),
        (f"replace every letter {one} by {two}", lambda x: x.replace(one, two)),
        (f"leave out every letter {two}", lambda x: " ".join(w for w in x.replace(two, "").split(" ") if w)),
        ("write the first letter of each word at its end instead",
         lambda x: " ".join(w[1:] + w[:1] for w in x.split(" "))),
        ("write every second word in capital letters, beginning with the first",
         lambda x: " ".join(w.upper() if at % 2 == 0 else w for at, w in enumerate(x.split(" ")))),
        (f"move every small letter {shift} places on in the alphabet, where a follows z", lambda x: _shifted(x, shift)),
        (("exchange neighbouring words: the first with the second, the third with the fourth, and so on; a last word "
         "without a partner stays"),
         lambda x: " ".join(_exchanged(x.split(" ")))),
        ("keep only the first of equal letters in each word",
         lambda x: " ".join("".join(dict.fromkeys(w)) for w in x.split(" "))),
    ]  # fmt: skip


def _shifted(text: str, shift: int) -> str:
    return "".join(_ALPHABET[(_ALPHABET.index(c) + shift) % 26] if c in _ALPHABET else c for c in text)


def _exchanged(words: list[str]) -> list[str]:
    pairs = [words[at : at + 2][::-1] for at in range(0, len(words), 2)]
    return [word for pair in pairs for word in pair]


_ALONE = "Answer with the result alone."


def _steps(level: int, rng: Random) -> Item:
    text, chosen = _words(level, rng), rng.sample(_changes(rng), 2 + level)
    result = text
    for _, change in chosen:
        before, result = result, change(result)
        if result == before:
            return _steps(level, rng)  # a step that changes nothing
    said = "\n".join(f"{at}. {words}" for at, (words, _) in enumerate(chosen, 1))
    opening = rng.choice(("Take the text", "Begin with the text", "Change the text", "Start from the text"))
    return Item(
        text=f"{opening} `{text}` and do this, in this order; a capital letter is not equal to the small one, and a "
        f"word without letters vanishes:\n{said}\n{_ALONE}",
        key=f"{text} {said}",
        spec=ExactSpec(expected=result),
        answer=result,
    )


_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def roman(number: int) -> str:
    """Returns a number from 1 to 3999 as a Roman numeral."""
    found = ""
    for value, letters in _ROMAN:
        found += letters * (number // value)
        number %= value
    return found


def in_base(number: int, base: int) -> str:
    """Returns a positive number as a numeral, with lower-case letters for digits from ten on."""
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = f"{'0123456789abcdef'[digit]}{digits}"
    return digits


def _numerals(level: int, rng: Random) -> Item:
    """Asks for a sum of numbers written in Roman numerals and other bases."""
    count = 1 + (level + 1) // 2
    numbers = [rng.randint(40, (300, 600, 900, 1200, 1200)[level]) for _ in range(count)]
    written, keys = [], []
    for number in numbers:
        base = rng.choice((2, 3, 5, 7, 8, 16, 0))
        written.append(f"{roman(number)} (Roman)" if not base else f"{in_base(number, base)} (base {base})")
        keys.append((number, base))
    target = rng.choice((2, 4, 6, 9, 16, 0))
    total = sum(numbers)
    answer = in_base(total, target) if target else roman(total)
    wanted = (
        f"in base {target}{', with small letters' if target > 10 else ''}"
        if target
        else "as a Roman numeral in capitals"
    )
    asked = (
        "Write" if count == 1 else rng.choice(("Add up", "Give the sum of", "Work out the sum of", "Write the sum of"))
    )
    return Item(
        text=f"{asked} {' and '.join(written)} {wanted}. {_ALONE}",
        key=f"{sorted(keys)} {target}",
        spec=ExactSpec(expected=answer),
        answer=answer,
    )


def _runs(level: int, rng: Random) -> Item:
    """Asks to run-length encode or decode a text."""
    letters = "abcd"
    text = ""
    while len(text) < 12 + 8 * level:
        letter = rng.choice([one for one in letters if not text.endswith(one)])
        text += letter * rng.randint(1, 5 + level)
    short = "".join(f"{letter}{len(list(group))}" for letter, group in groupby(text))
    shown, answer = (text, short) if rng.random() < 0.5 else (short, text)
    asked = (
        "Write each run of equal letters as the letter and the length of the run, also where that is 1"
        if answer == short
        else "Each letter is followed by a number that says how often it stands there. Write the letters out"
    )
    opening = rng.choice(("", "", "Here is a text. ", "Do this with the text below. "))
    return Item(
        text=f"{opening}{asked}: `{shown}`. {_ALONE}", key=f"{shown}", spec=ExactSpec(expected=answer), answer=answer
    )


def _ciphers(level: int, rng: Random) -> Item:
    """Asks to decipher a text whose cipher is explained."""
    text = (
        "".join(rng.sample(_WORDS, 2 + level // 2 if level < 4 else 5))
        if level < 2
        else " ".join(rng.sample(_WORDS, 1 + level))
    )
    key = rng.choice([word for word in _WORDS if len(word) > 3])
    width = 3 + level
    sort = rng.randrange(3)
    plain = text.replace(" ", "")
    if sort == 0:
        shift = rng.randint(2, 24)
        secret, said = _shifted(plain, shift), f"each letter was moved {shift} places on in the alphabet, a following z"
    elif sort == 1:
        secret = "".join(_shifted(c, _ALPHABET.index(key[at % len(key)])) for at, c in enumerate(plain))
        said = (
            f"the word {key} was written below the text again and again, and each letter was moved on in the "
            f"alphabet by the "
            "place of the letter below it, a counting 0, b 1 and so on, a following z"
        )
    else:
        secret = "".join(plain[at::width] for at in range(width))
        said = f"the text was written in rows of {width} letters, and then read column by column from the left"
    opening = rng.choice(("This was made secret", "This is a text in secret writing", "Read this", "Decipher this"))
    return Item(
        text=f"{opening}: `{secret}`. {said[0].upper()}{said[1:]}. What was the text? Answer with it in small letters "
        "without blanks.",
        key=f"{secret} {said}",
        spec=ExactSpec(expected=plain),
        answer=plain,
    )


TEXT_CHANGES = TopicTaskset(
    name="text_changes",
    version=2,
    makers={"changed_texts": _steps, "numerals": _numerals, "runs_of_letters": _runs, "secret_writing": _ciphers},
    null_answers=("a", "text", "I", "1"),
)
