"""Numbers that make a predicate true, found by trial: integers from zero outwards, then fractions.

Arithmetic is exact and rational; undecided numbers are skipped.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Number
from verifiers.answers.grammar.reading.plain import parse_predicate
from verifiers.contract.protocols import ProposalReply
from verifiers.predicate.spec import PredicateSpec
from verifiers.predicate.verifier import decide

MOST = 4
"""Maximum number of proposals; each was already tested here."""
MOST_TRIED = 200_000
"""Maximum number of tries. After the first hit, the search also ends at twice the tries it took."""
WHOLE_FIRST = 2_000
"""Integers of either sign before the first fraction."""


def enumerated(spec: PredicateSpec, question: str, more_time: Callable[[], bool]) -> ProposalReply:
    condition = parse_predicate(spec.predicate, spec.variable)
    found: list[str] = []
    tried, most = 0, MOST_TRIED
    for value in candidates(whole=spec.domain == "integer"):
        if len(found) == MOST or tried >= most or (tried % 64 == 0 and not more_time()):
            break
        tried += 1
        try:
            if decide(condition, spec.variable, Number(value), prove=False):
                found.append(str(value))
                most = min(most, 2 * tried)
        except GrammarError:  # too large to compute there, or without a value
            continue
    return ProposalReply(texts=tuple(found), by="enumeration", note=f"{tried} numbers were tried")


def candidates(*, whole: bool) -> Iterator[Fraction]:
    """Yields every whole or rational number once, endlessly: first integers, then also fractions, by size of parts."""
    integers = (Fraction(sign * size) for size in itertools.count() for sign in ((1, -1) if size else (1,)))
    if whole:
        yield from integers
    yield from itertools.islice(integers, 2 * WHOLE_FIRST + 1)
    for size in itertools.count(2):
        for below in range(2, size + 1):
            for above in (size,) if below < size else range(1, size):
                if math.gcd(above, below) == 1:
                    yield Fraction(above, below)
                    yield Fraction(-above, below)
        if size > WHOLE_FIRST:
            yield Fraction(size)
            yield Fraction(-size)
