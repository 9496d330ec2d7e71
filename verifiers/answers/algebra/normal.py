"""Normal forms: a quick proof that two trees are equal, without SymPy.

A tree becomes a quotient of two sums of monomials over generators: symbols, pi, i, roots and logarithms of primes,
exponentials, and opaque terms for everything else. Every step is an identity of principal values, so two trees whose
cross products agree are equal wherever both have a value; the generators are not independent, so disagreement proves
nothing. Sine and cosine become exponentials, which settles trigonometric identities with sums of angles.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from verifiers.answers.algebra import monomials as m
from verifiers.answers.grammar import nodes as n

POSITIVE = frozenset({"prime", "pi", "positive", "abs"})
PRINCIPAL = frozenset({"symbol", "complex", "positive", "pi", "i", "call", "ln", "abs"})
"""Generators with principal powers. Excludes exp: exp(x)^(1/2) is exp(x/2) here, which is not the root for every
complex x."""
HALF = m.plain(Fraction(1, 2))
UNIT = m.RationalFunction(m.single(m.IMAGINARY))
EULER = m.RationalFunction(m.single(("exp", m.ONE)))


def is_positive(generator: m.Generator) -> bool:
    """True if an atom of a normal form, such as a prime or a symbol, is known to be positive."""
    if generator[0] in ("exp", "to"):
        return all(_is_real_power(*part) for part in generator[-1])
    return generator[0] in POSITIVE


def _is_real_power(generator: m.Generator, power: Fraction) -> bool:
    return generator[0] in POSITIVE or _is_symbol_power(generator, power)


def _is_symbol_power(generator: m.Generator, power: Fraction) -> bool:
    """True for a whole power of a symbol that stands for a real number."""
    return bool(generator[0] == "symbol") and power.denominator == 1


def _size(generator: m.Generator, power: Fraction = Fraction(1)) -> m.Generator:
    """Returns the absolute value of a power of an atom, as an atom of the normal form."""
    return ("abs", frozenset(m.single(generator, power).items()))


def broken_power(base: m.RationalFunction, exponent: Fraction) -> m.RationalFunction:
    """Returns the principal value of a rational function raised to a fractional exponent, in normal form."""
    if not base.whole or not base.over:
        return opaque("power", base, m.plain(exponent))
    if base.number is not None:
        return m.RationalFunction(m.number_power(base.number, exponent))
    if exponent.denominator == 2 and (inside := denested(base.over)) is not None:
        return inside**exponent.numerator
    content = Fraction(
        math.gcd(*(value.numerator for value in base.over.values())),
        math.lcm(*(value.denominator for value in base.over.values())),
    )
    inner = m.scaled(base.over, 1 / content)
    return m.RationalFunction(m.multiply(m.number_power(content, exponent), _broken_sum(inner, exponent)))


def _broken_sum(of: m.Polynomial, exponent: Fraction) -> m.Polynomial:
    """Raises a polynomial to a fractional exponent (principal value); the coefficients have no common divisor."""
    if len(of) == 1:
        ((monomial, sign),) = of.items()
        positive = all(is_positive(generator) for generator, _ in monomial)
        if sign == 1 and (len(monomial) == 1 or positive):
            generator, power = next(iter(monomial))
            if positive or (power == 1 and generator[0] in PRINCIPAL):
                return m.reduced({generator: power * exponent for generator, power in monomial}, Fraction(1))
            if _is_symbol_power(generator, power) and power % 2 == 0 and exponent.denominator == 2:
                return m.single(_size(generator, power / 2), exponent * 2)
    return m.single(("under", frozenset(of.items())), exponent)


def denested(of: m.Polynomial) -> m.RationalFunction | None:
    """Writes sqrt(a + b sqrt(d)) with two simple square roots, if a^2 - b^2 d is a rational square. Returns None for
    any other radicand."""
    rest = [monomial for monomial in of if monomial]
    if len(of) != 2 or len(rest) != 1 or of.get(m.ONE, Fraction(0)) <= 0:
        return None
    (monomial,) = rest
    if any(generator[0] != "prime" or power != Fraction(1, 2) for generator, power in monomial):
        return None
    radicand = Fraction(math.prod(generator[1] for generator, _ in monomial))
    a, b = of[m.ONE], of[monomial]
    square = a * a - b * b * radicand
    if square < 0:
        return None
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root * root != square:
        return None
    halves = [m.number_power((a + side * root) / 2, Fraction(1, 2)) if a != -side * root else {} for side in (1, -1)]
    return m.RationalFunction(m.add(halves[0], m.scaled(halves[1], Fraction(1 if b > 0 else -1))))


def exponential(of: m.RationalFunction) -> m.RationalFunction:
    if not of.whole:
        return opaque("exp", of)
    total = m.constant(Fraction(1))
    for monomial, factor in of.over.items():
        turned = _turned(monomial, factor)
        if monomial == frozenset({(m.IMAGINARY, Fraction(1)), (m.PI, Fraction(1))}):
            total = m.multiply(total, m.reduced({m.ZETA: factor}, Fraction(1)))
        elif (power_of := _exponential_of_logarithm(monomial, factor)) is not None:
            total = m.multiply(total, power_of)
        elif turned is not None:
            done = m.RationalFunction(total) * turned
            if not done.whole:
                raise m.NoNormalFormError
            total = done.over
        else:
            total = m.multiply(total, m.single(("exp", monomial), factor))
    return m.RationalFunction(total)


def _exponential_of_logarithm(monomial: m.Monomial, factor: Fraction) -> m.Polynomial | None:
    """Rewrites exp(c m ln p) as (p^m)^c for a prime p and a monomial m; None for others."""
    logarithms = [generator for generator, power in monomial if generator[0] == "ln" and power == 1]
    if len(logarithms) != 1 or not isinstance(logarithms[0][1], int):
        return None
    (generator,) = logarithms
    rest = monomial - {(generator, Fraction(1))}
    if not rest:
        return m.number_power(Fraction(generator[1]), factor)
    return m.single(("to", generator[1], rest), factor)


def _turned(monomial: m.Monomial, factor: Fraction) -> m.RationalFunction | None:
    """Rewrites exp(i n asin t) or exp(i n atan t) algebraically, for integer n and real constant t. Returns None for
    any other exponent."""
    powers = dict(monomial)
    if len(powers) != 2 or powers.pop(m.IMAGINARY, None) != 1 or factor.denominator != 1:
        return None
    ((generator, power),) = powers.items()
    if power != 1 or generator[:1] != ("call",) or generator[1] not in ("asin", "atan"):
        return None
    over, under = map(dict, generator[2])
    if not all(_is_real_power(*part) for monomial in (*over, *under) for part in monomial):
        return None
    argument = m.RationalFunction(over, under)
    # On the unit circle the inverse is the conjugate.
    unit = UNIT if factor > 0 else -UNIT
    if generator[1] == "atan":
        point = (m.plain(1) + unit * argument) / broken_power(m.plain(1) + argument * argument, Fraction(1, 2))
    else:
        point = broken_power(m.plain(1) - argument * argument, Fraction(1, 2)) + unit * argument
    return point ** abs(factor.numerator)


def same_turn(first: n.Expression, second: n.Expression) -> bool:
    """True if two real constants certainly differ by a multiple of 2 pi. False if that is not proven."""
    try:
        turn = exponential(UNIT * (normal(first, real=True) - normal(second, real=True)))
        return turn.over == turn.under
    except (m.NoNormalFormError, RecursionError):
        return False


def logarithm(of: m.RationalFunction) -> m.RationalFunction:
    if not of.whole or len(of.over) != 1:
        return opaque("ln", of)
    ((monomial, factor),) = of.over.items()
    monomial = frozenset(map(_even, monomial))
    if factor <= 0 or not all(is_positive(generator) for generator, _ in monomial):
        return opaque("ln", of)
    total: m.Polynomial = {}
    for prime, count in m.prime_powers(factor):
        total = m.add(total, m.scaled(m.single(("ln", prime)), Fraction(count)))
    for generator, power in monomial:
        match generator:
            case ("prime", prime):
                found = m.single(("ln", prime))
            case ("exp", inner):
                found = {inner: Fraction(1)}
            case ("to", prime, inner):
                found = m.multiply(m.single(("ln", prime)), {inner: Fraction(1)})
            case _:
                found = m.single(("ln", generator))
        total = m.add(total, m.scaled(found, power))
    return m.RationalFunction(total)


def _even(part: tuple[m.Generator, Fraction]) -> tuple[m.Generator, Fraction]:
    """Rewrites an even power of a real symbol as the same power of its absolute value; keeps any other power."""
    generator, power = part
    return (_size(generator), power) if _is_symbol_power(generator, power) and power % 2 == 0 else part


def opaque(name: str, *arguments: m.RationalFunction) -> m.RationalFunction:
    return m.RationalFunction(m.single(("call", name, *(argument.key for argument in arguments))))


def power(base: m.RationalFunction, exponent: m.RationalFunction) -> m.RationalFunction:
    value = exponent.number
    if value is not None:
        return base**value.numerator if value.denominator == 1 else broken_power(base, value)
    if base == EULER:
        return exponential(exponent)
    if not exponent.whole or not base.over:
        return opaque("power", base, exponent)
    # base^(sum of c m) is the product of (base^m)^c, each by the principal logarithm of the base.
    total = m.plain(1)
    for monomial, factor in exponent.over.items():
        if not monomial:
            part = power(base, m.plain(factor))
        elif base.number is not None and base.number > 0:
            powers = {("to", prime, monomial): count * factor for prime, count in m.prime_powers(base.number)}
            part = m.RationalFunction(m.reduced(powers, Fraction(1)))
        else:
            part = m.RationalFunction(m.single(("raised", base.key, monomial), factor))
        total = total * part
    return total


def hyperbolic_sine(of: m.RationalFunction) -> m.RationalFunction:
    return HALF * (exponential(of) - exponential(-of))


def hyperbolic_cosine(of: m.RationalFunction) -> m.RationalFunction:
    return HALF * (exponential(of) + exponential(-of))


def sine(angle: m.RationalFunction) -> m.RationalFunction:
    return -UNIT * hyperbolic_sine(UNIT * angle)


def cosine(angle: m.RationalFunction) -> m.RationalFunction:
    return hyperbolic_cosine(UNIT * angle)


ONE_ARGUMENT: dict[str, Callable[[m.RationalFunction], m.RationalFunction]] = {
    "sqrt": lambda a: broken_power(a, Fraction(1, 2)) if a.over else a,
    "exp": exponential,
    "ln": logarithm,
    "sin": sine,
    "cos": cosine,
    "tan": lambda a: sine(a) / cosine(a),
    "cot": lambda a: cosine(a) / sine(a),
    "sec": lambda a: m.plain(1) / cosine(a),
    "csc": lambda a: m.plain(1) / sine(a),
    "sinh": hyperbolic_sine,
    "cosh": hyperbolic_cosine,
    "tanh": lambda a: hyperbolic_sine(a) / hyperbolic_cosine(a),
    "acos": lambda a: HALF * m.RationalFunction(m.single(m.PI)) - opaque("asin", a),
    "floor": lambda a: _floor(a),  # noqa: PLW0108 - defined below
    "ceil": lambda a: -_floor(-a),
    "percent": lambda a: a * m.plain(Fraction(1, 100)),
}


def _floor(of: m.RationalFunction) -> m.RationalFunction:
    """Returns the floor of an expression in normal form, with its integer summand moved out."""
    whole = m.plain(math.floor(of.over.get(m.ONE, 0)) if of.whole else 0)
    rest = of - whole
    return whole + opaque("floor", rest) if rest.over and rest.number is None else whole


def normal(node: n.Expression, positive: frozenset[str] = frozenset(), real: bool = False) -> m.RationalFunction:
    """Returns the normal form of an expression, a quotient of two polynomials. Symbols in `positive` are positive; with
    `real`, other symbols are real, so that sqrt(x^2) is |x|. Raises NoNormalFormError if the form would be too large or
    a denominator is zero."""

    def inside(part: n.Expression) -> m.RationalFunction:
        return normal(part, positive, real)

    match node:
        case n.Number(value):
            if value.numerator.bit_length() + value.denominator.bit_length() > m.MAX_BITS:
                raise m.NoNormalFormError
            return m.plain(value)
        case n.Symbol(name):
            kind = "positive" if name in positive else "symbol" if real else "complex"
            return m.RationalFunction(m.single((kind, name)))
        case n.Constant("pi"):
            return m.RationalFunction(m.single(m.PI))
        case n.Constant("e"):
            return EULER
        case n.Constant("i"):
            return UNIT
        case n.Negation(of):
            return -inside(of)
        case n.Sum(parts):
            return reduce(operator.add, map(inside, parts))
        case n.Product(parts):
            return reduce(operator.mul, map(inside, parts))
        case n.Quotient(above, below):
            return inside(above) / inside(below)
        case n.Power(base, exponent):
            return power(inside(base), inside(exponent))
        case n.FunctionCall(name, (argument,)) if name in ONE_ARGUMENT:
            return ONE_ARGUMENT[name](inside(argument))
        case n.FunctionCall("abs", (argument,)):
            return _absolute(inside(argument), real)
        case n.FunctionCall("log", (argument, base)):
            return logarithm(inside(argument)) / logarithm(inside(base))
        case n.FunctionCall("cbrt", (argument,)):
            return _root(inside(argument), 3)
        case n.FunctionCall("root", (argument, n.Number(degree))) if (
            degree.denominator == 1 and 0 < degree < m.MAX_WHOLE_POWER
        ):
            return _root(inside(argument), degree.numerator)
        case n.FunctionCall("min" | "max" | "gcd" | "lcm" as name, arguments):
            # Order and repetition do not matter.
            members = frozenset(inside(argument).key for argument in arguments)
            return m.RationalFunction(m.single(("call", name, members)))
        case n.FunctionCall(name, arguments):
            return opaque(name, *map(inside, arguments))
    raise m.NoNormalFormError


def _absolute(of: m.RationalFunction, real: bool) -> m.RationalFunction:
    if real and of.whole and len(of.over) == 1:
        ((monomial, factor),) = of.over.items()
        if all(_is_symbol_power(*part) for part in monomial):
            total = m.constant(abs(factor))
            for generator, power in monomial:
                total = m.multiply(total, m.single(generator if power % 2 == 0 else _size(generator), power))
            return m.RationalFunction(total)
    return opaque("abs", of) if of.number is None else m.plain(abs(of.number))


def _root(of: m.RationalFunction, degree: int) -> m.RationalFunction:
    """Returns a root of an expression in normal form: real for odd degrees, principal for even ones. An odd root whose
    argument may be negative or complex stays unevaluated."""
    value = of.number
    if value is not None:
        if value == 0:
            return of
        if degree % 2 == 0 or value > 0:
            return m.RationalFunction(m.number_power(value, Fraction(1, degree)))
        return -m.RationalFunction(m.number_power(-value, Fraction(1, degree)))
    if degree % 2 == 0:
        return broken_power(of, Fraction(1, degree))
    if of.whole and len(of.over) == 1:
        ((monomial, factor),) = of.over.items()
        if factor > 0 and all(is_positive(generator) for generator, _ in monomial):
            return broken_power(of, Fraction(1, degree))
        # The real root of odd degree is multiplicative for real numbers.
        if all(_is_symbol_power(*part) for part in monomial):
            roots: dict[m.Generator, Fraction] = {
                ("real root", degree, generator): power for generator, power in monomial
            }
            rooted = m.reduced(roots, Fraction(-1 if factor < 0 else 1))
            return m.RationalFunction(m.multiply(m.number_power(abs(factor), Fraction(1, degree)), rooted))
    return opaque(f"root {degree}", of)


def same(first: n.Expression, second: n.Expression, positive: frozenset[str] = frozenset(), real: bool = False) -> bool:
    """True if two expressions are certainly equal wherever both have a value. False proves nothing."""
    try:
        left, right = normal(first, positive, real), normal(second, positive, real)
        return m.multiply(left.over, right.under) == m.multiply(right.over, left.under)
    except (m.NoNormalFormError, RecursionError):
        return False
