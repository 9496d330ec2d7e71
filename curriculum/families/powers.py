"""Powers modulo a number.

Levels raise base, exponent and modulus. The power always exceeds the modulus, or small ones such as 64 would turn up
again and again; residues 0 and 1 are common for the same kind of reason, so items with such an answer are drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from curriculum.family import Operation
from curriculum.phrased import PhrasedFamily, Question


@dataclass(frozen=True)
class PowersLevel:
    """The largest base and exponent, and the largest modulus."""

    base: int
    modulus: int


LEVELS = (
    PowersLevel(base=39, modulus=499),
    PowersLevel(base=69, modulus=749),
    PowersLevel(base=99, modulus=999),
)


def _power(level: PowersLevel, rng: Random) -> tuple[int, ...]:
    while True:
        numbers = rng.randint(2, level.base), rng.randint(2, level.base), rng.randint(101, level.modulus)
        base, exponent, modulus = numbers
        if base**exponent > modulus and pow(*numbers) > 1:
            return numbers


POWERS = PhrasedFamily(
    name="powers",
    domain="number theory",
    version=1,
    null_answer="64",
    levels=LEVELS,
    questions=(
        Question(
            Operation(
                "power_modulo",
                3,
                "print(pow({a},{b},{c}))",
                ("print(pow({a},{b},{c})", "print(powmod({a},{b},{c}))"),
            ),
            ("{a} to the {b} mod {c}?", "residue of {a} power {b} modulo {c}?"),
            _power,
            pow,
        ),
    ),
)
