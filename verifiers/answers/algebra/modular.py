"""Values modulo primes: a proof that two rational numbers differ, regardless of their size.

A rational number without the prime in its denominator has a residue, and equal numbers have equal residues. Powers of
whole numbers are reduced by Euler's theorem in its general form (a^e = a^(e mod phi(m) + phi(m)) modulo m for e at
least log2 m), binomial coefficients by Lucas' theorem, so towers and (10^8)! cost nothing.
"""

from __future__ import annotations

from functools import cache, reduce
from itertools import accumulate

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Expression, FunctionCall, Negation, Number, Power, Product, Quotient, Sum
from verifiers.answers.grammar.rational import rational

PRIMES = (10_007, 10_037, 100_003, 100_019, 1_000_003)
MAX_FACTORS = 20_000
"""Maximum factors of a factorial that is multiplied out."""
MAX_TABLE = 200_000


class NoResidueError(Exception):
    """No residue is known: the expression is not rational, or the prime divides a denominator."""


def residue(node: Expression, prime: int) -> int:
    """Computes the residue of a rational number modulo a prime, from the expression without evaluating it. Raises
    NoResidueError if the residue cannot be determined."""
    match node:
        case Number(value):
            return value.numerator * _inverse(value.denominator, prime) % prime
        case Negation(of):
            return -residue(of, prime) % prime
        case Sum(parts):
            return sum(residue(part, prime) for part in parts) % prime
        case Product(parts):
            return reduce(lambda total, part: total * residue(part, prime) % prime, parts, 1)
        case Quotient(above, below):
            return residue(above, prime) * _inverse(residue(below, prime), prime) % prime
        case Power(base, exponent):
            if not is_whole(exponent):
                raise NoResidueError
            under = residue(base, prime)
            if under == 0:
                if not at_least(exponent, 1):
                    raise NoResidueError
                return 0
            return pow(under, whole(exponent, prime - 1), prime)
        case FunctionCall("factorial", (of,)):
            return _factorial(of, prime)
        case FunctionCall("binomial", (of, chosen)):
            return _binomial(of, chosen, prime)
        case FunctionCall("percent", (of,)):
            return residue(of, prime) * _inverse(100, prime) % prime
        case _:
            raise NoResidueError


def whole(node: Expression, modulus: int) -> int:
    """Computes the residue of an integer modulo any modulus, from the expression without evaluating it. Raises
    NoResidueError if the residue cannot be determined."""
    match node:
        case Number(value) if value.denominator == 1:
            return value.numerator % modulus
        case Negation(of):
            return -whole(of, modulus) % modulus
        case Sum(parts):
            return sum(whole(part, modulus) for part in parts) % modulus
        case Product(parts):
            return reduce(lambda total, part: total * whole(part, modulus) % modulus, parts, 1 % modulus)
        case Power(base, exponent) if is_whole(base) and is_natural(exponent):
            if isinstance(exponent, Number):
                return pow(whole(base, modulus), exponent.value.numerator, modulus)
            if not at_least(exponent, modulus.bit_length() + 1):
                raise NoResidueError
            period = totient(modulus)
            return pow(whole(base, modulus), whole(exponent, period) + period, modulus)
        case FunctionCall("factorial", (of,)):
            return _factorial(of, modulus)
        case _:
            raise NoResidueError


def _inverse(value: int, prime: int) -> int:
    if value % prime == 0:
        raise NoResidueError
    return pow(value, -1, prime)


def _small(node: Expression) -> int | None:
    """Returns the value of an expression if it is an integer small enough to compute, else None."""
    try:
        value = rational(node)
    except GrammarError:
        return None
    return None if value is None or value.denominator != 1 else value.numerator


def _factorial(of: Expression, modulus: int) -> int:
    if is_natural(of) and at_least(of, modulus):
        return 0
    value = _small(of)
    if value is None or not 0 <= value <= MAX_FACTORS:
        raise NoResidueError
    return reduce(lambda total, factor: total * factor % modulus, range(2, value + 1), 1) % modulus


