"""Says what an equation names on its left: a value, a length, a sequence, a quantity given by others.

Beside such an equation its right side alone says the same. It does not where the equation is a law or a relation.
"""

from __future__ import annotations

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.nodes import symbols
from verifiers.answers.rewriting import KNOWN


def is_value_of_unknown(node: n.Expression) -> bool:
    """Reads `f(2)`, and `p(x)` where it is defined."""
    if not isinstance(node, n.FunctionCall) or node.function in KNOWN:
        return False
    return node.function in ("f", "g", "h", "y") or all(isinstance(part, n.Symbol) for part in node.arguments)


def is_definition(left: n.Expression, *values: n.Expression) -> bool:
    """Reads `a_n = 2^n` and `\\frac{dy}{dx} = 2x`: a sequence by its index, a derivative."""
    if not isinstance(left, n.Symbol) or len(values) != 1:
        return False
    _, _, foot = left.name.partition("_")
    return foot in symbols(values[0]) or "/" in left.name


def is_segment(node: n.Expression, *values: n.Expression) -> bool:
    """Says whether it is AB of `AB = 5`: capital letters side by side, which name a length or are a product."""
    letters = isinstance(node, n.Product) and all(
        isinstance(part, n.Symbol) and len(part.name) == 1 and part.name.isupper() for part in node.factors
    )
    return letters and not any(map(symbols, values))


def is_formula(relation: v.RelationValue) -> bool:
    """Says whether it is one equation that gives its left letter by others: `y = 2x + 1`, `v = v_0 + at`.

    Not where it relates things of one kind, whose places count: a letter with a foot and another of the same letter
    (`x_1 = 2x_2`), unless a word names what follows from places (`R_{eq}` of R_1 and R_2); a letter with primes
    (`y' = 2y`); a letter alone on the right (`x = y`)."""
    match relation:
        case v.RelationValue(_, (n.ComparisonNode((n.Symbol(name), right), ("==",)),)):
            letter, _, foot = name.partition("_")
            others = symbols(right)
            feet = [other.partition("_")[2] for other in others if other.rstrip("'").partition("_")[0] == letter]
            siblings = foot and feet and (not _is_word(foot) or any(map(_is_word, feet)))
            alone = isinstance(right, n.Symbol)
            return bool(others) and name not in others and not ("'" in name or siblings or alone)
        case _:
            return False


def _is_word(foot: str) -> bool:
    return len(foot) > 1 and foot.isalpha() and foot.islower()
