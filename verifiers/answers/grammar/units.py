"""Units of measurement: every spelling with its exact value in base units.

A unit is a factor and a product of base dimensions. Currencies are separate dimensions: nothing converts between them.
Angles, percent and plain "units" are dimensionless. Temperatures in degrees are points on a scale, and convert only
alone.

Sources: the SI brochure (9th edition); the international yard and pound agreement of 1959; US liquid measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from verifiers.answers.grammar.nodes import Constant, Expression, Number, Product, Quotient, Sum, minus, number

Dimension = tuple[tuple[str, int], ...]
"""Base dimensions with their powers, sorted, without zeros."""
MAX_POWER = 12


@dataclass(frozen=True, slots=True)
class Unit:
    factor: Fraction
    dimension: Dimension
    turns: bool = False
    """True if the factor must be multiplied by pi: degrees."""
    offset: Fraction | None = None
    """Zero point of a temperature scale, in kelvin."""


def _dimension(**powers: int) -> Dimension:
    return tuple(sorted(powers.items()))


LENGTH, MASS, TIME = _dimension(m=1), _dimension(kg=1), _dimension(s=1)
NONE: Dimension = ()
AREA, VOLUME = _dimension(m=2), _dimension(m=3)
SPEED = _dimension(m=1, s=-1)
FORCE = _dimension(kg=1, m=1, s=-2)
PRESSURE = _dimension(kg=1, m=-1, s=-2)
ENERGY = _dimension(kg=1, m=2, s=-2)
POWER = _dimension(kg=1, m=2, s=-3)
CHARGE = _dimension(A=1, s=1)
VOLTAGE = _dimension(A=-1, kg=1, m=2, s=-3)
INFORMATION = _dimension(bit=1)

PREFIXES = {
    "f": (Fraction(1, 10**15), "femto"), "p": (Fraction(1, 10**12), "pico"),
    "n": (Fraction(1, 10**9), "nano"), "\u00b5": (Fraction(1, 10**6), "micro"), "m": (Fraction(1, 1000), "milli"),
    "c": (Fraction(1, 100), "centi"), "d": (Fraction(1, 10), "deci"), "k": (Fraction(1000), "kilo"),
    "M": (Fraction(10**6), "mega"), "G": (Fraction(10**9), "giga"), "T": (Fraction(10**12), "tera"),
    "P": (Fraction(10**15), "peta"), "h": (Fraction(100), "hecto"),
    "Ki": (Fraction(2**10), "kibi"), "Mi": (Fraction(2**20), "mebi"), "Gi": (Fraction(2**30), "gibi"),
    "Ti": (Fraction(2**40), "tebi"), "Pi": (Fraction(2**50), "pebi"),
}  # fmt: skip

DATA = (*"kMGTP", "Ki", "Mi", "Gi", "Ti", "Pi")
PREFIXED: tuple[tuple[str, tuple[str, ...], Fraction, Dimension, Sequence[str]], ...] = (
    ("m", ("meter", "metre", "meters", "metres"), Fraction(1), LENGTH, "fpn\u00b5mcdk"),
    ("g", ("gram", "grams", "gramme", "grammes"), Fraction(1, 1000), MASS, "n\u00b5mk"),
    ("s", ("second", "seconds"), Fraction(1), TIME, "fpn\u00b5m"),
    ("A", ("ampere", "amperes", "amp", "amps"), Fraction(1), _dimension(A=1), "pn\u00b5mk"),
    ("L", ("liter", "litre", "liters", "litres"), Fraction(1, 1000), VOLUME, "\u00b5mcd"),
    ("N", ("newton", "newtons"), Fraction(1), FORCE, "mkM"),
    ("Pa", ("pascal", "pascals"), Fraction(1), PRESSURE, "mhkMG"),
    ("J", ("joule", "joules"), Fraction(1), ENERGY, "\u00b5mkMGT"),
    ("W", ("watt", "watts"), Fraction(1), POWER, "\u00b5mkMGT"),
    ("V", ("volt", "volts"), Fraction(1), VOLTAGE, "\u00b5mkM"),
    ("C", ("coulomb", "coulombs"), Fraction(1), CHARGE, "pn\u00b5m"),
    ("F", ("farad", "farads"), Fraction(1), _dimension(A=2, kg=-1, m=-2, s=4), "pn\u00b5m"),
    ("H", ("henry", "henries"), Fraction(1), _dimension(A=-2, kg=1, m=2, s=-2), "n\u00b5m"),
    ("T", ("tesla", "teslas"), Fraction(1), _dimension(A=-1, kg=1, s=-2), "n\u00b5m"),
    ("ohm", ("ohms", "Ohm", "Ohms"), Fraction(1), _dimension(A=-2, kg=1, m=2, s=-3), "mkMG"),
    ("M", ("molar",), Fraction(1000), _dimension(m=-3, mol=1), "n\u00b5m"),
    ("Hz", ("hertz",), Fraction(1), _dimension(s=-1), "kMGT"),
    ("mol", ("mole", "moles"), Fraction(1), _dimension(mol=1), "\u00b5mk"),
    ("eV", ("electronvolt", "electronvolts"), Fraction(1602176634, 10**28), ENERGY, "\u00b5mkMG"),
    ("cal", ("calorie", "calories"), Fraction(4184, 1000), ENERGY, "k"),
    ("bit", ("bits",), Fraction(1), INFORMATION, DATA),
    ("B", ("byte", "bytes"), Fraction(8), INFORMATION, DATA),
)

INCH = Fraction(254, 10_000)
POUND = Fraction(45359237, 10**8)
GALLON = Fraction(231) * INCH**3

PLAIN: tuple[tuple[tuple[str, ...], Fraction, Dimension], ...] = (
    (("in", "inch", "inches"), INCH, LENGTH),
    (("ft", "foot", "feet"), 12 * INCH, LENGTH),
    (("yd", "yard", "yards"), 36 * INCH, LENGTH),
    (("mi", "mile", "miles"), 63_360 * INCH, LENGTH),
    (("nmi",), Fraction(1852), LENGTH),
    (("ly", "light-year", "light-years", "lightyears"), Fraction(9_460_730_472_580_800), LENGTH),
    (("AU", "au"), Fraction(149_597_870_700), LENGTH),
    (("ha", "hectare", "hectares"), Fraction(10_000), AREA),
    (("acre", "acres"), 43_560 * 144 * INCH**2, AREA),
    (("l",), Fraction(1, 1000), VOLUME),
    (("ml", "cc"), Fraction(1, 10**6), VOLUME),
    (("gal", "gallon", "gallons"), GALLON, VOLUME),
    (("qt", "quart", "quarts"), GALLON / 4, VOLUME),
    (("pt", "pint", "pints"), GALLON / 8, VOLUME),
    (("cup", "cups"), GALLON / 16, VOLUME),
    (("floz",), GALLON / 128, VOLUME),
    (("lb", "lbs", "pound", "pounds"), POUND, MASS),
    (("oz", "ounce", "ounces"), POUND / 16, MASS),
    (("kilo", "kilos"), Fraction(1), MASS),
    (("t", "tonne", "tonnes", "metric ton", "metric tons"), Fraction(1000), MASS),
    (("lbf",), POUND * Fraction(980665, 100_000), FORCE),
    (("min", "mins", "minute", "minutes"), Fraction(60), TIME),
    (("h", "hr", "hrs", "hour", "hours"), Fraction(3600), TIME),
    (("sec", "secs"), Fraction(1), TIME),
    (("day", "days"), Fraction(86_400), TIME),
    (("week", "weeks"), Fraction(604_800), TIME),
    # A month and a year have no fixed number of days.
    (("month", "months"), Fraction(1), _dimension(month=1)),
    (("yr", "yrs", "year", "years"), Fraction(12), _dimension(month=1)),
    (("kn", "knot", "knots"), Fraction(1852, 3600), SPEED),
    (("mph",), Fraction(63_360 * INCH / 3600), SPEED),
    (("kmh", "kph"), Fraction(1000, 3600), SPEED),
    (("atm",), Fraction(101_325), PRESSURE),
    (("bar",), Fraction(100_000), PRESSURE),
    (("mbar",), Fraction(100), PRESSURE),
    (("psi",), POUND * Fraction(980665, 100_000) / INCH**2, PRESSURE),
    (("torr", "Torr"), Fraction(101_325, 760), PRESSURE),
    (("mmHg",), Fraction(133_322_387_415, 10**9), PRESSURE),
    (("angstrom", "angstroms"), Fraction(1, 10**10), LENGTH),
    (("dyn", "dyne", "dynes"), Fraction(1, 10**5), FORCE),
    (("erg", "ergs"), Fraction(1, 10**7), ENERGY),
    (("kWh",), Fraction(3_600_000), ENERGY),
    (("Wh",), Fraction(3600), ENERGY),
    (("hp",), Fraction("745.69987158227022"), POWER),
    (("Wb", "weber"), Fraction(1), _dimension(A=-1, kg=1, m=2, s=-2)),
    (("Bq", "becquerel", "becquerels"), Fraction(1), _dimension(becquerel=1)),
    (("cd", "candela"), Fraction(1), _dimension(cd=1)),
    (("K", "kelvin", "kelvins"), Fraction(1), _dimension(K=1)),
    (("$", "USD", "dollar", "dollars", "\\$"), Fraction(1), _dimension(USD=1)),
    (("cent", "cents", "\u00a2"), Fraction(1, 100), _dimension(USD=1)),
    (("\u20ac", "EUR", "euro", "euros"), Fraction(1), _dimension(EUR=1)),
    (("\u00a3", "GBP"), Fraction(1), _dimension(GBP=1)),
    (("\u00a5", "JPY", "yen"), Fraction(1), _dimension(JPY=1)),
    (("\u20b9", "INR", "rupee", "rupees"), Fraction(1), _dimension(INR=1)),
    (("%", "percent", "pct", "percentage", "\\%"), Fraction(1, 100), NONE),
    (("unit", "units"), Fraction(1), NONE),
    (("rad", "radian", "radians"), Fraction(1), NONE),
    (("ppm",), Fraction(1, 10**6), NONE),
    (("ppb",), Fraction(1, 10**9), NONE),
    (("dozen",), Fraction(12), NONE),
)

TURNING: tuple[tuple[tuple[str, ...], Fraction, Dimension], ...] = (
    (("deg", "degree", "degrees", "\u00b0"), Fraction(1, 180), NONE),
    (("arcmin",), Fraction(1, 10_800), NONE),
    (("arcsec",), Fraction(1, 648_000), NONE),
    (("rev", "revolution", "revolutions"), Fraction(2), NONE),
    (("rpm",), Fraction(2, 60), _dimension(s=-1)),
)


def _entries() -> Iterator[tuple[str, Unit]]:
    for symbol, words, factor, dimension, prefixes in PREFIXED:
        for name in (symbol, *words):
            yield name, Unit(factor, dimension)
        for prefix in prefixes:
            size, spoken = PREFIXES[prefix]
            spelled = ("\u00b5", "\u03bc", "u") if prefix == "\u00b5" else (prefix,)
            for letter in spelled:
                yield letter + symbol, Unit(size * factor, dimension)
            for word in words:
                yield spoken + word, Unit(size * factor, dimension)
    for names, factor, dimension in PLAIN:
        for name in names:
            yield name, Unit(factor, dimension)
    for names, factor, dimension in TURNING:
        for name in names:
            yield name, Unit(factor, dimension, turns=True)
    for name in ("degC", "celsius", "Celsius"):
        yield name, Unit(Fraction(1), _dimension(K=1), offset=Fraction("273.15"))
    for name in ("degF", "fahrenheit", "Fahrenheit"):
        yield name, Unit(Fraction(5, 9), _dimension(K=1), offset=Fraction("459.67") * Fraction(5, 9))


UNITS: Mapping[str, Unit] = dict(_entries())
UNIT_NAMES: frozenset[str] = frozenset(UNITS)
"""Spellings of all atomic units, case-sensitive."""


@dataclass(frozen=True, slots=True)
class UnitMeasure:
    """A number in base units, with its dimension."""

    of: Expression
    dimension: Dimension


TURNED = frozenset({"rad", "radian", "radians", *(name for names, _, _ in TURNING for name in names)})


def rates_differ(one: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...]) -> bool:
    """True if one unit counts oscillations (Hz) and the other an angle, though both have the dimension 1/s. 1 Hz is 2
    pi rad/s."""
    first, second = ({name for name, _ in unit} for unit in (one, other))
    return any(
        any(name.endswith(("Hz", "hertz")) for name in a) and not TURNED.isdisjoint(b)
        for a, b in ((first, second), (second, first))
    )


class UnitError(ValueError):
    """Unit that is unknown, or a temperature scale inside a product."""


@cache
def combined(unit: tuple[tuple[str, int], ...]) -> tuple[Fraction, int, Dimension]:
    """Converts a unit, a product of named units with powers, to base units. Returns (factor, power of pi, dimension).
    Raises UnitError for an unknown unit or a temperature scale."""
    factor, turns = Fraction(1), 0
    powers: dict[str, int] = {}
    for name, power in unit:
        known = UNITS.get(name)
        if known is None or abs(power) > MAX_POWER:
            raise UnitError(f"{name!r} is not a known unit")
        if known.offset is not None:
            raise UnitError(f"{name!r} is a point on a scale: it converts only alone")
        factor *= known.factor**power
        turns += power if known.turns else 0
        for base, exponent in known.dimension:
            powers[base] = powers.get(base, 0) + exponent * power
    return factor, turns, tuple(sorted((base, exponent) for base, exponent in powers.items() if exponent))


def measure(of: Expression, unit: tuple[tuple[str, int], ...]) -> UnitMeasure:
    """Converts a number with a unit to base units. Raises UnitError for an unknown unit or a temperature scale in a
    product."""
    if len(unit) == 1 and unit[0][1] == 1 and unit[0][0] in UNITS:
        known = UNITS[unit[0][0]]
        if known.offset is not None:
            kelvin = Sum((Product((of, Number(known.factor))), Number(known.offset)))
            return UnitMeasure(kelvin, known.dimension)
    factor, turns, dimension = combined(unit)
    value: Expression = of if factor == 1 else Product((of, Number(factor)))
    for _ in range(abs(turns)):
        value = Product((value, Constant("pi"))) if turns > 0 else Quotient(value, Constant("pi"))
    return UnitMeasure(value, dimension)


def in_unit(of: Expression, unit: tuple[tuple[str, int], ...]) -> Expression:
    """Converts a value from base units to a given unit of its dimension. Raises UnitError for an unknown unit."""
    nothing, one = (measure(number(count), unit).of for count in (0, 1))
    return Quotient(minus(of, nothing), minus(one, nothing))


def named(dimension: Dimension) -> str:
    """Formats a physical dimension in base units, such as `kg*m*s^-2`; `no unit` for a pure number."""
    return "*".join(base if power == 1 else f"{base}^{power}" for base, power in dimension) or "no unit"
