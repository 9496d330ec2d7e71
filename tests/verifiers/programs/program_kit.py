"""What several tests of programs use: the specs of the canaries, and inputs."""

from __future__ import annotations

from verifiers.programs.data.generators import Integers, Lists
from verifiers.programs.kind import PROGRAM
from verifiers.registry.canaries import specs_of

SPECS = specs_of(PROGRAM)
NUMBERS = Lists(of=Integers(low=-50, high=50), most=12)
SORTED = SPECS["order"].properties[0]
SOLVE = "def solve(numbers):\n    return sum(n * n for n in numbers)\n"
