"""Table of the constructs of answers. A new construct is one function and one row here.

Beyond the plain language: every single letter is a symbol, Greek and decorated letters, subscripts and primes as parts
of a symbol's name, degrees, units, mixed numbers with a blank, values of unknown functions, definite integrals, sums,
products, limits, matrices, sets, intervals, equations, congruences, ratios and cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifiers.answers.grammar.nodes import Expression
from verifiers.answers.grammar.reader import Language, Reader
from verifiers.answers.grammar.reading import atoms, calculus, matrices, money, names, quantities, sets
from verifiers.answers.grammar.reading.congruences import congruence
from verifiers.answers.grammar.reading.factors import beside
from verifiers.answers.grammar.reading.items import item, member, operand
from verifiers.answers.grammar.reading.piecewise import cases
from verifiers.answers.grammar.reading.plain import ATOMS as PLAIN_ATOMS
from verifiers.answers.grammar.reading.relations import RELATIONS, ratio, related
from verifiers.answers.grammar.values import Value
from verifiers.answers.grammar.vocabulary import CONSTANTS, ENVIRONMENTS, EXTENDED, OF_MATRICES, WIDE_BARE

ATOMS: Mapping[str, Callable[[Reader], Expression]] = {
    **PLAIN_ATOMS,
    "symbol": names.symbol,
    "text": names.upright,
    "{": Reader.braced,
    "\\frac": atoms.rate_or_fraction,
    "\\surd": atoms.unbraced_root,
    "\\infty": atoms.infinity,
    "\\group": atoms.group,
    "\\conj": atoms.conjugate,
    "\\angle": atoms.angle,
    "\\int": calculus.integral,
    "\\sum": calculus.repeated,
    "\\prod": calculus.repeated,
    "\\lim": calculus.limit,
    "\\begin{vmatrix}": matrices.determinant,
    **dict.fromkeys((f"\\of {name}" for name in set(OF_MATRICES.values())), matrices.of_letter),
}
VALUES: Mapping[str, Callable[[Reader], Value | None]] = {
    "based": quantities.base_number,
    "unit": money.money,
    "(": sets.round_bracket,
    "[": sets.square_bracket,
    "]": sets.square_bracket,
    "\\langle": sets.angle_bracket,
    "{": sets.braces,
    "\\{": sets.braces,
    "\\emptyset": sets.empty_set,
    **dict.fromkeys((f"\\mathbb{name}" for name in "NZQRC"), sets.number_set),
    **dict.fromkeys((f"\\begin{{{name}}}" for name in ENVIRONMENTS if name != "vmatrix"), matrices.matrix),
    "\\begin{cases}": cases,
}
INFIXES: Mapping[str, Callable[[Reader, Value], Value]] = {
    **dict.fromkeys(RELATIONS, related),
    "\\in": member,
    "\\equiv": congruence,
    ":": ratio,
}
ANSWERS = Language(
    atoms=ATOMS,
    factor_signs=frozenset(ATOMS) - {"|", "{", "\\infty", "\\angle"},
    beside=beside,
    functions=EXTENDED,
    bare=WIDE_BARE,
    constants=CONSTANTS,
    begins_unit=quantities.begins_unit,
    values=VALUES,
    infixes=INFIXES,
    value=operand,
    item=item,
)
