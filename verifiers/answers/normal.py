"""Normal forms: a quick proof that two trees are equal, without SymPy.

A tree becomes a quotient of two sums of monomials over generators: symbols, pi, i, roots and logarithms of primes,
exponentials, and whatever else is left opaque. Every step is an identity of principal values, so two trees whose cross
products agree are equal wherever both have a value; the generators are not independent, so disagreement proves nothing.
Sine and cosine become exponentials, which settles the identities of trigonometry with angles that are sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from verifiers.answers.grammar.nodes import (
    Call,
    Constant,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
)
from verifiers.answers.monomials import (
    IMAGINARY,
    MAX_BITS,
    MAX_WHOLE_POWER,
    ONE,
    PI,
    ZETA,
    Generator,
    Monomial,
    NoNormalFormError,
    Polynomial,
    Ratio,
    add,
    added,
    constant,
    key,
    multiply,
    number_power,
    over,
    plain,
    primes,
    reduced,
    scaled,
    single,
    times,
    whole_power,
)

POSITIVE = frozenset({"prime", "pi", "positive", "abs"})
PRINCIPAL = frozenset({"symbol", "complex", "positive", "pi", "i", "call", "ln", "abs"})
"""Generators whose powers are principal: exp(x)^(1/2) is exp(x/2) here, which is not the root for every complex x."""


def is_positive(generator: Generator) -> bool:
    """Generators whose rational powers are real and positive."""
    if generator[0] in ("exp", "to"):
        return all(
            inner[0] in POSITIVE or (inner[0] == "symbol" and power.denominator == 1) for inner, power in generator[-1]
        )
    return generator[0] in POSITIVE


def broken_power(base: Ratio, exponent: Fraction) -> Ratio:
    """A principal power with an exponent that is not whole."""
    if len(base.under) != 1 or not base.over:
        return opaque("power", base, plain(exponent))
    if set(base.over) == {ONE}:
        return Ratio(number_power(base.over[ONE], exponent), constant(Fraction(1)))
    if exponent.denominator == 2 and (inside := denested(base.over)) is not None:
        return whole_power(inside, exponent.numerator)
    content = Fraction(
        math.gcd(*(value.numerator for value in base.over.values())),
        math.lcm(*(value.denominator for value in base.over.values())),
    )
    outside = number_power(content, exponent)
    inner = scaled(base.over, 1 / content)
    if len(inner) == 1:
        ((monomial, sign),) = inner.items()
        positive = all(is_positive(generator) for generator, _ in monomial)
        if sign == 1 and (len(monomial) == 1 or positive):
            generator, power = next(iter(monomial))
            if positive or (power == 1 and generator[0] in PRINCIPAL):
                rooted = reduced({generator: power * exponent for generator, power in monomial}, Fraction(1))
                return Ratio(multiply(outside, rooted), constant(Fraction(1)))
            if generator[0] == "symbol" and power.denominator == 1 and power % 2 == 0 and exponent.denominator == 2:
                half = frozenset({(generator, power / 2)})
                magnitude = single(("abs", frozenset({(half, Fraction(1))})), exponent * 2)
                return Ratio(multiply(outside, magnitude), constant(Fraction(1)))
    under = single(("under", frozenset(inner.items())), exponent)
    return Ratio(multiply(outside, under), constant(Fraction(1)))


def denested(of: Polynomial) -> Ratio | None:
    """The square root of a + b sqrt(d) as a sum of two square roots, where a^2 - b^2 d is a square; else None."""
    rest = [monomial for monomial in of if monomial]
    if len(of) != 2 or len(rest) != 1 or of.get(ONE, Fraction(0)) <= 0:
        return None
    (monomial,) = rest
    if any(generator[0] != "prime" or power != Fraction(1, 2) for generator, power in monomial):
        return None
    radicand = Fraction(math.prod(generator[1] for generator, _ in monomial))
    a, b = of[ONE], of[monomial]
    square = a * a - b * b * radicand
    if square < 0:
        return None
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root * root != square:
        return None
    halves = [number_power((a + side * root) / 2, Fraction(1, 2)) if a != -side * root else {} for side in (1, -1)]
    return Ratio(add(halves[0], scaled(halves[1], Fraction(1 if b > 0 else -1))), constant(Fraction(1)))


def exponential(of: Ratio) -> Ratio:
    if len(of.under) != 1:
        return opaque("exp", of)
    total = constant(Fraction(1))
    for monomial, factor in of.over.items():
        turned = _turned(monomial, factor)
        if monomial == frozenset({(IMAGINARY, Fraction(1)), (PI, Fraction(1))}):
            total = multiply(total, reduced({ZETA: factor}, Fraction(1)))
        elif (power_of := _exponential_of_logarithm(monomial, factor)) is not None:
            total = multiply(total, power_of)
        elif turned is not None:
            done = times(Ratio(total, constant(Fraction(1))), turned)
            if len(done.under) != 1:
                raise NoNormalFormError
            total = done.over
        else:
            total = multiply(total, single(("exp", monomial), factor))
    return Ratio(total, constant(Fraction(1)))


def _exponential_of_logarithm(monomial: Monomial, factor: Fraction) -> Polynomial | None:
    """exp(c m ln p) as (p^m)^c for a prime p; None for anything else."""
    logarithms = [generator for generator, power in monomial if generator[0] == "ln" and power == 1]
    if len(logarithms) != 1 or not isinstance(logarithms[0][1], int):
        return None
    (generator,) = logarithms
    rest = monomial - {(generator, Fraction(1))}
    if not rest:
        return number_power(Fraction(generator[1]), factor)
    return single(("to", generator[1], rest), factor)


def _turned(monomial: Monomial, factor: Fraction) -> Ratio | None:
    """exp(i n f(t)) for an inverse circular function f of a number t and a whole n; None for anything else."""
    powers = dict(monomial)
    if len(powers) != 2 or powers.pop(IMAGINARY, None) != 1 or factor.denominator != 1:
        return None
    ((generator, power),) = powers.items()
    if power != 1 or generator[:1] != ("call",) or generator[1] not in ("asin", "acos", "atan"):
        return None
    argument = Ratio(dict(generator[2][0]), dict(generator[2][1]))
    if not _is_real(argument):
        return None
    square = times(argument, argument)
    one = plain(Fraction(1))
    # A point of the unit circle: its inverse is its conjugate.
    unit = UNIT if factor > 0 else negated(UNIT)
    if generator[1] == "atan":
        length = broken_power(added(one, square), Fraction(1, 2))
        point = over(added(one, times(unit, argument)), length)
    else:
        other = broken_power(added(one, negated(square)), Fraction(1, 2))
        cosine_part, sine_part = (argument, other) if generator[1] == "acos" else (other, argument)
        point = added(cosine_part, times(unit, sine_part))
    return whole_power(point, abs(factor.numerator))


def _is_real(of: Ratio) -> bool:
    """Whether it is real for real symbols by the way it is built."""
    return all(
        generator[0] in POSITIVE or (generator[0] == "symbol" and power.denominator == 1)
        for part in (of.over, of.under)
        for monomial in part
        for generator, power in monomial
    )


def same_turn(first: Expression, second: Expression) -> bool:
    """Whether two constants certainly differ by a multiple of 2 pi."""
    try:
        turn = exponential(times(UNIT, added(normal(first, real=True), negated(normal(second, real=True)))))
        return add(turn.over, scaled(turn.under, Fraction(-1))) == {}
    except (NoNormalFormError, RecursionError):
        return False


def logarithm(of: Ratio) -> Ratio:
    if len(of.under) != 1 or len(of.over) != 1:
        return opaque("ln", of)
    ((monomial, factor),) = of.over.items()
    monomial = frozenset(map(_even, monomial))
    if factor <= 0 or not all(is_positive(generator) for generator, _ in monomial):
        return opaque("ln", of)
    total: Polynomial = {}
    for part, sign in ((factor.numerator, 1), (factor.denominator, -1)):
        for prime, count in primes(part):
            total = add(total, scaled(single(("ln", prime)), Fraction(sign * count)))
    for generator, power in monomial:
        match generator:
            case ("prime", prime):
                total = add(total, scaled(single(("ln", prime)), power))
            case ("exp", inner):
                total = add(total, {inner: power})
            case ("to", prime, inner):
                total = add(total, scaled(multiply(single(("ln", prime)), {inner: Fraction(1)}), power))
            case _:
                total = add(total, scaled(single(("ln", generator)), power))
    return Ratio(total, constant(Fraction(1)))


def _even(part: tuple[Generator, Fraction]) -> tuple[Generator, Fraction]:
    """An even power of a real symbol is a power of its absolute value."""
    generator, power = part
    if generator[0] == "symbol" and power.denominator == 1 and power % 2 == 0:
        return ("abs", frozenset({(frozenset({(generator, Fraction(1))}), Fraction(1))})), power
    return part


def opaque(name: str, *arguments: Ratio) -> Ratio:
    return Ratio(single(("call", name, *map(key, arguments))), constant(Fraction(1)))


def negated(of: Ratio) -> Ratio:
    return Ratio(scaled(of.over, Fraction(-1)), of.under)


def power(base: Ratio, exponent: Ratio) -> Ratio:
    if len(exponent.under) == 1 and set(exponent.over) <= {ONE}:
        value = exponent.over.get(ONE, Fraction(0))
        if value.denominator == 1:
            return whole_power(base, value.numerator)
        return broken_power(base, value)
    if base == Ratio(single(("exp", ONE)), constant(Fraction(1))):
        return exponential(exponent)
    if len(exponent.under) != 1 or not base.over:
        return opaque("power", base, exponent)
    # base^(sum of c m) is the product of (base^m)^c, each by the principal logarithm of the base.
    total = plain(Fraction(1))
    for monomial, factor in exponent.over.items():
        if not monomial:
            part = power(base, plain(factor))
        elif len(base.under) == 1 and set(base.over) == {ONE} and base.over[ONE] > 0:
            part = _number_to(base.over[ONE], monomial, factor)
        else:
            part = Ratio(single(("raised", key(base), monomial), factor), constant(Fraction(1)))
        total = times(total, part)
    return total


def _number_to(base: Fraction, monomial: Monomial, factor: Fraction) -> Ratio:
    powers: dict[Generator, Fraction] = {}
    for part, sign in ((base.numerator, 1), (base.denominator, -1)):
        for prime, count in primes(part):
            powers[("to", prime, monomial)] = sign * count * factor
    return Ratio(reduced(powers, Fraction(1)), constant(Fraction(1)))


HALF_I = Ratio(scaled(single(IMAGINARY), Fraction(-1, 2)), constant(Fraction(1)))
HALF = plain(Fraction(1, 2))
UNIT = Ratio(single(IMAGINARY), constant(Fraction(1)))


def sine(angle: Ratio) -> Ratio:
    turn = times(UNIT, angle)
    return times(HALF_I, added(exponential(turn), negated(exponential(negated(turn)))))


def cosine(angle: Ratio) -> Ratio:
    turn = times(UNIT, angle)
    return times(HALF, added(exponential(turn), exponential(negated(turn))))


def magnitude(of: Ratio) -> Ratio:
    if len(of.under) == 1 and set(of.over) <= {ONE}:
        return plain(abs(of.over.get(ONE, Fraction(0))))
    return opaque("abs", of)


ONE_ARGUMENT: dict[str, Callable[[Ratio], Ratio]] = {
    "sqrt": lambda a: broken_power(a, Fraction(1, 2)) if a.over else a,
    "exp": exponential,
    "ln": logarithm,
    "sin": sine,
    "cos": cosine,
    "tan": lambda a: over(sine(a), cosine(a)),
    "cot": lambda a: over(cosine(a), sine(a)),
    "sec": lambda a: over(plain(Fraction(1)), cosine(a)),
    "csc": lambda a: over(plain(Fraction(1)), sine(a)),
    "sinh": lambda a: times(HALF, added(exponential(a), negated(exponential(negated(a))))),
    "cosh": lambda a: times(HALF, added(exponential(a), exponential(negated(a)))),
    "tanh": lambda a: over(ONE_ARGUMENT["sinh"](a), ONE_ARGUMENT["cosh"](a)),
    "percent": lambda a: times(a, plain(Fraction(1, 100))),
}


def normal(node: Expression, positive: frozenset[str] = frozenset(), real: bool = False) -> Ratio:
    """The normal form. Symbols in `positive` are positive; `real` lets sqrt(x^2) be |x|.

    Raises NoNormalFormError.
    """

    def inside(part: Expression) -> Ratio:
        return normal(part, positive, real)

    match node:
        case Number(value):
            if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
                raise NoNormalFormError
            return plain(value)
        case Symbol(name):
            kind = "positive" if name in positive else "symbol" if real else "complex"
            return Ratio(single((kind, name)), constant(Fraction(1)))
        case Constant("pi"):
            return Ratio(single(PI), constant(Fraction(1)))
        case Constant("e"):
            return Ratio(single(("exp", ONE)), constant(Fraction(1)))
        case Constant("i"):
            return UNIT
        case Negation(of):
            return negated(inside(of))
        case Sum(parts):
            total = inside(parts[0])
            for part in parts[1:]:
                total = added(total, inside(part))
            return total
        case Product(parts):
            total = inside(parts[0])
            for part in parts[1:]:
                total = times(total, inside(part))
            return total
        case Quotient(above, below):
            return over(inside(above), inside(below))
        case Power(base, exponent):
            return power(inside(base), inside(exponent))
        case Call(name, (argument,)) if name in ONE_ARGUMENT:
            return ONE_ARGUMENT[name](inside(argument))
        case Call("abs", (argument,)):
            return _absolute(inside(argument), real)
        case Call("log", (argument, base)):
            return over(logarithm(inside(argument)), logarithm(inside(base)))
        case Call("cbrt", (argument,)):
            return _root(inside(argument), 3)
        case Call("root", (argument, Number(degree))) if degree.denominator == 1 and 0 < degree < MAX_WHOLE_POWER:
            return _root(inside(argument), degree.numerator)
        case Call(name, arguments):
            return opaque(name, *map(inside, arguments))
    raise NoNormalFormError


def _absolute(of: Ratio, real: bool) -> Ratio:
    if real and len(of.under) == 1 and len(of.over) == 1:
        ((monomial, factor),) = of.over.items()
        if all(generator[0] == "symbol" and power.denominator == 1 for generator, power in monomial):
            total = constant(abs(factor))
            for generator, power in monomial:
                if power % 2 == 0:
                    total = multiply(total, single(generator, power))
                else:
                    part = frozenset({(frozenset({(generator, Fraction(1))}), Fraction(1))})
                    total = multiply(total, single(("abs", part), power))
            return Ratio(total, constant(Fraction(1)))
    return magnitude(of)


def _root(of: Ratio, degree: int) -> Ratio:
    """The real root of a rational number where the degree is odd; of anything else only what holds on both branches."""
    if len(of.under) == 1 and set(of.over) <= {ONE}:
        value = of.over.get(ONE, Fraction(0))
        if value == 0:
            return of
        if degree % 2 == 0 or value > 0:
            return Ratio(number_power(value, Fraction(1, degree)), constant(Fraction(1)))
        return negated(Ratio(number_power(-value, Fraction(1, degree)), constant(Fraction(1))))
    if degree % 2 == 0:
        return broken_power(of, Fraction(1, degree))
    if len(of.under) == 1 and len(of.over) == 1:
        ((monomial, factor),) = of.over.items()
        if factor > 0 and all(is_positive(generator) for generator, _ in monomial):
            return broken_power(of, Fraction(1, degree))
        # The real root of odd degree is multiplicative for real numbers.
        if all(generator[0] == "symbol" and power.denominator == 1 for generator, power in monomial):
            roots: dict[Generator, Fraction] = {
                ("real root", degree, generator): power for generator, power in monomial
            }
            rooted = reduced(roots, Fraction(-1 if factor < 0 else 1))
            return Ratio(multiply(number_power(abs(factor), Fraction(1, degree)), rooted), constant(Fraction(1)))
    return opaque(f"root {degree}", of)


def same(first: Expression, second: Expression, positive: frozenset[str] = frozenset(), real: bool = False) -> bool:
    """Whether the two are certainly equal wherever both have a value. False says nothing."""
    try:
        left, right = normal(first, positive, real), normal(second, positive, real)
        return multiply(left.over, right.under) == multiply(right.over, left.under)
    except (NoNormalFormError, RecursionError):
        return False
