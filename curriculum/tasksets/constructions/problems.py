"""Tasksets of constructions: towers, distant terms, functional equations, bounds, lattices, symmetry, huge counts.

Levels 0 and 1 can mostly be counted out with Python; from level 2 on the numbers are too large. The tasksets: with
Python, and by hand, without a tool and with numbers that a pencil can handle.
"""

from __future__ import annotations

from functools import partial

from curriculum.tasksets.constructions import (
    bounds,
    distant_terms,
    functional_equations,
    huge_counts,
    lattices,
    symmetry,
    towers,
)
from curriculum.tasksets.statements import mathematics

BOTH = {
    "power_towers": towers.towers,
    "primes_in_power_differences": towers.lifted,
    "equations_with_cycles": functional_equations.cycles,
    "equations_of_cauchys_kind": functional_equations.cauchy,
    "sets_without_ratios": bounds.sparse_sets,
    "greatest_products": bounds.greatest_products,
    "points_in_polygons": lattices.polygons,
    "billiards": lattices.billiards,
    "coloured_solids": symmetry.solids,
}
CONSTRUCTIONS = mathematics(
    "constructions",
    2,
    {
        **{topic: partial(make, False) for topic, make in BOTH.items()},
        "terms_of_linear_recurrences": distant_terms.linear_terms,
        "terms_of_squaring_sequences": distant_terms.doubled_terms,
        "points_below_lines": lattices.below_lines,
        "coloured_boards": symmetry.boards,
        "necklaces": symmetry.necklaces,
        "grid_paths": huge_counts.grid_paths,
        "words_without_a_block": huge_counts.words_without_a_block,
    },
)
CONSTRUCTIONS_BY_HAND = mathematics(
    "constructions_by_hand", 1, {f"{topic}_by_hand": partial(make, True) for topic, make in BOTH.items()}, tools=()
)
