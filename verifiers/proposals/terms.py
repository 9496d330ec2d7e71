"""Small terms over given symbols, shortest first, deduplicated by their values on samples.

Enumeration with observational equivalence (Udupa et al., TRANSIT, PLDI 2013; Albarghouthi et al., CAV 2013): of terms
with the same value on every sample, only the first, and so a shortest, is built upon.

SMT-LIB text of values as a submission must write them: complete, one definition per symbol.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from verifiers.smt.language.errors import ClaimError, Undefined
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.operators import OPERATORS, apply_operator
from verifiers.smt.language.render import name_text
from verifiers.smt.language.terms import BOOL, Function, Sort, Term, Terms
from verifiers.smt.language.values import ArrayValue, Element, FunctionTable, Interpretation, Value

MOST_KEPT = 20_000
MOST_SIZE = 11
BY_SORT = {
    "Int": "+ - * <= < = >= div mod",
    "Real": "+ - * <= < =",
    "Bool": "and or not = ite",
    "BitVec": "bvand bvor bvxor bvadd bvsub bvnot bvneg bvshl bvlshr bvmul bvult bvslt = bvashr",
}
COUNTS = {"not": 1, "bvnot": 1, "bvneg": 1, "ite": 3}
"""Number of arguments of an operator; two if not listed."""
SYMMETRIC = frozenset("+ * = and or bvand bvor bvxor bvadd bvmul".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Small:
    text: str
    term: Term
    size: int = 1
    """Symbols and numbers in the term, as `max_size` of a spec counts them."""


def operators_on(
    sorts: Iterable[Sort], allowed: Sequence[str] | None = None, forbidden: Sequence[str] = ()
) -> list[str]:
    """Returns the usual SMT operators on these sorts, or all allowed ones if `allowed` is given."""
    usual = dict.fromkeys(op for sort in sorts for op in BY_SORT.get(sort.name, "").split())
    chosen = usual if allowed is None else [op for op in allowed if op in OPERATORS and OPERATORS[op][1] == 0]
    return [op for op in chosen if op not in forbidden and op not in ("true", "false")]


def small_terms(
    terms: Terms,
    leaves: Sequence[Small],
    operators: Sequence[str],
    samples: Sequence[Interpretation],
    more_time: Callable[[], bool],
    most_size: int = MOST_SIZE,
    wanted: tuple[object, ...] = (),
) -> Iterator[tuple[Small, tuple[Value, ...]]]:
    """Yields SMT terms with their values on sample inputs, by size. Skips terms without a value on some sample. Terms
    of the `wanted` sort and values are not deduplicated."""
    seen: set[tuple[object, ...]] = set()
    by_size: dict[int, dict[Sort, list[Small]]] = defaultdict(lambda: defaultdict(list))
    count = 0

    for size in range(1, most_size + 1):
        for made in leaves if size == 1 else _combined(terms, by_size, operators, size):
            if count >= MOST_KEPT or not more_time():
                return
            values = values_on(made.term, samples)
            key = (made.term.sort, *(values or ()))
            if values is None or (key in seen and key != wanted):
                continue
            seen.add(key)
            count += 1
            if key != wanted:
                by_size[size][made.term.sort].append(made)
            yield made, values


def values_on(term: Term, samples: Sequence[Interpretation]) -> tuple[Value, ...] | None:
    """Returns an SMT term's value on each sample input, or None if it is undefined on any."""
    try:
        return tuple(evaluate(term, sample) for sample in samples)
    except Undefined:
        return None


def _combined(
    terms: Terms, by_size: dict[int, dict[Sort, list[Small]]], operators: Sequence[str], size: int
) -> Iterator[Small]:
    for op in operators:
        for sizes in itertools.product(range(1, size), repeat=COUNTS.get(op, 2)):
            if sum(sizes) != size - 1 or (op in SYMMETRIC and list(sizes) != sorted(sizes)):
                continue
            for sorts in _sorts(op, by_size, sizes):
                for parts in itertools.product(*(by_size[n][s] for n, s in zip(sizes, sorts, strict=True))):
                    try:
                        term = apply_operator(terms, op, (), [part.term for part in parts])
                    except ClaimError:
                        break  # it does not take these sorts
                    yield Small(f"({op} {' '.join(part.text for part in parts)})", term, size)


def _sorts(op: str, by_size: dict[int, dict[Sort, list[Small]]], sizes: tuple[int, ...]) -> Iterator[tuple[Sort, ...]]:
    known = list(dict.fromkeys(sort for size in sizes for sort in by_size[size]))
    for sort in known:
        yield (BOOL, sort, sort) if op == "ite" else (sort,) * len(sizes)


MOST_CHARS = 200_000


def definition_text(function: Function, value: Value | FunctionTable | None) -> str:
    """Renders `(define-fun f ((a0 Int)) Int ...)`. A value of None (the solver left it open) becomes zero, false, or
    similar.

    Raises ClaimError for a value that SMT-LIB cannot express or that is too long.
    """
    if not isinstance(value, FunctionTable):
        value = FunctionTable({}, zero(function.range) if value is None else value)
    parameters = [f"a{place}" for place in range(len(function.domain))]
    typed = " ".join(f"({name} {sort})" for name, sort in zip(parameters, function.domain, strict=True))
    body = plain(value.default, function.range)
    for key, held in value.entries.items():
        named = zip(parameters, key, function.domain, strict=True)
        same = [f"(= {name} {plain(each, sort)})" for name, each, sort in named]
        asked = same[0] if len(same) == 1 else f"(and {' '.join(same)})"
        body = f"(ite {asked} {plain(held, function.range)} {body})"
    text = f"(define-fun {name_text(function.name)} ({typed}) {function.range} {body})"
    if len(text) > MOST_CHARS:
        raise ClaimError("its values are too long to write")
    return text


def plain(value: Value, sort: Sort) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() if sort.name == "BitVec":
            return f"#b{value:0{sort.width}b}"
        case int() | Fraction() if sort.name == "Real":
            number = Fraction(value)
            size = f"{abs(number.numerator)}.0"
            size = size if number.denominator == 1 else f"(/ {size} {number.denominator}.0)"
            return f"(- {size})" if number < 0 else size
        case int():
            return f"(- {-value})" if value < 0 else str(value)
        case ArrayValue(default, entries):
            index, element = sort.parameters
            text = f"((as const {sort}) {plain(default, element)})"
            for place, held in entries:
                text = f"(store {text} {plain(place, index)} {plain(held, element)})"
            return text
        case Element():
            raise ClaimError("elements of declared sorts have no literals")
    raise ClaimError("this value has no literal")


def zero(sort: Sort) -> Value:
    """Returns a simple value of an SMT sort. Raises ClaimError for declared sorts, whose elements have no literals."""
    match sort.name:
        case "Bool":
            return False
        case "Int" | "BitVec":
            return 0
        case "Real":
            return Fraction(0)
        case "Array" if not sort.declared:
            return ArrayValue(zero(sort.parameters[1]))
    raise ClaimError("elements of declared sorts have no literals")