def _binomial(of: Expression, chosen: Expression, prime: int) -> int:
    above, below = _small(of), _small(chosen)
    if above is None or below is None or above < 0 or below < 0 or prime > MAX_TABLE:
        raise NoResidueError
    table = _factorials(prime)
    total = 1
    while above or below:
        a, b = above % prime, below % prime
        if b > a:
            return 0
        total = total * table[a] * pow(table[b] * table[a - b], -1, prime) % prime
        above, below = above // prime, below // prime
    return total


@cache
def _factorials(prime: int) -> tuple[int, ...]:
    return tuple(accumulate(range(1, prime), lambda total, factor: total * factor % prime, initial=1))


@cache
def totient(value: int) -> int:
    result, rest, divisor = value, value, 2
    while divisor * divisor <= rest:
        if rest % divisor == 0:
            result -= result // divisor
            while rest % divisor == 0:
                rest //= divisor
        divisor += 1
    return result - result // rest if rest > 1 else result


def is_whole(node: Expression) -> bool:
    """True if an expression's structure proves it an integer, without evaluation. False proves nothing."""
    match node:
        case Number(value):
            return value.denominator == 1
        case Negation(of):
            return is_whole(of)
        case Sum(parts) | Product(parts):
            return all(map(is_whole, parts))
        case Power(base, exponent):
            return is_whole(base) and is_natural(exponent)
        case FunctionCall("factorial", (of,)):
            return is_natural(of)
        case _:
            return False


def is_natural(node: Expression) -> bool:
    """True if an expression's structure proves it one of 0, 1, 2, ..., without evaluation. False proves nothing."""
    match node:
        case Number(value):
            return value.denominator == 1 and value >= 0
        case Sum(parts) | Product(parts):
            return all(map(is_natural, parts))
        case Power(base, exponent):
            return at_least(base, 1) and is_natural(exponent)
        case FunctionCall("factorial", (of,)):
            return is_natural(of)
        case _:
            return False


def at_least(node: Expression, bound: int) -> bool:
    """True if an expression's structure proves it a natural number that is at least `bound`. False proves nothing."""
    if not is_natural(node):
        return False
    match node:
        case Number(value):
            return value >= bound
        case Sum(parts):
            return any(at_least(part, bound) for part in parts) or (
                bound <= 1 and any(at_least(part, 1) for part in parts)
            )
        case Product(parts):
            return all(at_least(part, 1) for part in parts) and (
                bound <= 1 or any(at_least(part, bound) for part in parts)
            )
        case Power(base, exponent):
            if bound <= 1:
                return at_least(base, 1)
            return at_least(base, 2) and at_least(exponent, bound.bit_length())
        case FunctionCall("factorial", (of,)):
            return bound <= 1 or at_least(of, max(4, bound.bit_length()))
        case _:
            return False


def certainly_defined(node: Expression) -> bool:
    """True if an expression's structure proves that it has a value, which may be too large to compute. False proves
    nothing."""
    match node:
        case Number():
            return True
        case Negation(of):
            return certainly_defined(of)
        case Sum(parts) | Product(parts):
            return all(map(certainly_defined, parts))
        case Quotient(above, below):
            return certainly_defined(above) and at_least(below, 1)
        case Power(base, exponent):
            if at_least(base, 1):
                return certainly_defined(exponent.of if isinstance(exponent, Negation) else exponent)
            return certainly_defined(base) and at_least(exponent, 1)
        case FunctionCall("factorial", (of,)):
            return is_natural(of)
        case FunctionCall("binomial", parts):
            return all(map(is_natural, parts))
        case _:
            return False


def differing_residues(first: Expression, second: Expression) -> dict[str, str]:
    """Returns a prime modulo which two numbers differ, with both residues; empty if no tried prime separates them."""
    for prime in PRIMES:
        try:
            left, right = residue(first, prime), residue(second, prime)
        except NoResidueError:
            continue
        if left != right:
            return {"modulo": str(prime), "submitted": str(left), "expected": str(right)}
    return {}
