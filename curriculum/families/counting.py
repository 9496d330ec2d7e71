"""In how many ways some can be chosen of many.

Levels raise both numbers. Even the easiest level has over a hundred different items, so that no answer stands out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from curriculum.family import Operation
from curriculum.phrased import PhrasedFamily, Question


@dataclass(frozen=True)
class CountingLevel:
    """The largest number to choose from, and the largest number chosen."""

    of: int
    chosen: int


LEVELS = (
    CountingLevel(of=50, chosen=4),
    CountingLevel(of=50, chosen=5),
    CountingLevel(of=60, chosen=6),
)


def _choice(level: CountingLevel, rng: Random) -> tuple[int, ...]:
    return rng.randint(8, level.of), rng.randint(2, level.chosen)


COUNTING = PhrasedFamily(
    name="counting",
    domain="combinatorics",
    version=1,
    null_answer="210",
    levels=LEVELS,
    questions=(
        Question(
            Operation(
                "choose",
                2,
                "import math\nprint(math.comb({a},{b}))",
                ("print(math.comb({a},{b}))", "print(comb({a},{b}))"),
            ),
            ("ways to choose {b} of {a}?", "binomial {a} over {b}?", "teams of {b} from {a} people?"),
            _choice,
            math.comb,
        ),
    ),
)
