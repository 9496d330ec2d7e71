"""Asks for powers modulo a number.

Levels raise base, exponent and modulus. The power always exceeds the modulus, or small ones such as 64 would turn up
again and again; residues 0 and 1 are common for the same kind of reason, so items with such an answer are drawn again.
"""

from __future__ import annotations

from random import Random

from curriculum.families.phrased import Level, Operation, PhrasedTaskset, Question


def _power(level: Level, rng: Random) -> tuple[int, ...]:
    while True:
        numbers = rng.randint(2, level["base"]), rng.randint(2, level["base"]), rng.randint(101, level["modulus"])
        base, exponent, modulus = numbers
        if base**exponent > modulus and pow(*numbers) > 1:
            return numbers


POWERS = PhrasedTaskset(
    name="powers",
    version=1,
    null_answers=("64",),
    levels=({"base": 39, "modulus": 499}, {"base": 69, "modulus": 749}, {"base": 99, "modulus": 999}),
    questions=(
        Question(
            Operation(
                "power_modulo", "print(pow({a},{b},{c}))", ("print(pow({a},{b},{c})", "print(powmod({a},{b},{c}))")
            ),
            ("{a} to the {b} mod {c}?", "residue of {a} power {b} modulo {c}?"),
            _power,
            pow,
        ),
    ),
)
