"""Proves equality with SymPy, whose objects are built from our own trees: no text ever reaches SymPy.

Imported only inside the worker. Symbols are created here, from the spec's domain alone: complex ones have no
assumptions. A proof is a chain of rewritings that ends in exactly zero; numeric closeness is never a proof. Unproved
equality stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain
from typing import Any

import sympy

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError, UndefinedError
from verifiers.answers.grammar.rational import rational

MAX_SIGNS = 4
MAX_EXPANDED_POWER = 200
"""Maximum integer exponent of a sum that is expanded: (x+y+z)^200 would have 20,000 terms."""


def _root(value: Any, degree: Any) -> Any:
    if not degree.is_Integer or degree < 1:
        raise GrammarError("a root whose degree is not 1, 2, 3, ...")
    if degree % 2 == 0 or value.is_nonnegative:
        return value ** (1 / degree)
    if value.is_negative:
        return -((-value) ** (1 / degree))
    # Real for real arguments, unlike the principal power.
    if value.is_real:
        return sympy.sign(value) * sympy.Abs(value) ** (1 / degree)
    return sympy.Function("root")(value, degree)


SAME_NAME = (
    "sqrt", "exp", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "asin", "acos", "atan", "floor",
    "factorial", "binomial", "zeta",
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(sympy, name) for name in SAME_NAME},
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "conj": sympy.conjugate,
    "arg": sympy.arg,
    "min": sympy.Min,
    "max": sympy.Max,
    "ceil": sympy.ceiling,
    "ln": sympy.log,
    "log": lambda value, base: sympy.log(value) / sympy.log(base),
    "cbrt": lambda value: _root(value, sympy.Integer(3)),
    "root": _root,
}
FUNCTIONS["acos"] = lambda value: sympy.pi / 2 - sympy.asin(value)
NAMES = {function.__name__: name for name, function in FUNCTIONS.items() if isinstance(function, sympy.FunctionClass)}
NAMES["acos"] = "acos"
CONSTANTS = {n.Constant("pi"): sympy.pi, n.Constant("e"): sympy.E, n.Constant("i"): sympy.I}


def build(node: n.Expression, domain: str = "complex") -> Any:
    """Converts an expression to a SymPy object. Raises UndefinedError if it has no value, GrammarError if SymPy cannot
    express it."""
    found = _build(node, domain)
    if found.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise UndefinedError("a division by zero")
    return found


def _build(node: n.Expression, domain: str) -> Any:
    def inside(part: n.Expression) -> Any:
        return build(part, domain)

    exact = rational(node)
    if exact is not None:
        return sympy.Rational(exact)
    match node:
        case n.Symbol(name):
            return sympy.Symbol(name, **({} if domain == "complex" else {domain: True}))
        case n.Constant() if node in CONSTANTS:
            return CONSTANTS[node]
        case n.Negation(of):
            return -inside(of)
        case n.Sum(parts):
            return sympy.Add(*map(inside, parts))
        case n.Product(parts):
            return sympy.Mul(*map(inside, parts))
        case n.Quotient(above, below):
            return sympy.Mul(inside(above), sympy.Pow(inside(below), -1))
        case n.Power(base, exponent):
            return sympy.Pow(inside(base), inside(exponent))
        case n.FunctionCall(name, arguments) if name in FUNCTIONS:
            return FUNCTIONS[name](*map(inside, arguments))
        case n.FunctionCall(name):
            raise GrammarError(f"{name} is only computed for rational numbers")
        case n.Constant(name):
            raise UndefinedError(f"{name} is not a number")
        case n.Number():
            raise AssertionError("numbers are rational")


def from_sympy(found: Any) -> n.Expression:
    """Converts a SymPy object to an expression. Raises GrammarError for anything that expressions cannot represent."""
    if found.is_Rational:
        return n.number(Fraction(int(found.p), int(found.q)))
    if found.is_Symbol:
        return n.Symbol(found.name)
    for constant, value in CONSTANTS.items():
        if found == value:
            return constant
    parts = tuple(map(from_sympy, found.args))
    if found.is_Add:
        return n.Sum(parts)
    if found.is_Mul:
        return n.Product(parts)
    if found.is_Pow:
        if found.exp == -1:
            return n.Quotient(n.ONE, parts[0])
        return n.FunctionCall("sqrt", parts[:1]) if found.exp == sympy.Rational(1, 2) else n.Power(*parts)
    name = type(found).__name__
    if name == "exp":
        return n.Power(n.Constant("e"), parts[0])
    if name in NAMES and parts:
        return n.FunctionCall(NAMES[name], parts)
    raise GrammarError(f"its value needs {name}")


def gives(value: Any, compute: Callable[[], Any]) -> bool:
    """True if a SymPy computation returns `value`. False for another result or an error, which proves nothing."""
    try:
        return bool(compute() == value)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - see above
        return False


def proves_equal(first: n.Expression, second: n.Expression, domain: str = "complex") -> str | None:
    """Tries to prove two expressions equal with SymPy. Returns the rewriting that turns their difference into zero, or
    None if no proof is found. Raises GrammarError if one of the two has no value."""
    try:
        difference = build(first, domain) - build(second, domain)
    except (GrammarError, MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - SymPy raises nearly anything; what it cannot even build, it has not proved
        return None
    if difference == 0:
        return "construction"
    return next((name for name, rewrite in _rewritings(difference) if gives(0, rewrite)), None)


def _rewritings(difference: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields names and calls of SymPy simplifications that may turn a difference into zero, cheapest first."""
    large = [
        power for power in difference.atoms(sympy.Pow) if power.exp.is_Integer and abs(power.exp) > MAX_EXPANDED_POWER
    ]
    if not any(power.base.is_Add for power in large):
        yield "expand", lambda: sympy.expand(difference)
        yield "together", lambda: sympy.cancel(sympy.together(difference))
    yield "radsimp", lambda: sympy.expand(sympy.radsimp(sympy.sqrtdenest(difference)))
    if not difference.free_symbols and difference.is_algebraic:
        yield "minimal polynomial", lambda: _minimal(difference)
    yield "trigsimp", lambda: sympy.expand(sympy.trigsimp(sympy.expand_trig(difference)))
    yield "exponentials", lambda: sympy.expand(sympy.expand(difference.rewrite(sympy.exp), complex=False))
    yield "logarithms", lambda: sympy.expand(sympy.expand_log(difference))
    if difference.has(sympy.conjugate):
        yield "conjugates", lambda: sympy.expand(difference.rewrite(sympy.conjugate))
    yield "simplify", lambda: sympy.simplify(difference)


