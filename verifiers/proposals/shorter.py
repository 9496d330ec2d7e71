"""Terms that agree with a claim's reference on samples: candidates for another way to write it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random

from verifiers.proposals.terms import MOST_SIZE, Small, operators_on, plain, small_terms, values_on, zero
from verifiers.smt.bench import Bench, Possible
from verifiers.smt.language.operators import coerced
from verifiers.smt.language.render import name_text
from verifiers.smt.language.terms import BOOL, INT, REAL, Function, Sort, Term, walk
from verifiers.smt.language.values import Interpretation, Value
from verifiers.smt.problem import SmtProblem

SAMPLES = 24
TRIES = 4_000


def shorter_terms(asked: SmtProblem, more_time: Callable[[], bool]) -> tuple[str, ...]:
    """Returns a shortest term that Z3 proves equal to the reference, or nothing. Raises ClaimError."""
    spec, claim = asked.spec, asked.claim
    reference = claim.names.definitions[spec.reference]
    wanted = coerced(claim.terms, claim.elaborator.term(reference.body), reference.range)
    inputs = [each for each in claim.declared if not each.domain]
    domain = [each.term for each in claim.assertions]
    bench = Bench(spec.effort, "none")
    samples = _samples(inputs, domain, bench)
    literals = {each for each in walk([wanted, *domain]) if each.op == "value"}
    sorts = dict.fromkeys([wanted.sort, *(each.range for each in inputs)])
    leaves = [Small(name_text(each.name), claim.terms.make("apply", (), each.range, each)) for each in inputs]
    leaves += [Small(plain(each.payload, each.sort), each) for each in sorted(literals, key=lambda one: one.number)]
    for sort in sorts:
        leaves += [Small(plain(value, sort), claim.terms.literal(value, sort)) for value in _usual(sort)]
    operators = operators_on([*sorts, BOOL], spec.allowed, spec.forbidden)
    most = min(spec.max_size or MOST_SIZE, MOST_SIZE)
    while more_time() and (goal := values_on(wanted, samples)) is not None and samples:
        key = (wanted.sort, *goal)
        for small, values in small_terms(claim.terms, leaves, operators, samples, more_time, most, key):
            if (small.term.sort, *values) != key or (small.term is wanted and spec.copies == "refused"):
                continue
            same = claim.terms.make("=", (small.term, wanted), BOOL)
            finding = bench.look([*domain, claim.terms.negation(same)])
            if finding.possible is Possible.NO:
                return (small.text,)
            if finding.possible is Possible.YES:
                # The counterexample becomes a sample, and the search restarts (counterexample-guided synthesis).
                samples.append({each: finding.interpretation.get(each, zero(each.range)) for each in inputs})
                break
        else:
            return ()
    return ()


def _usual(sort: Sort) -> list[int]:
    if sort in (INT, REAL):
        return [0, 1, 2]
    return list(dict.fromkeys([0, 1, (1 << sort.width) - 1])) if sort.name == "BitVec" else []


def _samples(inputs: list[Function], domain: list[Term], bench: Bench) -> list[Interpretation]:
    """Returns inputs for which the assertions hold: random ones with many small numbers, and a model of Z3's."""
    random = Random(0)
    found: list[Interpretation] = []
    if domain:
        finding = bench.look(domain)
        if finding.possible is Possible.YES and all(each in finding.interpretation for each in inputs):
            found.append(finding.interpretation)
    for _ in range(TRIES):
        if len(found) >= SAMPLES:
            break
        sample: Interpretation = {each: some_value(each.range, random) for each in inputs}
        if all(values_on(term, [sample]) == (True,) for term in domain):
            found.append(sample)
    return found


def some_value(sort: Sort, random: Random) -> Value:
    """Returns a random value of an SMT sort, often a small or unusual one."""
    match sort.name:
        case "Bool":
            return random.random() < 0.5
        case "BitVec":
            return random.choice([0, 1, (1 << sort.width) - 1, 1 << (sort.width - 1), random.getrandbits(sort.width)])
        case "Real":
            return Fraction(random.randint(-20, 20), random.choice([1, 1, 2, 3, 7]))
        case _:
            return random.choice([random.randint(-8, 8), random.randint(-1000, 1000)])
