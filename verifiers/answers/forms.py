"""Whether an answer is in the form that was asked for; empty text where it is, otherwise why not.

`worked_out`: nothing is left to compute that the expected answer has computed. Where that is a written number, so must
the answer be (a complex one may be over one denominator); a constant may use no function that the expected one does not
use, apart from roots and powers; an inequality must be solved where the expected one is; an integral, a sum or a limit
only restates a question.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from verifiers.answers import normal
from verifiers.answers.compare_sets import is_set
from verifiers.answers.expression import FREE_FUNCTIONS, SAME_FUNCTION
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import (
    Call,
    Comparison,
    Constant,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
    symbols,
    walk,
)
from verifiers.answers.grammar.rational import integer_root, rational
from verifiers.answers.monomials import NoNormalFormError, primes
from verifiers.answers.parts import comparisons, expressions, values
from verifiers.answers.reading import is_written_number
from verifiers.answers.rewriting import BINDERS, KNOWN
from verifiers.answers.values import Quantity, Relation, Scalar, SetOperation, Value

Form = Literal["equal", "worked_out", "simplified", "same"]
ROOTS = frozenset({"sqrt", "cbrt", "root"})
RADIANS = tuple(((name, 1),) for name in ("rad", "radian", "radians"))
ONLY_SPELLING = FREE_FUNCTIONS | {"percent", "abs"}


def refusal(answer: Value, expected: Value, form: Form) -> str:
    """Why the answer is not in the form asked for; empty where it is."""
    if form == "equal":
        return ""
    reason = unfinished(answer, expected)
    if reason or form == "worked_out":
        return reason
    if form == "same":
        return "" if alike(answer, expected) else "not written as it was asked for"
    return next((reason for node in expressions(answer) if (reason := unsimplified(node))), "")


def unfinished(answer: Value, expected: Value) -> str:
    """Why an answer leaves work to whoever checks it; empty where it does not."""
    left = functions(answer) & BINDERS - functions(expected)
    if left:
        return f"not worked out: the {', '.join(sorted(left))} is left to be computed"
    if _operations(answer) - _operations(expected):
        return "not worked out: an intersection is left to be computed"
    if not is_solved(answer) and is_solved(expected):
        return "not worked out: it is left to be solved"
    if not is_solved(expected):
        return ""
    if isinstance(answer, Scalar) and isinstance(expected, Scalar) and symbols(answer.of) and not symbols(expected.of):
        return "not worked out: the answer is a constant, and symbols are left in it"
    constants = [node for node in expressions(answer) if not symbols(node)]
    wanted = [node for node in expressions(expected) if not symbols(node)]
    if not wanted:
        return ""
    if all(map(is_written, wanted)):
        # An angle may be said in degrees or as a multiple of pi.
        turned = isinstance(expected, Quantity) != isinstance(answer, Quantity) or (
            isinstance(answer, Quantity) and answer.unit in RADIANS
        )
        if all(is_written(node) or is_over_one_denominator(node) for node in constants) or (
            turned and all(map(_is_multiple_of_pi, constants))
        ):
            return ""
        return "not worked out: the answer is a number, write the number"
    extra = functions(*constants) - functions(*wanted) - ONLY_SPELLING
    if extra:
        return f"not worked out: {', '.join(sorted(extra))} is left to be computed"
    if any(map(_multiplies_sums, constants)) and not any(map(_multiplies_sums, wanted)):
        return "not worked out: a product of sums is left to be computed"
    if any(map(_adds_numbers, constants)) and not any(map(_adds_numbers, wanted)):
        return "not worked out: a sum of numbers is left to be computed"
    return ""


def functions(*of: Value | Expression) -> frozenset[str]:
    nodes: list[Expression] = []
    for part in of:
        nodes.extend([part] if isinstance(part, Expression) else expressions(part))
    names = {part.function for node in nodes for part in walk(node) if isinstance(part, Call)}
    return frozenset(SAME_FUNCTION.get(name, name) for name in names)


def is_written(node: Expression) -> bool:
    """A number as people write a result."""
    match node:
        case Negation(of):
            return is_written(of)
        case Call("percent", (of,)):
            return is_written(of)
        case Sum((first, second)):
            parts = (second, first) if _is_imaginary(first) else (first, second)
            return is_written_number(parts[0]) and _is_imaginary(parts[1])
        case _:
            return is_written_number(node)


def _is_multiple_of_pi(node: Expression) -> bool:
    match node:
        case Constant("pi"):
            return True
        case Negation(of):
            return _is_multiple_of_pi(of)
        case Product((factor, Constant("pi"))):
            return is_written_number(factor)
        case Quotient(above, below):
            return _is_multiple_of_pi(above) and is_written_number(below)
        case _:
            return False


def _is_imaginary(node: Expression) -> bool:
    match node:
        case Negation(of):
            return _is_imaginary(of)
        case Constant("i"):
            return True
        case Product((factor, Constant("i"))) | Quotient(Product((factor, Constant("i"))), Number()):
            return is_written_number(factor)
        case Quotient(Constant("i"), Number()):
            return True
        case _:
            return False


def is_over_one_denominator(node: Expression) -> bool:
    """`\\frac{3+2i}{6}` and `\\frac16(3+2i)`: a complex number of which nothing is left to do but to divide."""
    match node:
        case Negation(of):
            return is_over_one_denominator(of)
        case Quotient(Sum((first, second)), Number()):
            parts = (second, first) if _is_imaginary(first) else (first, second)
            return _has_digits_only(parts[0]) and _is_whole_imaginary(parts[1])
        case Product((Quotient(Number(value), Number() as below), Sum() as above)) if value == 1:
            return is_over_one_denominator(Quotient(above, below))
        case _:
            return False


def _has_digits_only(node: Expression) -> bool:
    return isinstance(node.of if isinstance(node, Negation) else node, Number)


def _is_whole_imaginary(node: Expression) -> bool:
    """`i`, `-i`, `2i`, `-2i`."""
    match node:
        case Negation(of):
            return _is_whole_imaginary(of)
        case Constant("i"):
            return True
        case Product((factor, Constant("i"))):
            return _has_digits_only(factor)
        case _:
            return False


def _operations(value: Value) -> set[str]:
    return {
        part.operation for part in values(value) if isinstance(part, SetOperation) and part.operation == "intersection"
    }


def is_solved(value: Value) -> bool:
    """Whether each comparison has an unknown alone on one side, with constants around it; nothing else is unsolved."""
    if isinstance(value, Relation) or is_set(value):
        return all(map(_is_solved, comparisons(value)))
    return True


def _is_solved(comparison: Comparison) -> bool:
    """What is about several unknowns is not there to be solved."""
    names = frozenset[str]().union(*map(symbols, comparison.operands))
    if len(names) != 1:
        return True
    unknown = [side for side in comparison.operands if symbols(side)]
    return len(unknown) == 1 and (
        isinstance(unknown[0], Symbol) or (isinstance(unknown[0], Call) and unknown[0].function not in KNOWN)
    )


def _multiplies_sums(node: Expression) -> bool:
    for part in walk(node):
        match part:
            case Power(Sum(), Number(value)) if value.denominator == 1 and value > 1:
                return True
            case Product(factors) if sum(isinstance(factor, Sum) for factor in factors) > 1:
                return True
            case _:
                continue
    return False


def _adds_numbers(node: Expression) -> bool:
    sums = (part for part in walk(node) if isinstance(part, Sum))
    return any(sum(map(_is_rational, part.terms)) > 1 for part in sums)


def _is_rational(node: Expression) -> bool:
    try:
        return not symbols(node) and rational(node) is not None
    except GrammarError:
        return False


# -- simplified


def unsimplified(node: Expression) -> str:
    """Why an expression is not simplified; empty where nothing is found."""
    for part in walk(node):
        reason = _part_unsimplified(part)
        if reason:
            return reason
    if _terms(node) > _normal_terms(node):
        return "like terms are left to be collected"
    return ""


def _part_unsimplified(part: Expression) -> str:
    match part:
        case Quotient(above, below):
            if any(isinstance(inside, Call) and inside.function in ROOTS for inside in walk(below)) and not symbols(
                below
            ):
                return "a root is left in a denominator"
            return _fraction_unsimplified(above, below)
        case Product((Quotient(_, below), Sum() as above)) if is_over_one_denominator(part):
            return _fraction_unsimplified(above, below)
        case Call("sqrt", (of,)):
            return _root_unsimplified(of, 2)
        case Call("cbrt", (of,)):
            return _root_unsimplified(of, 3)
        case Call("root", (of, Number(degree))) if degree.denominator == 1:
            return _root_unsimplified(of, degree.numerator)
        case Call(name, _) if name in BINDERS or name in ("gcd", "lcm", "factorial", "binomial"):
            return f"{name} is left to be computed"
        case _:
            return ""


def _fraction_unsimplified(above: Expression, below: Expression) -> str:
    first, second = _leading(above), _leading(below)
    if first is None or second is None:
        return ""
    if second == 1 or (second.denominator == 1 and first.denominator == 1 and _common(first, second) > 1):
        return "a fraction is not in lowest terms"
    return ""


def _common(first: Fraction, second: Fraction) -> int:
    import math

    return math.gcd(first.numerator, second.numerator)


def _leading(node: Expression) -> Fraction | None:
    """The number that multiplies the rest, where it is plain to see."""
    match node:
        case Number(value):
            return value
        case Negation(of):
            return _leading(of)
        case Product((Number(value), *_)):
            return value
        case Sum(terms):
            import math

            found = [_leading(term) for term in terms]
            numbers = [value if value is not None else Fraction(1) for value in found]
            if any(value.denominator != 1 for value in numbers):
                return None
            return Fraction(math.gcd(*(value.numerator for value in numbers)))
        case _:
            return Fraction(1)


def _root_unsimplified(of: Expression, degree: int) -> str:
    match of:
        case Number(value) if value.denominator != 1:
            return "a fraction is left under a root"
        case Quotient() if not symbols(of):
            return "a fraction is left under a root"
        case Number(value):
            number = abs(value.numerator)
            if number and integer_root(number, degree) ** degree == number:
                return "a root is left to be computed"
            powers = primes(number) if number else []
            if any(count >= degree for _, count in powers):
                return "a root still holds a power"
        case Sum() if not symbols(of) and _denests(of):
            return "a root is left nested"
    return ""


def _denests(of: Expression) -> bool:
    try:
        found = normal.normal(of)
        return len(found.under) == 1 and normal.denested(found.over) is not None
    except NoNormalFormError:
        return False


def _terms(node: Expression) -> int:
    inside = node.of if isinstance(node, Negation) else node
    return len(inside.terms) if isinstance(inside, Sum) else 1


def _normal_terms(node: Expression) -> int:
    try:
        found = normal.normal(node)
    except NoNormalFormError:
        return _terms(node)
    return max(1, len(found.over)) if len(found.under) == 1 else _terms(node)


# -- same


def alike(answer: Value, expected: Value) -> bool:
    """The same tree: notation aside, `1/2` is `\\frac{1}{2}` and 0.5 is not."""
    if answer != expected:
        return False
    pairs = zip(expressions(answer), expressions(expected), strict=True)
    return all(_written_alike(first, second) for first, second in pairs)


def _written_alike(first: Expression, second: Expression) -> bool:
    for one, other in zip(walk(first), walk(second), strict=True):
        if isinstance(one, Number) and isinstance(other, Number) and _style(one) != _style(other):
            return False
    return True


def _style(number: Number) -> str:
    if "e" in number.written.lower():
        return "scientific"
    if "." in number.written:
        return "decimal"
    return "mixed" if number.value.denominator != 1 and number.written else "digits"
