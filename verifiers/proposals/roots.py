"""Solutions of a predicate's equations by SymPy, whose objects are built from our own tree: no text reaches SymPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy

from verifiers.answers.algebra.symbolic import build
from verifiers.answers.grammar.nodes import And, ComparisonNode, Condition, Expression, Negation, Or, Sum
from verifiers.answers.grammar.reading.plain import parse_predicate
from verifiers.contract.protocols import ProposalReply
from verifiers.predicate.spec import PredicateSpec

MOST = 12
MOST_CHARS = 400
BY = f"sympy {sympy.__version__}"


def by_sympy(spec: PredicateSpec, question: str, more_time: Callable[[], bool]) -> ProposalReply:
    condition = parse_predicate(spec.predicate, spec.variable)
    found: dict[str, None] = {}
    equations = 0
    for first, second in _equations(condition):
        if len(found) >= MOST or not more_time():
            break
        equations += 1
        for text in solutions(Sum((first, Negation(second))), spec.variable):
            found.setdefault(text)
    note = "" if found else "the predicate has no equation" if not equations else "its equations were not solved"
    return ProposalReply(texts=tuple(found)[:MOST], by=BY, note=note)


def _equations(condition: Condition) -> Iterator[tuple[Expression, Expression]]:
    match condition:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _equations(part)
        case ComparisonNode(operands, relations):
            for first, relation, second in zip(operands, relations, operands[1:], strict=False):
                if relation == "==":
                    yield first, second


def solutions(zero: Expression, variable: str) -> Iterator[str]:
    symbol: Any = sympy.Symbol(variable)
    try:
        solved = sympy.solve(build(zero), symbol)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - SymPy raises nearly anything; what it does not solve, it does not propose
        return
    for root in solved:
        if root.free_symbols or root.has(sympy.CRootOf, sympy.zoo, sympy.oo, sympy.nan):
            continue
        text = str(root).replace("I", "i")
        if len(text) <= MOST_CHARS:
            yield text
