"""Says which data sets of reasoning-gym our own checks decide, and by which. All others are scored by the library
alone.

What always holds: a data set is in the table only if each of its items has one answer that is right and follows from
the question, so that comparing with it decides; what is not in the table has `FOREIGN_SPEC`, which passes nothing. A
data set that is new in a later version of the library is in no table until somebody argues for it.

The argument, by kind:

- `INTEGER`: the question asks for one whole number that is defined by arithmetic or by counting what is written there.
  It is compared digit by digit, so the sum itself ("4 + 3") is no answer, and no mention of the number is.
- `RATIONAL`: likewise, for an exact fraction or a finite decimal; nothing may be left to compute.
- `TEXT`: the question says how to make one text from another, step by step or by a bijection, and what case and blanks
  it has. It is compared as it stands.

Left out on purpose: where several answers are right (mazes' ways, colourings, sudokus in a layout of their own, word
ladders, equations with two roots), where rounding decides (`decimal_arithmetic`, `power_function`, `coin_flip`), where
one value is written in several ways that the data set tells apart (`fraction_simplification`, `prime_factorization`: a
form that is equal to the question would pass), where answers are few, so that a guess is worth much (yes and no,
colours, relatives, common divisors, bits that are set), and where the next number of a sequence is whatever its author
thought of."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from curriculum.environments.foreign import FOREIGN_SPEC
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec
from verifiers.registry.spec import Spec


class OwnCheck(StrEnum):
    INTEGER = "integer"
    RATIONAL = "rational"
    TEXT = "text"


DECIDED: dict[str, OwnCheck] = {
    # defined by arithmetic
    "basic_arithmetic": OwnCheck.INTEGER,
    "chain_sum": OwnCheck.INTEGER,
    "products": OwnCheck.INTEGER,
    "lcm": OwnCheck.INTEGER,
    "leg_counting": OwnCheck.INTEGER,
    "simple_equations": OwnCheck.INTEGER,
    "decimal_chain_sum": OwnCheck.RATIONAL,
    "dice": OwnCheck.RATIONAL,
    # counted
    "count_primes": OwnCheck.INTEGER,
    # one text made from another
    "base_conversion": OwnCheck.TEXT,
    "bitwise_arithmetic": OwnCheck.TEXT,
    "caesar_cipher": OwnCheck.TEXT,
    "spell_backward": OwnCheck.TEXT,
    "string_insertion": OwnCheck.TEXT,
    "string_manipulation": OwnCheck.TEXT,
}
INTEGER = re.compile(r"-?[0-9]{1,40}", re.ASCII)
RATIONAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40}|/[1-9][0-9]{0,39})?", re.ASCII)
LINE = re.compile(r"[^\x00-\x1f\x7f]{1,400}")

_FORMS: dict[OwnCheck, tuple[re.Pattern[str], Callable[[str], Spec]]] = {
    OwnCheck.INTEGER: (INTEGER, lambda answer: AnswerSpec(notation="digits", expected=answer)),
    OwnCheck.RATIONAL: (RATIONAL, lambda answer: AnswerSpec(expected=answer)),
    OwnCheck.TEXT: (LINE, lambda answer: ExactSpec(expected=answer)),
}


def check_of(name: str, answer: str) -> Spec | None:
    """The spec of an item of that data set with that answer: one of our kinds, or `FOREIGN_SPEC`. None for an answer
    that is not of the form that its data set is known for: nothing can be said of such an item."""
    decided = DECIDED.get(name)
    if decided is None:
        return FOREIGN_SPEC
    pattern, spec = _FORMS[decided]
    return spec(answer.strip()) if pattern.fullmatch(answer.strip()) else None
