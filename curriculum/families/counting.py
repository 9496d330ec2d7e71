"""Asks in how many ways some can be chosen of many.

Levels raise both numbers. Even the easiest level has over a hundred different items, so that no answer stands out.
"""

from __future__ import annotations

import math

from curriculum.families.phrased import Operation, PhrasedTaskset, Question

COUNTING = PhrasedTaskset(
    name="counting",
    version=1,
    null_answers=("210",),
    levels=({"of": 50, "chosen": 4}, {"of": 50, "chosen": 5}, {"of": 60, "chosen": 6}),
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
