"""Small terms over some symbols, from the shortest up, each only once by its values on samples.

Enumeration with observational equivalence (Udupa et al., TRANSIT, PLDI 2013; Albarghouthi et al., CAV 2013): of terms
that have the same value on every sample only the first, and so a shortest, is built upon.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from verifiers.smt.errors import ClaimError, Undefined
from verifiers.smt.evaluate import evaluate
from verifiers.smt.operators import apply_operator
from verifiers.smt.terms import BOOL, Sort, Term, Terms
from verifiers.smt.values import Interpretation

MOST_KEPT = 20_000
MOST_SIZE = 11
BY_SORT = {
    "Int": "+ - * <= < = >= div mod",
    "Real": "+ - * <= < =",
    "Bool": "and or not = ite",
    "BitVec": "bvand bvor bvxor bvadd bvsub bvnot bvneg bvshl bvlshr bvmul bvult bvslt = bvashr",
}
COUNTS = {"not": (1,), "bvnot": (1,), "bvneg": (1,), "ite": (3,)}
"""How many arguments; two where nothing is said."""
SYMMETRIC = frozenset("+ * = and or bvand bvor bvxor bvadd bvmul".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Small:
    text: str
    term: Term
    size: int
    """Symbols and numbers in it, as `max_size` of a spec counts them."""


def small_terms(
    terms: Terms,
    leaves: Sequence[Small],
    operators: Sequence[str],
    samples: Sequence[Interpretation],
    more_time: Callable[[], bool],
    most_size: int = MOST_SIZE,
    wanted: tuple[object, ...] = (),
) -> Iterator[tuple[Small, tuple[object, ...]]]:
    """Each with its values on the samples, by size. A term without a value on some sample is left out.
    Those of this `wanted` sort and values come all."""
    seen: set[tuple[object, ...]] = set()
    by_size: dict[int, dict[Sort, list[Small]]] = defaultdict(lambda: defaultdict(list))
    kept = 0

    def look(small: Small) -> tuple[object, ...] | None:
        try:
            values = tuple(evaluate(small.term, sample) for sample in samples)
        except Undefined:
            return None
        key = (small.term.sort, *values)
        if key in seen:
            return values if key == wanted else None
        seen.add(key)
        return values

    for size in range(1, most_size + 1):
        for made in leaves if size == 1 else _combined(terms, by_size, operators, size):
            if kept >= MOST_KEPT or not more_time():
                return
            values = look(made)
            if values is not None:
                kept += 1
                if (made.term.sort, *values) != wanted:
                    by_size[size][made.term.sort].append(made)
                yield made, values


def _combined(
    terms: Terms, by_size: dict[int, dict[Sort, list[Small]]], operators: Sequence[str], size: int
) -> Iterator[Small]:
    for op in operators:
        for count in COUNTS.get(op, (2,)):
            for sizes in _splits(size - 1, count):
                if op in SYMMETRIC and list(sizes) != sorted(sizes):
                    continue
                for sorts in _sorts(op, by_size, sizes):
                    for parts in itertools.product(*(by_size[n][s] for n, s in zip(sizes, sorts, strict=True))):
                        try:
                            term = apply_operator(terms, op, (), [part.term for part in parts])
                        except ClaimError:
                            break  # it does not take these sorts
                        yield Small(f"({op} {' '.join(part.text for part in parts)})", term, size)


def _splits(total: int, count: int) -> Iterator[tuple[int, ...]]:
    if count == 1:
        if total >= 1:
            yield (total,)
        return
    for first in range(1, total - count + 2):
        for rest in _splits(total - first, count - 1):
            yield (first, *rest)


def _sorts(op: str, by_size: dict[int, dict[Sort, list[Small]]], sizes: tuple[int, ...]) -> Iterator[tuple[Sort, ...]]:
    known = list(dict.fromkeys(sort for size in sizes for sort in by_size[size]))
    for sort in known:
        yield (BOOL, sort, sort) if op == "ite" else (sort,) * len(sizes)
