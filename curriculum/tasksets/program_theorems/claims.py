"""Equations on generated programs: true ones with a proof, false ones with a counterexample.

Invariants: both sides of a true equation are made from one normal form by reversed steps, and rewritten back by its
proof. A false one differs on ground values, computed by the definitions alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from curriculum.tasksets.program_theorems.programs import TOPICS, theory_of
from curriculum.tasksets.program_theorems.terms import (
    Rewriting,
    Rule,
    Term,
    UnprovenError,
    matched,
    places,
    replaced,
    size,
    substituted,
    variables_of,
)
from curriculum.tasksets.program_theorems.theory import SORTS, LeanText, Proof, Theory

LEMMAS = ((1, 2), (2, 3), (3, 4), (5, 6), (7, 99))
"""Fewest and most lemmas of the reference proof, by level."""
VARIABLES = {"N": ("x", "y"), "L": ("a", "b"), "T": ("t",), "E": ("g",), "P": ("p",)}
MOST_SIZE = 16
"""Most symbols and variables of one side."""
ATTEMPTS, TRIALS, VALUES = 400, 40, 30
NAMES = """bim cob dax fep gor hul jev kiv lop muz nad pel quo rif sog tav vun wex yab zil bron clem drup flin grat
klod prem skib smol spen stog swil thub trov vask vrin blen crof dwel frim glon plim"""
"""Words that mean nothing, from which types, constructors and functions get their names."""


@dataclass(frozen=True)
class Equation:
    theory: Theory
    rule: Rule
    proof: Proof | None
    """Proof of the equation; none if it is false."""
    values: Mapping[str, Term]
    """Values of the variables for which a false equation fails."""


def true_claim(topic: str, level: int, rng: Random) -> Equation:
    """Makes a true equation whose reference proof has as many lemmas as the level wants."""
    least, most = LEMMAS[level]
    for _ in range(ATTEMPTS):
        theory = theory_of(TOPICS[topic](rng))
        for _ in range(TRIALS):
            with suppress(UnprovenError):
                proof = _composed(theory, most, rng)
                if proof.used and least <= len(theory.needed(proof.used)) <= most:
                    return Equation(theory, proof.rule, proof, {})
    raise AssertionError(f"{topic}: no equation of level {level} in {ATTEMPTS} theories")


def false_claim(topic: str, level: int, rng: Random) -> Equation:
    """Makes a false equation by changing one side of a true one."""
    for _ in range(ATTEMPTS):
        true = true_claim(topic, level, rng)
        theory, rule = true.theory, true.rule
        inner = [(path, part) for path, part in places(rule.right) if path]
        path, part = rng.choice(inner or [((), rule.right)])
        names = [name for name in rule.binders if SORTS[name] == theory.sort_of(part)]
        parts = [other for _, other in places(rule.right) if theory.sort_of(other) == theory.sort_of(part)]
        right = replaced(rule.right, path, rng.choice([*names, *parts]))
        changed = Rule(rule.left, right, rule.name, rule.binders)
        if (values := counterexample(theory, changed, rng)) is not None:
            return Equation(theory, changed, None, values)
    raise AssertionError(f"{topic}: no false equation of level {level}")


def counterexample(theory: Theory, rule: Rule, rng: Random) -> dict[str, Term] | None:
    """Returns values for which both sides compute to different results, the smallest of those drawn; None if all
    results are equal."""
    drawn = [{name: ground(theory, SORTS[name], rng, 3) for name in rule.binders} for _ in range(VALUES)]
    for values in sorted(drawn, key=lambda values: sum(map(size, values.values()))):
        with suppress(UnprovenError):
            sides = [computed(theory, substituted(side, values)) for side in (rule.left, rule.right)]
            if sides[0] != sides[1]:
                return values
    return None


def computed(theory: Theory, term: Term) -> Term:
    """Returns the value of a ground term by the definitions alone. Raises UnprovenError if that takes too long."""
    steps = Rewriting(theory.definitions).steps(term)
    return steps[-1].after if steps else term


def ground(theory: Theory, sort: str, rng: Random, depth: int) -> Term:
    """Draws a term of constructors."""
    constructors = [one for one in theory.of_sort(sort) if depth > 0 or sort not in one.sorts]
    one = rng.choice(constructors)
    return (one.name, *(ground(theory, part, rng, depth - 1) for part in one.sorts))


def _composed(theory: Theory, most: int, rng: Random) -> Proof:
    """Proves an equation between two terms with one normal form under lemmas that need at most `most` lemmas. Raises
    UnprovenError."""
    lemmas, rewriting = theory.within(most)
    sort = rng.choice(sorted({function.sort for function in theory.functions.values()} - {"E"}))
    start = _term(theory, sort, rng, rng.randint(2, 3))
    steps = rewriting.steps(start)
    normal = steps[-1].after if steps else start
    sides = [_scrambled(lemmas, normal, rng, rng.randint(3, 7)) for _ in range(2)]
    if (
        sides[0] == sides[1]
        or max(map(size, sides)) > MOST_SIZE
        or set(variables_of(sides[1])) != set(variables_of(sides[0]))
    ):
        raise UnprovenError("the sides are equal, too large, or of different variables")
    joined = rewriting.joined(sides[0], sides[1])
    rule = Rule(sides[0], sides[1], "target", tuple(dict.fromkeys((*variables_of(sides[0]), *variables_of(sides[1])))))
    return Proof(rule, ((None, (joined,)),))


def _term(theory: Theory, sort: str, rng: Random, depth: int) -> Term:
    functions = [function for function in theory.functions.values() if function.sort == sort]
    if depth == 0 or not functions or rng.random() < 0.15:
        return rng.choice(VARIABLES[sort])
    function = rng.choice(functions)
    return (function.name, *(_term(theory, part, rng, depth - 1) for part in function.sorts))


def _scrambled(lemmas: Sequence[Rule], term: Term, rng: Random, count: int) -> Term:
    """Applies lemmas from right to left at random places."""
    for _ in range(count):
        found: list[Term] = []
        for path, part in places(term):
            for rule in lemmas:
                values: dict[str, Term] = {}
                if isinstance(rule.right, str) or not matched(rule.right, part, values):
                    continue
                if set(rule.binders) == values.keys():
                    found.append(replaced(term, path, substituted(rule.left, values)))
        if found:
            term = rng.choice(found)
    return term


def renamed(theory: Theory, rng: Random) -> LeanText:
    """Returns Lean text in which all names are drawn."""
    sorts = {one.sort for one in theory.constructors.values()}
    symbols = [*sorted(sorts), *theory.constructors, *theory.functions]
    words = rng.sample(NAMES.split(), len(symbols))
    names = {name: word.capitalize() if name in sorts else word for name, word in zip(symbols, words, strict=True)}
    return LeanText(theory, names)


def same(theory: Theory) -> LeanText:
    """Returns Lean text with a theory's own names."""
    sorts = {one.sort for one in theory.constructors.values()}
    return LeanText(theory, {name: name for name in (*sorts, *theory.constructors, *theory.functions)})
