"""Compares equations and inequalities: equal if they have the same solutions.

Two equations are proved equal if the differences of their sides agree up to a non-zero constant factor; two
inequalities, if that factor has the sign that their directions require. Equations in several unknowns are compared
where the expected one has a value; an answer that may be undefined at some of its solutions is not proved equal. A
difference is proved by a point that satisfies only one of them. Relations in one symbol are compared as the sets of its
values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from verifiers.answers.algebra.calculus import UnresolvedError
from verifiers.answers.algebra.denominators import keeps_solutions
from verifiers.answers.algebra.equality import EqualityFinding, Truth, different, equal, undecided
from verifiers.answers.algebra.real_sets import UndecidedError
from verifiers.answers.algebra.rewriting import opaque_as_symbols
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.algebra.solving import zeros
from verifiers.answers.compare_sets import compare_sets
from verifiers.answers.format import written
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import HOLDS, ZERO, minus, substitute, symbols
from verifiers.answers.grammar.rational import folded
from verifiers.answers.grammar.traverse import comparisons, free_symbols
from verifiers.answers.grammar.values import RelationValue, Scalar
from verifiers.answers.matching import PartComparer, matched

FLIPPED: dict[n.Relation, n.Relation] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
TRIES = 4
LOST = undecided("the answer may have no value at some of the solutions: a denominator may be zero there")


def compare_relations(answer: RelationValue, expected: RelationValue, parts: PartComparer) -> EqualityFinding:
    """Compares two relations, each one or several equations or inequalities. Raises GrammarError if a part has no
    value."""
    first, second = free_symbols(answer), free_symbols(expected)
    if not first & second and (first or second):
        return different(
            f"about {', '.join(sorted(first)) or 'no unknown'}, where {', '.join(sorted(second))} was expected"
        )
    if len(first) == 1:
        found = compare_sets(answer, expected, parts)
        if found.truth is not Truth.OPEN:
            return found
    if _nests(answer) or _nests(expected):
        return _alternatives(answer, expected, parts)
    one, other = pieces(answer), pieces(expected)
    if len(one) == 1 and len(other) == 1:
        return _close_pieces(one[0], other[0], parts)
    if answer.joined != expected.joined and len(one) > 1 and len(other) > 1:
        return undecided("one joins its parts by `and`, the other by `or`")
    values = _assignments(answer, expected, parts) if expected.joined == "and" else None
    if values is not None:
        return values
    found = matched(one, other, lambda a, b: _close_pieces(a, b, parts), repeats=True)
    if found.truth is Truth.EQUAL:
        return found
    return undecided("different equations; equality of their solutions is undecided")


def _nests(relation: RelationValue) -> bool:
    """True if a relation nests `and` within `or` or vice versa: `a < b < c or d < e`."""
    return any(
        ((part.joined if isinstance(part, RelationValue) else "and") != relation.joined and len(pieces(part)) > 1)
        or (isinstance(part, RelationValue) and _nests(part))
        for part in relation.parts
    )


def _alternatives(answer: RelationValue, expected: RelationValue, parts: PartComparer) -> EqualityFinding:
    """Matches the parts of two conditions that nest `and` and `or`. Equal if all parts match, else undecided: their
    solutions are not compared."""
    if answer.joined == expected.joined:
        one, other = (
            [part if isinstance(part, RelationValue) else RelationValue("and", (part,)) for part in of.parts]
            for of in (answer, expected)
        )
        found = matched(one, other, lambda a, b: compare_relations(a, b, parts), repeats=True)
        if found.truth is Truth.EQUAL:
            return found
    return undecided("different conditions; equality of their solutions is undecided")


def pieces(of: RelationValue | n.ComparisonNode) -> list[n.ComparisonNode]:
    """Splits a relation into comparisons of two sides each: `a < b < c` gives two."""
    return [
        n.ComparisonNode((left, right), (sign,))
        for part in (comparisons(of) if isinstance(of, RelationValue) else (of,))
        for left, sign, right in zip(part.operands, part.relations, part.operands[1:], strict=False)
    ]


def _assignments(answer: RelationValue, expected: RelationValue, parts: PartComparer) -> EqualityFinding | None:
    """Compares relations such as `x = 1 and y = 2` symbol by symbol; None if either is anything else."""
    first, second = solved(answer), solved(expected)
    if first is None or second is None:
        return None
    if first.keys() != second.keys():
        return different("different unknowns")
    opened = False
    for name, value in second.items():
        found = parts.compare(Scalar(first[name]), Scalar(value))
        if found.truth is Truth.DIFFERENT:
            return different(f"a different value of {name}", found.witness)
        opened = opened or found.truth is Truth.OPEN
    return undecided("one value is undecided") if opened else equal("the same values")


def solved(relation: RelationValue) -> dict[str, n.Expression] | None:
    """Returns the value of each unknown if every part is `symbol = constant` and no unknown repeats; else None."""
    found: dict[str, n.Expression] = {}
    for part in comparisons(relation):
        if part.relations != ("==",):
            return None
        left, right = part.operands
        if not isinstance(left, n.Symbol):
            left, right = right, left
        if not isinstance(left, n.Symbol) or symbols(right) or left.name in found:
            return None
        found[left.name] = right
    return found if relation.joined == "and" or len(found) == 1 else None


def _close_pieces(answer: n.ComparisonNode, expected: n.ComparisonNode, parts: PartComparer) -> EqualityFinding:
    """Compares two equations or inequalities of two sides each, their coefficients within the tolerance."""
    found = compare_pieces(answer, expected, parts.scalars)
    if parts.tolerance is None or found.truth is Truth.EQUAL:
        return found
    sign, wanted = answer.relations[0], expected.relations[0]
    if wanted not in (sign, FLIPPED[sign]):
        return found
    factor = 0 if sign in ("==", "!=") else 1 if sign == wanted else -1
    sides = _difference(answer), _difference(expected)
    close = parts.tolerance.judge_terms(*sides, parts.scalars, equation=True, sign=factor)
    kept = close.truth is not Truth.EQUAL or keeps_solutions(*sides, parts.scalars, equation=sign == "==")
    return close if kept else LOST


def compare_pieces(answer: n.ComparisonNode, expected: n.ComparisonNode, scalars: Scalars) -> EqualityFinding:
    """Compares two equations or inequalities of two sides each. A value of an unknown function, the `f(2)` of `f(2) =
    3`, is treated as an unknown."""
    sign, wanted = answer.relations[0], expected.relations[0]
    try:
        pair = opaque_as_symbols(scalars.read(_difference(answer)), scalars.read(_difference(expected)))
    except UnresolvedError as error:
        return undecided(str(error))
    if not pair.alike:
        return undecided("they use different values of an unknown function")
    first, second, certain = pair.first, pair.second, pair.certain
    if wanted in (sign, FLIPPED[sign]):
        factor = _factor(first, second, scalars)
        if factor is not None:
            value = scalars.sign(factor) if sign not in ("==", "!=") else 1
            fits = value is not None and (wanted == sign if value > 0 else wanted == FLIPPED[sign])
            if fits:
                if not keeps_solutions(first, second, scalars, equation=sign == "=="):
                    return LOST
                return equal("the same up to a constant factor", {"factor": written(factor)})
            if value:
                return different("the opposite direction")
    if sign == wanted == "==":
        witness = _on_one_only(first, second, scalars)
        if witness and certain:
            return different("a point satisfies one equation only", witness)
        if _same_zeros(first, second, scalars):
            if not keeps_solutions(first, second, scalars, equation=True):
                return LOST
            return scalars.if_safe(equal("the same equation wherever the expected one has a value"), pair)
        return undecided("equality of their solutions is undecided")
    sides = (n.ComparisonNode((first, ZERO), (sign,)), n.ComparisonNode((second, ZERO), (wanted,)))
    witness = _true_for_one_only(*sides, scalars)
    if witness and certain:
        return different("a point satisfies one of the two only", witness)
    return undecided("equality of their solutions is undecided")


def _difference(of: n.ComparisonNode) -> n.Expression:
    left, right = of.operands
    return left if right == ZERO else minus(left, right)


def _factor(first: n.Expression, second: n.Expression, scalars: Scalars) -> n.Expression | None:
    """Returns a non-zero constant c for which first = c * second is proved; None if none is found."""
    for point in scalars.points(symbols(first, second)):
        try:
            left, right = substitute(first, point), substitute(second, point)
            if scalars.compare(right, ZERO).truth is not Truth.DIFFERENT:
                continue
            if scalars.compare(left, ZERO).truth is not Truth.DIFFERENT:
                return None
        except GrammarError:
            continue
        factor = folded(n.Quotient(left, right))
        found = scalars.compare(first, n.Product((factor, second)))
        return factor if found.truth is Truth.EQUAL else None
    return None


def _on_one_only(first: n.Expression, second: n.Expression, scalars: Scalars) -> dict[str, str]:
    """Returns a point on one of two curves that is provably not on the other; empty if none is found."""
    for one, other in ((first, second), (second, first)):
        for point in _solutions(one, symbols(first, second), scalars):
            try:
                if scalars.compare(substitute(other, point), ZERO).truth is Truth.DIFFERENT:
                    return {name: written(value) for name, value in point.items()}
            except GrammarError:
                continue
    return {}


def _solutions(of: n.Expression, names: frozenset[str], scalars: Scalars) -> Iterator[dict[str, n.Expression]]:
    """Yields real points where an expression is provably zero. Chooses values for all symbols but one, and solves for
    that."""
    for unknown in sorted(symbols(of)):
        for chosen in itertools.islice(scalars.points(names - {unknown}), TRIES):
            try:
                for root, truth in zeros(scalars.read(substitute(of, chosen)), unknown, scalars, real=True):
                    if truth is Truth.DIFFERENT:
                        yield {**chosen, unknown: root}
            except (GrammarError, UndecidedError):
                continue


def _same_zeros(first: n.Expression, second: n.Expression, scalars: Scalars) -> bool:
    """True if the numerators of two expressions have the same squarefree part: `F = m a`, `a = F/m`. Then both are zero
    at the same points, wherever both have a value. False if that is not proven."""
    import sympy

    from verifiers.answers.algebra.symbolic import build, gives

    def are_same() -> bool:
        ratios = [sympy.fraction(sympy.together(build(scalars.read(node), "complex"))) for node in (first, second)]
        unknowns = sorted(set().union(*(part.free_symbols for ratio in ratios for part in ratio)), key=str)
        if not all(part.is_polynomial(*unknowns) for ratio in ratios for part in ratio) or len(unknowns) > 6:
            return False
        tops = [sympy.Poly(above, *unknowns) for above, _ in ratios]
        if tops[0].is_zero != tops[1].is_zero or any(top.total_degree() > 6 for top in tops):
            return False
        parts = [sympy.sqf_part(top) for top in tops]
        return bool(sympy.cancel(parts[0].as_expr() / parts[1].as_expr()).is_number)

    return gives(True, are_same)


def _true_for_one_only(answer: n.ComparisonNode, expected: n.ComparisonNode, scalars: Scalars) -> dict[str, str]:
    names = symbols(*answer.operands, *expected.operands)
    for point in scalars.points(names):
        try:
            truths = [holds_at(part, point, scalars) for part in (answer, expected)]
        except GrammarError:
            continue
        if None not in truths and truths[0] != truths[1]:
            return {name: written(value) for name, value in point.items()}
    return {}


def holds_at(of: n.ComparisonNode, point: dict[str, n.Expression], scalars: Scalars) -> bool | None:
    left, right = (substitute(side, point) for side in of.operands)
    relation = of.relations[0]
    if relation in ("==", "!="):
        truth = scalars.compare(left, right).truth
        return None if truth is Truth.OPEN else (truth is Truth.EQUAL) == (relation == "==")
    order = scalars.order(left, right)
    return None if order is None else HOLDS[relation](order, 0)
