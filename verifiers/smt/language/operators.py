"""Operators of the language with their argument and result sorts. All others are refused.

SMT-LIB 2.6: Core, Ints, Reals, FixedSizeBitVectors with the usual extensions, ArraysEx. An integer where a real is
needed is converted, as every solver does. Chains (`(< a b c)`, `(=> a b c)`) are expanded; `=>` becomes `or`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise

from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.terms import BOOL, INT, REAL, Sort, Term, Terms, bits

Rule = Callable[[Terms, str, tuple[int, ...], list[Term]], Term]
MAX_DISTINCT = 256


def apply_operator(terms: Terms, op: str, index: tuple[int, ...], args: Sequence[Term]) -> Term:
    """Applies an SMT-LIB operator, with its indices, to terms. Raises ClaimError for an unknown operator or unsuitable
    arguments."""
    rule, indexed = OPERATORS.get(op, (None, 0))
    if rule is None or len(index) != indexed:
        raise ClaimError(f"unknown operator {op!r}" + (f" with {len(index)} indices" if index or indexed else ""))
    return rule(terms, op, index, list(args))


def refused(op: str, args: Sequence[Term]) -> ClaimError:
    return ClaimError(f"{op} does not take ({' '.join(str(each.sort) for each in args[:6])})")


def real(terms: Terms, term: Term) -> Term:
    """Converts a term of sort Int to sort Real; other terms are returned unchanged."""
    if term.sort != INT:
        return term
    if term.op == "value":
        return terms.literal(Fraction(term.payload), REAL)
    return terms.make("to_real", (term,), REAL)


def alike(terms: Terms, op: str, args: list[Term]) -> list[Term]:
    """Converts arguments to one common sort: integers become reals if any argument is real. Raises ClaimError, naming
    the operator `op`, for other mixtures."""
    if any(each.sort == REAL for each in args):
        args = [real(terms, each) for each in args]
    if len({each.sort for each in args}) != 1:
        raise refused(op, args)
    return args


def expect(op: str, args: Sequence[Term], *sorts: Sort) -> None:
    if tuple(each.sort for each in args) != sorts:
        raise refused(op, args)


def numbers(terms: Terms, op: str, args: list[Term], least: int) -> list[Term]:
    if len(args) < least or any(each.sort not in (INT, REAL) for each in args):
        raise refused(op, args)
    return alike(terms, op, args)


def widths(op: str, args: Sequence[Term], count: int) -> Sort:
    """Returns the common sort of `count` bit vectors. Raises ClaimError, naming the operator `op`, if the arguments are
    anything else."""
    if len(args) != count or any(each.sort.name != "BitVec" or each.sort != args[0].sort for each in args):
        raise refused(op, args)
    return args[0].sort


def statements(op: str, args: Sequence[Term], least: int) -> None:
    if len(args) < least or any(each.sort != BOOL for each in args):
        raise refused(op, args)


def folded(terms: Terms, op: str, args: Sequence[Term], sort: Sort) -> Term:
    """Applies a binary operator to several terms, grouping from the left."""
    return reduce(lambda left, right: terms.make(op, (left, right), sort), args)


def _truth(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    expect(op, args)
    return terms.boolean(op == "true")


def _not(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    expect(op, args, BOOL)
    return terms.negation(args[0])


def _and_or(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    statements(op, args, 1)
    return args[0] if len(args) == 1 else terms.make(op, args, BOOL)


def _implies(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    statements(op, args, 2)
    return terms.make("or", [*map(terms.negation, args[:-1]), args[-1]], BOOL)


def _xor(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    statements(op, args, 2)
    return folded(terms, op, args, BOOL)


def _chain(terms: Terms, op: str, args: Sequence[Term]) -> Term:
    links = [terms.make(op, pair, BOOL) for pair in pairwise(args)]
    return links[0] if len(links) == 1 else terms.make("and", links, BOOL)


def _equal(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    if len(args) < 2:
        raise refused(op, args)
    return _chain(terms, op, alike(terms, op, args))


def _distinct(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    if not 2 <= len(args) <= MAX_DISTINCT:
        raise refused(op, args)
    return terms.make(op, alike(terms, op, args), BOOL)


def _ite(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    if len(args) != 3 or args[0].sort != BOOL:
        raise refused(op, args)
    yes, no = alike(terms, op, args[1:])
    return terms.make(op, (args[0], yes, no), yes.sort)


def _sum(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    args = numbers(terms, op, args, 2)
    return terms.make(op, args, args[0].sort)


def _minus(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    args = numbers(terms, op, args, 1)
    if len(args) > 1:
        return terms.make(op, args, args[0].sort)
    if args[0].op == "value":
        return terms.literal(-args[0].payload, args[0].sort)
    return terms.make("negate", args, args[0].sort)


def _quotient(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    def divided(left: Term, right: Term) -> Term:
        if left.op == right.op == "value" and right.payload:
            return terms.literal(left.payload / right.payload, REAL)
        return terms.make(op, (left, right), REAL)

    return reduce(divided, [real(terms, each) for each in numbers(terms, op, args, 2)])


def _integer_division(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    if len(args) < 2 or (op == "mod" and len(args) > 2):
        raise refused(op, args)
    expect(op, args, *[INT] * len(args))
    return folded(terms, op, args, INT)


def _absolute(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    if len(args) != 1 or args[0].sort not in (INT, REAL):
        raise refused(op, args)
    return terms.make(op, args, args[0].sort)


def _compare(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    return _chain(terms, op, numbers(terms, op, args, 2))


def _to_real(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    expect(op, args, INT)
    return real(terms, args[0])


def _of_real(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    args = [real(terms, each) for each in args]
    expect(op, args, REAL)
    return terms.make(op, args, INT if op == "to_int" else BOOL)


def _divisible(terms: Terms, op: str, index: tuple[int, ...], args: list[Term]) -> Term:
    expect(op, args, INT)
    if index[0] < 1:
        raise ClaimError("divisible by zero")
    remainder = terms.make("mod", (args[0], terms.literal(index[0], INT)), INT)
    return terms.make("=", (remainder, terms.literal(0, INT)), BOOL)


def _bitwise(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    """Applies a binary bit-vector operator to two terms, or to more if it is associative."""
    count = len(args) if op in ("bvand", "bvor", "bvxor", "bvadd", "bvmul") else 2
    return folded(terms, op, args, widths(op, args, max(2, count)))


def _bits(count: int, made: Sort | None = None, name: str = "") -> Rule:
    """Returns a function that applies an operator to `count` bit vectors of one sort and makes the resulting term. The
    result has the sort `made` (default: that of the arguments); `name` replaces the operator's name in the term."""

    def rule(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
        sort = widths(op, args, count)
        return terms.make(name or op, args, made or sort)

    return rule


def _concat(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    if len(args) < 2 or any(each.sort.name != "BitVec" for each in args):
        raise refused(op, args)
    return reduce(lambda left, right: terms.make(op, (left, right), bits(left.sort.width + right.sort.width)), args)


def _extract(terms: Terms, op: str, index: tuple[int, ...], args: list[Term]) -> Term:
    high, low = index
    if not 0 <= low <= high < widths(op, args, 1).width:
        raise ClaimError(f"bits {high} to {low} are not in {args[0].sort}")
    return terms.make(op, args, bits(high - low + 1), index)


def _extend(terms: Terms, op: str, index: tuple[int, ...], args: list[Term]) -> Term:
    sort = bits(widths(op, args, 1).width + index[0])
    return terms.make(op, args, sort, index) if index[0] else args[0]


def _rotate(terms: Terms, op: str, index: tuple[int, ...], args: list[Term]) -> Term:
    sort = widths(op, args, 1)
    return terms.make(op, args, sort, (index[0] % sort.width,))


def _repeat(terms: Terms, op: str, index: tuple[int, ...], args: list[Term]) -> Term:
    sort = bits(widths(op, args, 1).width * index[0])
    return terms.make(op, args, sort, index) if index[0] > 1 else args[0]


def _from_integer(terms: Terms, _: str, index: tuple[int, ...], args: list[Term]) -> Term:
    expect("int_to_bv", args, INT)
    return terms.make("int_to_bv", args, bits(index[0]), index)


def _of_array(terms: Terms, op: str, _: tuple[int, ...], args: list[Term]) -> Term:
    if len(args) != (2 if op == "select" else 3) or args[0].sort.name != "Array":
        raise refused(op, args)
    known, *given = args
    sorts = known.sort.parameters
    made = sorts[1] if op == "select" else known.sort
    return terms.make(op, [known, *(coerced(terms, *pair) for pair in zip(given, sorts, strict=False))], made)


def coerced(terms: Terms, term: Term, sort: Sort) -> Term:
    """Returns a term with the sort `sort`, converting an integer to a real if needed. Raises ClaimError for any other
    mismatch."""
    made = real(terms, term) if sort == REAL else term
    if made.sort != sort:
        raise ClaimError(f"a term of sort {made.sort} where {sort} is needed")
    return made


OPERATORS: dict[str, tuple[Rule, int]] = {
    name: (rule, indices)
    for rule, indices, names in (
        (_truth, 0, "true false"),
        (_not, 0, "not"),
        (_and_or, 0, "and or"),
        (_implies, 0, "=>"),
        (_xor, 0, "xor"),
        (_equal, 0, "="),
        (_distinct, 0, "distinct"),
        (_ite, 0, "ite"),
        (_sum, 0, "+ *"),
        (_minus, 0, "-"),
        (_quotient, 0, "/"),
        (_integer_division, 0, "div mod"),
        (_absolute, 0, "abs"),
        (_compare, 0, "< <= > >="),
        (_to_real, 0, "to_real"),
        (_of_real, 0, "to_int is_int"),
        (_divisible, 1, "divisible"),
        (_concat, 0, "concat"),
        (_extract, 2, "extract"),
        (_bits(1), 0, "bvnot bvneg"),
        (_bitwise, 0, "bvand bvor bvxor bvadd bvmul bvnand bvnor bvxnor bvsub bvudiv bvurem bvsdiv bvsrem bvsmod"),
        (_bitwise, 0, "bvshl bvlshr bvashr"),
        (_bits(2, BOOL), 0, "bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge"),
        (_bits(2, bits(1)), 0, "bvcomp"),
        (_extend, 1, "zero_extend sign_extend"),
        (_rotate, 1, "rotate_left rotate_right"),
        (_repeat, 1, "repeat"),
        (_bits(1, INT, "ubv_to_int"), 0, "bv2nat ubv_to_int"),
        (_bits(1, INT), 0, "sbv_to_int"),
        (_from_integer, 1, "int2bv int_to_bv nat2bv"),
        (_of_array, 0, "select store"),
    )
    for name in names.split()
}
"""Rule and number of indices of each operator: `(_ extract 7 0)` has two."""
BIT_OPERATORS = tuple(op for op in OPERATORS if op.startswith("bv") and op != "bv2nat")
"""Operators on bit vectors only, without indices."""