def proves_equal_where_real(first: n.Expression, second: n.Expression, domain: str) -> str | None:
    """Tries to prove two expressions equal where the arguments of logarithms and fractional powers are positive.
    Returns the name of the SymPy simplification that proves it, or None. Both sides must require the same signs of the
    same factors, or one is defined where the other is not: ln(x^2) is not 2 ln(x). A factor of known sign is then
    written with a positive symbol, any other by its absolute value."""
    try:
        sides = [build(node, domain) for node in (first, second)]
        for _ in range(MAX_SIGNS):
            signs, parts = _signs(sides[0]), map(sympy.preorder_traversal, sides)
            if signs != _signs(sides[1]) or (-1, frozenset()) in signs or not any(map(_needs_sign, chain(*parts))):
                return None
            known = {next(iter(factors)): sign for sign, factors in signs if len(factors) == 1}
            solved = next((found for of in sorted(known, key=str) if (found := _solved(of, known[of]))), None)
            sides = [side.subs(*solved) if solved else _in_sizes(side, known) for side in sides]
            name = next((name for name, rewrite in _rewritings(sides[0] - sides[1]) if gives(0, rewrite)), None)
            if name or not solved:
                return name
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - as above
        return None
    return None


def _under(of: Any) -> tuple[Any, list[tuple[Any, int]]]:
    """Factors the argument of a logarithm or power. Returns its constant factor, and the other factors with their
    exponents."""
    above, below = (sympy.factor_list(part) for part in sympy.fraction(sympy.together(of)))
    return above[0] / below[0], [*above[1], *((factor, -power) for factor, power in below[1])]


def _needs_sign(part: Any) -> bool:
    broken = part.is_Pow and part.exp.is_Rational and not part.exp.is_Integer
    return bool((broken or isinstance(part, sympy.log)) and part.args[0].free_symbols)


def _signs(of: Any) -> set[tuple[int, frozenset[Any]]]:
    """Returns the signs that the real logarithms and fractional powers of an expression require. Each is 1 or -1, with
    the factors whose product must have it; factors of even power are left out."""
    found = set()
    for part in filter(_needs_sign, sympy.preorder_traversal(of)):
        number, factors = _under(part.args[0])
        odd = frozenset(factor for factor, power in factors if power % 2 and not factor.is_nonnegative)
        if odd or number < 0:
            found.add((1 if number > 0 else -1, odd))
    return found


def _solved(factor: Any, sign: int) -> tuple[Any, Any] | None:
    """Solves `factor = sign * t`, with a new positive t, for a symbol that occurs linearly. Returns the symbol and its
    value, or None if no symbol does."""
    for symbol in sorted(factor.free_symbols, key=str):
        slope = factor.diff(symbol)
        if slope.is_Rational:
            rest = sympy.expand(factor - slope * symbol)
            return symbol, (sign * sympy.Dummy(f"positive {factor}", positive=True) - rest) / slope
    return None


def _in_sizes(of: Any, known: dict[Any, int]) -> Any:
    """Rewrites logarithms and fractional powers of factors using a new positive symbol for each factor's absolute
    value. `known` maps factors to their sign, 1 or -1, so that odd whole powers of these can be split off."""

    def size(factor: Any) -> Any:
        return factor if factor.is_nonnegative else sympy.Symbol(f"size of {factor}", positive=True)

    def written(part: Any) -> Any:
        number, factors = _under(part.args[0])
        if part.is_Pow:
            total = sympy.Abs(number) ** part.exp
            for factor, power in factors:
                whole = sympy.floor(power * part.exp) if factor in known else 2 * sympy.floor(power * part.exp / 2)
                total *= (known.get(factor, 1) * factor) ** whole * size(factor) ** (power * part.exp - whole)
            return total
        return sympy.log(sympy.Abs(number)) + sum(power * sympy.log(size(factor)) for factor, power in factors)

    return of.replace(_needs_sign, written).replace(sympy.Abs, size)


def _minimal(difference: Any) -> Any:
    """Returns 0 if the minimal polynomial of an algebraic number is x, which proves the number zero; else 1."""
    unknown = sympy.Dummy()
    return 0 if sympy.minimal_polynomial(difference, unknown) == unknown else 1
