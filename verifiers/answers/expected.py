r"""Expected answers that would be read as something else than meant: unknown units and sentences.

`1 GiB` with an unknown unit would be a product of letters, and `The answer is 180.` a phrase that no right answer
repeats. Either would refute every right answer, so the spec is refused.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar.number_words import BELOW_HUNDRED
from verifiers.answers.grammar.preprocessing import unwrapped
from verifiers.answers.grammar.tokens import plain
from verifiers.answers.grammar.values import RelationValue, Scalar, TextAnswer, Value
from verifiers.answers.grammar.vocabulary import CUSTOMARY, EXTENDED, GREEK_NAMES
from verifiers.answers.grammar.words import MONTHS
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped

NUMBER_AND_WORD = re.compile(r"[+-]?[0-9][0-9.,]*\s+([A-Za-z]{2,12})(?:\s*(?:/|\bper\b).{1,12})?")
ANNOUNCED = re.compile(r"\b(?:answer|result)s?\b.*(?:\b(?:is|are|be|equals?)\b|[:=])")
NUMERAL = re.compile(r"(?<![\w-])[0-9]+(?:[.,/][0-9]+)*(?![\w-])")
MOST_WORDS = 12
"""Words of a phrase that a right answer may be expected to repeat."""
FEW_WORDS = 2
"""Words of a name that may hold a number, `Apollo 11`."""


SQUARE = re.compile(r"(?<![A-Za-z\\}])\[((?:[^\[\],;]|\[[^\[\]]*\])*)\]")
INSIDE = re.compile(r"\{[^{}]*\}|\([^()]*\)|\[[^\[\]]*\]")


def _integer_part(text: str) -> str:
    """Returns a group in square brackets that may be an integer part, `[n/2]`; empty if there is none. A sum in square
    brackets, or a number, is a group."""
    for group in SQUARE.finditer(text.replace("\\left", "").replace("\\right", "")):
        content, before = group[1].strip(), ""
        while content != before:
            content, before = INSIDE.sub("", content), content
        if not re.search(r"[+-]", content[1:]) and not content.isdigit():
            return group.group()
    return ""


def refuse_misread(text: str, expected: Value, *, named: bool) -> None:
    """Raises SpecError for an expected answer that is probably misread. `named`: the spec names its symbols, so letters
    are meant as such."""
    bracket = _integer_part(text) if "[" in text and isinstance(expected, Scalar | RelationValue) else ""
    if bracket:
        raise SpecError(
            f"{escaped(bracket)!r} may be an integer part or a group",
            hint="Write \\lfloor and \\rfloor, or round brackets.",
        )
    match expected:
        case Scalar() if not named:
            found = NUMBER_AND_WORD.fullmatch(unwrapped(plain(text))[0])
            word = found[1] if found else ""
            if word and not (CUSTOMARY.fullmatch(word) or word in EXTENDED or word in GREEK_NAMES):
                raise SpecError(
                    f"{escaped(word)!r} is not a known unit, and would be read as a product of its letters",
                    hint=f"Write a known unit, or a product as {'*'.join(word)}, or name the symbols in `variables`.",
                )
        case TextAnswer(phrase) if _is_sentence(phrase, ends=text.rstrip("$ }").endswith(".")):
            raise SpecError(
                "the expected answer is a sentence, which no right answer repeats",
                hint="Write only the answer itself, such as `180`. Compare whole sentences with the kind `exact`.",
            )
        case _:
            return


def _is_sentence(phrase: str, *, ends: bool) -> bool:
    words = phrase.split()
    if ANNOUNCED.search(phrase) or len(words) > MOST_WORDS:
        return True
    if ends and len(words) > FEW_WORDS and not BELOW_HUNDRED.keys().isdisjoint((word,) for word in words):
        return True
    return len(words) > FEW_WORDS and NUMERAL.search(phrase) is not None and not MONTHS.search(phrase)
