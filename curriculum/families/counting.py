"""Asks in how many ways some can be chosen of many.

Levels raise both numbers. Even the easiest level has over four hundred different items, enough for three splits.
"""

from __future__ import annotations

import math

from curriculum.families.phrased import Operation, PhrasedTaskset, Question

COUNTING = PhrasedTaskset(
    name="counting",
    version=2,
    null_answers=("210",),
    levels=({"of": 99, "chosen": 6}, {"of": 120, "chosen": 6}, {"of": 150, "chosen": 7}),
    questions=(
        Question(
            Operation(
                "choose",
                "import math\nprint(math.comb({a},{b}))",
                ("print(math.comb({a},{b}))", "print(comb({a},{b}))"),
            ),
            ("ways to choose {b} of {a}?", "binomial {a} over {b}?", "teams of {b} from {a} people?"),
            lambda level, rng: (rng.randint(8, level["of"]), rng.randint(2, level["chosen"])),
            math.comb,
        ),
    ),
)
