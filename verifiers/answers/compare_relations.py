"""Equations and inequalities: equal when they have the same solutions.

Two equations are proved equal when their sides' differences agree up to a constant factor that is not zero; two
inequalities, when that factor has the sign that their directions ask for. Equations in several unknowns are compared
where the expected one has a value; an answer that may have none at some of its solutions is not proved equal. A
difference is proved by a point that satisfies one and not the other. What is about one symbol only is compared as the
set of its values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

from verifiers.answers.calculus import UnresolvedError
from verifiers.answers.compare_sets import compare_sets, flat, matched
from verifiers.answers.denominators import keeps_solutions
from verifiers.answers.equality import Finding, Truth
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import (
    Comparison,
    Expression,
    Negation,
    Number,
    Product,
    Quotient,
    Sum,
    Symbol,
    substitute,
    symbols,
)
from verifiers.answers.grammar.rational import rational
from verifiers.answers.real_sets import UndecidedError
from verifiers.answers.rewriting import opaque_as_symbols
from verifiers.answers.scalars import Scalars
from verifiers.answers.solving import fraction_of, roots
from verifiers.answers.values import Relation, Value
from verifiers.answers.writing import written

ZERO = Number(Fraction(0))
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
TRIES = 4
LOST = Finding(Truth.OPEN, "the answer may have no value at some of the solutions: a denominator may be zero there")

Same = Callable[[Value, Value], Finding]


def names_of(relation: Relation) -> frozenset[str]:
    return frozenset[str]().union(*(symbols(side) for part in flat(relation) for side in part.operands))


def compare_relations(answer: Relation, expected: Relation, same: Same, scalars: Scalars) -> Finding:
    """Raises GrammarError where a part has no value."""
    first, second = names_of(answer), names_of(expected)
    if not first & second and (first or second):
        return Finding(
            Truth.DIFFERENT,
            f"about {', '.join(sorted(first)) or 'no unknown'}, where {', '.join(sorted(second))} was expected",
        )
    if len(first) == 1:
        found = compare_sets(answer, expected, same, scalars)
        if found.truth is not Truth.OPEN:
            return found
    if _nests(answer) or _nests(expected):
        return _alternatives(answer, expected, same, scalars)
    one, other = pieces(answer), pieces(expected)
    if len(one) == 1 and len(other) == 1:
        return compare_pieces(one[0], other[0], scalars)
    if answer.joined != expected.joined and len(one) > 1 and len(other) > 1:
        return Finding(Truth.OPEN, "one joins its parts by `and`, the other by `or`")
    values = _assignments(answer, expected, scalars) if expected.joined == "and" else None
    if values is not None:
        return values
    wrapped = [tuple(Relation("and", (part,)) for part in parts) for parts in (one, other)]
    found = matched(
        wrapped[0],
        wrapped[1],
        lambda a, b: (
            compare_pieces(pieces(a)[0], pieces(b)[0], scalars)
            if isinstance(a, Relation) and isinstance(b, Relation)
            else Finding(Truth.OPEN, "")
        ),
        repeats=True,
    )
    if found.truth is Truth.EQUAL:
        return found
    return Finding(Truth.OPEN, "not the same equations, and whether they have the same solutions is open")


def _nests(relation: Relation) -> bool:
    """Whether `and` stands within `or`, or the other way round: `a < b < c or d < e`."""
    return any(
        ((part.joined if isinstance(part, Relation) else "and") != relation.joined and len(pieces(part)) > 1)
        or (isinstance(part, Relation) and _nests(part))
        for part in relation.parts
    )


def _alternatives(answer: Relation, expected: Relation, same: Same, scalars: Scalars) -> Finding:
    """Part by part, where the parts are more than single comparisons."""
    if answer.joined == expected.joined:
        one, other = (
            tuple(part if isinstance(part, Relation) else Relation("and", (part,)) for part in of.parts)
            for of in (answer, expected)
        )
        found = matched(
            one,
            other,
            lambda a, b: (
                compare_relations(a, b, same, scalars)
                if isinstance(a, Relation) and isinstance(b, Relation)
                else Finding(Truth.OPEN, "")
            ),
            repeats=True,
        )
        if found.truth is Truth.EQUAL:
            return found
    return Finding(Truth.OPEN, "not the same conditions, and whether they have the same solutions is open")


def pieces(of: Relation | Comparison) -> list[Comparison]:
    """Comparisons of two sides each, when all are joined the same way."""
    found: list[Comparison] = []
    for part in flat(of) if isinstance(of, Relation) else [of]:
        for left, sign, right in zip(part.operands, part.relations, part.operands[1:], strict=False):
            found.append(Comparison((left, right), (sign,)))
    return found


def _assignments(answer: Relation, expected: Relation, scalars: Scalars) -> Finding | None:
    """`x = 1 and y = 2` on both sides: symbol by symbol. None where it is not that."""
    first, second = solved(answer), solved(expected)
    if first is None or second is None:
        return None
    if first.keys() != second.keys():
        return Finding(Truth.DIFFERENT, "other unknowns")
    opened = False
    for name, value in second.items():
        found = scalars.compare(first[name], value)
        if found.truth is Truth.DIFFERENT:
            return Finding(Truth.DIFFERENT, f"another value of {name}", found.witness)
        opened = opened or found.truth is Truth.OPEN
    return Finding(Truth.OPEN, "one value is open") if opened else Finding(Truth.EQUAL, "the same values")


def solved(relation: Relation) -> dict[str, Expression] | None:
    """The value of each unknown, where every part says `symbol = constant` and no unknown comes twice."""
    found: dict[str, Expression] = {}
    for part in flat(relation):
        if part.relations != ("==",):
            return None
        left, right = part.operands
        if not isinstance(left, Symbol):
            left, right = right, left
        if not isinstance(left, Symbol) or symbols(right) or left.name in found:
            return None
        found[left.name] = right
    return found if relation.joined == "and" or len(found) == 1 else None


def compare_pieces(answer: Comparison, expected: Comparison, scalars: Scalars) -> Finding:
    """Two comparisons of two sides. A value of a function that nobody knows is an unknown: `f(2) = 3`."""
    sign, wanted = answer.relations[0], expected.relations[0]
    try:
        first, second = opaque_as_symbols(scalars.read(_difference(answer)), scalars.read(_difference(expected)))
    except UnresolvedError as error:
        return Finding(Truth.OPEN, str(error))
    strict = {"<": 0, ">": 0, "<=": 1, ">=": 1, "==": 2, "!=": 3}
    if strict[sign] == strict[wanted]:
        factor = _factor(first, second, scalars)
        if factor is not None:
            value = scalars.sign(factor) if sign not in ("==", "!=") else 1
            fits = value is not None and (wanted == sign if value > 0 else wanted == FLIPPED[sign])
            if fits:
                if not keeps_solutions(first, second, scalars, equation=sign == "=="):
                    return LOST
                return Finding(Truth.EQUAL, "the same up to a constant factor", {"factor": written(factor)})
            if value:
                return Finding(Truth.DIFFERENT, "the opposite direction")
    if sign == wanted == "==":
        witness = _on_one_only(first, second, scalars)
        if witness:
            return Finding(Truth.DIFFERENT, "a point satisfies one equation only", witness)
        if _same_zeros(first, second, scalars):
            if not keeps_solutions(first, second, scalars, equation=True):
                return LOST
            return Finding(Truth.EQUAL, "the same equation wherever the expected one has a value")
        return Finding(Truth.OPEN, "whether the two equations have the same solutions is open")
    sides = (Comparison((first, ZERO), (sign,)), Comparison((second, ZERO), (wanted,)))
    witness = _true_for_one_only(*sides, scalars)
    if witness:
        return Finding(Truth.DIFFERENT, "a point satisfies one of the two only", witness)
    return Finding(Truth.OPEN, "whether the two have the same solutions is open")


def _difference(of: Comparison) -> Expression:
    left, right = of.operands
    if right == ZERO:
        return left
    return Sum((left, Negation(right)))


def _factor(first: Expression, second: Expression, scalars: Scalars) -> Expression | None:
    """A constant c, not zero, with first = c * second everywhere; None where none is found."""
    names = symbols(first) | symbols(second)
    for point in scalars.points(names):
        try:
            left, right = _at(first, point), _at(second, point)
            if scalars.compare(right, ZERO).truth is not Truth.DIFFERENT:
                continue
            if scalars.compare(left, ZERO).truth is not Truth.DIFFERENT:
                return None
        except GrammarError:
            continue
        ratio: Expression = Quotient(left, right)
        value = rational(ratio)
        factor = ratio if value is None else Number(value)
        equal = scalars.compare(first, Product((factor, second)))
        return factor if equal.truth is Truth.EQUAL else None
    return None


def _at(node: Expression, point: dict[str, Expression]) -> Expression:
    for name, value in point.items():
        node = substitute(node, name, value)
    return node


def _on_one_only(first: Expression, second: Expression, scalars: Scalars) -> dict[str, str]:
    """A point on one of two curves and certainly not on the other; empty where none was found."""
    for one, other in ((first, second), (second, first)):
        for point in _solutions(one, symbols(first) | symbols(second), scalars):
            try:
                if scalars.compare(_at(other, point), ZERO).truth is Truth.DIFFERENT:
                    return {name: written(value) for name, value in point.items()}
            except GrammarError:
                continue
    return {}


def _solutions(of: Expression, names: frozenset[str], scalars: Scalars) -> Iterator[dict[str, Expression]]:
    """Real points at which it is certainly zero: all symbols but one are chosen, the last is solved for."""
    for unknown in sorted(symbols(of)):
        for chosen in itertools.islice(scalars.points(names - {unknown}), TRIES):
            try:
                above, below = fraction_of(scalars.read(_at(of, chosen)), unknown)
                found = roots(above, scalars, real=True)
                for root in found:
                    under = _at(_polynomial(below, unknown), {unknown: root})
                    if scalars.compare(under, ZERO).truth is Truth.DIFFERENT:
                        yield {**chosen, unknown: root}
            except (GrammarError, UndecidedError):
                continue


def _polynomial(of: tuple[Expression, ...], name: str) -> Expression:
    total: Expression = of[-1]
    for coefficient in reversed(of[:-1]):
        total = Sum((Product((total, Symbol(name))), coefficient))
    return total


def _same_zeros(first: Expression, second: Expression, scalars: Scalars) -> bool:
    """Whether the numerators have the same squarefree part: then both hold at the same points where both have a
    value, `F = m a` and `a = F/m`."""
    try:
        import sympy

        from verifiers.answers.symbolic import build

        ratios = [sympy.fraction(sympy.together(build(scalars.read(node), "complex"))) for node in (first, second)]
        unknowns = sorted(set().union(*(part.free_symbols for ratio in ratios for part in ratio)), key=str)
        if not all(part.is_polynomial(*unknowns) for ratio in ratios for part in ratio) or len(unknowns) > 4:
            return False
        tops = [sympy.Poly(above, *unknowns) for above, _ in ratios]
        if tops[0].is_zero != tops[1].is_zero or any(top.total_degree() > 6 for top in tops):
            return False
        parts = [sympy.sqf_part(top) for top in tops]
        if not sympy.cancel(parts[0].as_expr() / parts[1].as_expr()).is_number:
            return False
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - SymPy raises nearly anything; what fails has proved nothing
        return False
    return True


def _true_for_one_only(answer: Comparison, expected: Comparison, scalars: Scalars) -> dict[str, str]:
    names = frozenset[str]().union(*(symbols(side) for side in (*answer.operands, *expected.operands)))
    for point in scalars.points(names):
        try:
            truths = [holds_at(part, point, scalars) for part in (answer, expected)]
        except GrammarError:
            continue
        if None not in truths and truths[0] != truths[1]:
            return {name: written(value) for name, value in point.items()}
    return {}


def holds_at(of: Comparison, point: dict[str, Expression], scalars: Scalars) -> bool | None:
    left, right = (_at(side, point) for side in of.operands)
    relation = of.relations[0]
    if relation in ("==", "!="):
        truth = scalars.compare(left, right).truth
        return None if truth is Truth.OPEN else (truth is Truth.EQUAL) == (relation == "==")
    order = scalars.order(left, right)
    if order is None:
        return None
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[relation]
