"""Adjacent factors: products without a sign and mixed numbers; refuses ambiguous ones.

Refused, because readers disagree: `1/2x`, two adjacent numbers, `f(2)` for an unknown `f` of the plain language, `x(2)`
and `2x2` in answers.
"""

from __future__ import annotations

import itertools

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Expression, Negation, Number, Power, Quotient, Symbol
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.tokens import Token
from verifiers.answers.grammar.vocabulary import CALLED, CONSTANTS

AMBIGUOUS = Symbol("")
VALUE_OR_PRODUCT = "a letter before one letter or number in brackets: a value of a function, or a product"
FUNCTION_LETTERS = frozenset("fgh")
"""Letters that read as functions before a bracket, even if a variable has the name."""


def beside_plain(reader: Reader, factors: list[Expression]) -> None:
    """Reads the next factor of a product without signs, in plain notation, and appends it to `factors`."""
    before, token = reader.peek(-1), reader.token
    if token.kind == "number" and not backward_product(reader, before):
        raise reader.error("a number directly after another value: write the sign between them")
    if token.text == "(" and isinstance(factors[-1], Symbol) and factors[-1].name in FUNCTION_LETTERS:
        raise reader.error(f"{factors[-1].name}(...) reads as an unknown function")
    _append(reader, factors, before, token)


def beside(reader: Reader, factors: list[Expression]) -> None:
    """Reads the next factor of a product without signs, in an answer, and appends it to `factors`. Also reads numbers
    with their own power, and mixed numbers such as `1 1/2`."""
    before, token = reader.peek(-1), reader.token
    if token.kind == "number":
        mixed = _plain_mixed(reader, factors, before)
        if mixed is not None:
            factors[:] = [mixed]
        elif before.text == "!" or _is_power_factor(reader, factors[-1], before):
            factors.append(reader.power())
        elif len(factors) > 1 or not backward_product(reader, before):
            raise reader.error("a number directly after another value: write the sign between them")
        else:
            factors.append(reader.power())
            if reader.starts_factor():
                raise reader.error("a number between two letters: a power or a factor")
        return
    if token.text == "(":
        last = factors[-1]
        if isinstance(last, Power) and isinstance(last.base, Symbol) and last.base.name in CALLED:
            raise reader.error("a power of an unknown function")
        if token.glued and isinstance(last, Symbol) and _is_value(reader.peek()) and reader.peek(2).text == ")":
            raise reader.error(VALUE_OR_PRODUCT)
    if token.text in ("[", "\\{") and _may_be_called(reader, factors[-1]):
        raise reader.error(VALUE_OR_PRODUCT)
    _append(reader, factors, before, token)


def _may_be_called(reader: Reader, before: Expression) -> bool:
    """True if the square bracket that comes next may hold the argument or index of a name before it: `E[X]`, `x[n-1]`.
    `k[a+b]` is a product."""
    name = before.name if isinstance(before, Symbol) else ""
    if not name or name in CALLED or name in ("E", "P", "V"):
        return bool(name)
    rest = reader.tokens[reader.index + 1 :]
    inside = list(itertools.takewhile(lambda token: token.text not in ("]", "\\}", "the end"), rest))
    plain = len(inside) < 4 and all(_is_value(token) or token.text in ("+", "-") for token in inside)
    return plain and (len(inside) == 1 or any(token.integer for token in inside))


def _is_value(token: Token) -> bool:
    return token.kind == "number" or (token.kind == "word" and len(token.text) == 1 and token.text not in CONSTANTS)


def _append(reader: Reader, factors: list[Expression], before: Token, token: Token) -> None:
    start = reader.index
    factor = reader.power()
    mixed = mixed_number(factors[-1], factor) if before.integer and token.text == "\\frac" else None
    if mixed is None:
        factors.append(factor)
    elif len(factors) == 1 and mixed is not AMBIGUOUS:
        factors[:] = [mixed]
    else:
        raise GrammarError("a number directly before a fraction of numbers is ambiguous", position=start)


def backward_product(reader: Reader, before: Token) -> bool:
    """True if the next token is the digits of a product such as `x2`. They follow a variable directly, and have no
    power of their own."""
    following = reader.peek()
    binding = ("^", "!", "\\frac", "\\degree") if reader.language.declared else ("^", "!", "\\frac")
    bound = following.kind == "mark" and following.text in binding
    is_variable = before.kind == "word" and reader.is_variable(before.text)
    return is_variable and reader.token.glued and reader.token.integer and not bound


def mixed_number(whole: Expression, fraction: Expression) -> Expression | None:
    """Combines a number and a proper fraction, such as 1 and 1/2, into 3/2. Returns AMBIGUOUS for another numeric
    fraction or a power of one, and None for other factors."""
    number = whole.of if isinstance(whole, Negation) else whole
    powered = isinstance(fraction, Power)
    match fraction.base if isinstance(fraction, Power) else fraction:
        case Quotient(Number(above), Number(below)) if isinstance(number, Number):
            if powered or not 0 < above < below or above.denominator * below.denominator != 1:
                return AMBIGUOUS
            value = Number(number.value + above / below)
            return Negation(value) if isinstance(whole, Negation) else value
        case _:
            return None


def _is_power_factor(reader: Reader, factor: Expression, before: Token) -> bool:
    """True if the next number, which has its own power, is a factor: `(n+1)2^{n-1}`, `n2^{n-1}`. After a letter, the
    power must contain a letter, too: `a2^3` may be a power of a_2."""
    if reader.peek().text != "^" or not reader.token.integer:
        return False
    if before.text == ")":
        return not isinstance(factor, Number)
    if not isinstance(factor, Symbol) or before.kind not in ("word", "symbol"):
        return False
    end = reader.tokens[reader.index + 2 : reader.index + 12]
    inside = itertools.takewhile(lambda token: token.text != "}", end[1:]) if end[0].text == "{" else end[:1]
    return any(token.kind in ("word", "symbol") for token in inside)


def _plain_mixed(reader: Reader, factors: list[Expression], before: Token) -> Expression | None:
    """Reads a mixed number such as `1 1/2`, whose whole part is read already; None if none is written here."""
    following = reader.tokens[reader.index : reader.index + 4]
    if len(following) < 4:
        return None
    first, slash, second, after = following
    if not (before.integer and first.integer and not first.glued and slash.text == "/" and slash.glued):
        return None
    whole = factors[0]
    inside = whole.of if isinstance(whole, Negation) else whole
    plain = isinstance(inside, Number) and inside.value.denominator == 1
    if not (second.kind == "number" and second.integer and second.glued) or len(factors) > 1 or not plain:
        return None
    if not 0 < first.value < second.value or after.text in ("^", "!", "/", "*", "\\times", "\\frac"):
        return None
    if after.glued and after.kind in ("word", "symbol"):
        return None
    reader.index += 3
    return mixed_number(whole, Quotient(Number(first.value), Number(second.value)))
