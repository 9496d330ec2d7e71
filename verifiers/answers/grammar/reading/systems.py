"""Groups adjacent equations: alternatives, a system, or several systems.

`x = 1, y = 2 or x = 2, y = 1` and `x = 1, y = 2; x = 2, y = 1` are two systems: commas and `and` bind tighter than `or`
and semicolons, if there is more than one unknown and each group has the same ones. Refused if the groups do not fit,
and if an unknown gets two values in one system.
"""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.lists import solved
from verifiers.answers.grammar.traverse import free_symbols
from verifiers.answers.grammar.values import RelationValue, Value

LOOSE = frozenset({"or", ";"})


def systems(items: Sequence[Value], signs: Sequence[str]) -> RelationValue | None:
    r"""Groups relations joined by different signs into systems of equations; None if one joiner suffices.

    `signs[i]` stands before `items[i]`, empty for the first item and for the second of `\pm`. Raises GrammarError.
    """
    relations = [item for item in items if isinstance(item, RelationValue)]
    if len(relations) < len(items) or len(relations) < 2:
        return None
    unknowns = free_symbols(*relations)
    named = {solved(relation) for relation in relations}
    if len(unknowns) < 2 or (len(named) == 1 and None not in named):
        return None
    loose = LOOSE.intersection(signs)
    tight = {sign for sign in signs if sign} - LOOSE
    if not (loose and tight):
        if "or" not in loose:
            _check(relations)
        return None
    groups: list[list[RelationValue]] = []
    for relation, sign in zip(relations, signs, strict=True):
        if sign in LOOSE or not groups:
            groups.append([])
        groups[-1].append(relation)
    names = {free_symbols(*group) for group in groups}
    if len(loose) > 1 or len(names) > 1:
        raise GrammarError("relations with unclear grouping: write them as points, or in brackets")
    for group in groups:
        _check(group)
    return RelationValue(
        "or", tuple(group[0] if len(group) == 1 else RelationValue("and", tuple(group)) for group in groups)
    )


def _check(system: Sequence[RelationValue]) -> None:
    """Raises GrammarError for a system of equations that gives one unknown two values."""
    named = [solved(relation) for relation in system]
    if None in named or len(set(named)) in (1, len(named)):
        return
    raise GrammarError("several values of one unknown in a system: write the solutions as points")
