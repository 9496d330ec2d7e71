"""Units convert exactly; what has another dimension never converts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tables import table

from verifiers.answers.grammar.nodes import Number
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.units import UNIT_NAMES, UNITS, UnitError, combined, measure

SAME = [
    (5, (("m", 1),), 500, (("cm", 1),)),
    (1, (("km", 1), ("h", -1)), Fraction(5, 18), (("m", 1), ("s", -1))),
    (1, (("inch", 1),), Fraction(254, 100), (("cm", 1),)),
    (1, (("gallon", 1),), 4, (("quart", 1),)),
    (1, (("J", 1),), 1, (("N", 1), ("m", 1))),
    (1, (("kWh", 1),), Fraction(36, 10), (("MJ", 1),)),
    (1, (("L", 1),), 1000, (("cm", 3),)),
    (32, (("degF", 1),), 0, (("degC", 1),)),
    (-40, (("degF", 1),), -40, (("degC", 1),)),
    (1, (("$", 1),), 100, (("cents", 1),)),
    (1, (("year", 1),), 12, (("months", 1),)),
    (50, (("%", 1),), Fraction(1, 2), ()),
]


@table(("first", "unit", "second", "other"), SAME)
def test_the_same_quantity_in_two_units(first: Fraction, unit: object, second: Fraction, other: object) -> None:
    one = measure(Number(Fraction(first)), unit)  # type: ignore[arg-type]
    two = measure(Number(Fraction(second)), other)  # type: ignore[arg-type]
    assert one.dimension == two.dimension
    assert rational(one.of) == rational(two.of)


@pytest.mark.parametrize(
    ("one", "other"), [("m", "kg"), ("$", "euro"), ("s", "year"), ("J", "W"), ("m", "L"), ("degC", "m"), ("bit", "m")]
)
def test_other_dimensions_stay_apart(one: str, other: str) -> None:
    dimensions = [measure(Number(Fraction(1)), ((name, 1),)).dimension for name in (one, other)]
    assert dimensions[0] != dimensions[1]


def test_a_point_on_a_scale_does_not_multiply() -> None:
    with pytest.raises(UnitError):
        combined((("degC", 1), ("s", -1)))
    with pytest.raises(UnitError):
        combined((("degC", 2),))


def test_every_spelling_has_a_positive_factor_and_unknown_ones_none() -> None:
    assert all(UNITS[name].factor > 0 for name in UNIT_NAMES)
    with pytest.raises(UnitError):
        measure(Number(Fraction(1)), (("parrots", 1),))
