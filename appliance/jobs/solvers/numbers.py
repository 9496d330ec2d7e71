"""Answers to predicates: small integers and fractions are tried in turn, then SymPy solves the equations.

The predicate says what the answer has to fulfil and not what it is, so a solver may read it; an expected answer it
never sees.
"""

from __future__ import annotations

from collections.abc import Iterator

from appliance.jobs.solvers.proposal import Bench, Proposal, lines_of
from verifiers.spec import PredicateSpec

SECONDS = 8.0
SEARCH = """
import math, time
from fractions import Fraction
predicate, name, domain = {predicate!r}, {name!r}, {domain!r}
text = predicate.replace('^', '**')
known = {{n: getattr(math, n) for n in ('sqrt', 'sin', 'cos', 'tan', 'exp', 'log', 'pi', 'e', 'floor', 'ceil',
         'factorial', 'gcd')}}
known.update(abs=abs, min=min, max=max, mod=lambda a, b: a % b, Mod=lambda a, b: a % b, binomial=math.comb)
rule = compile(text, 'predicate', 'eval')
found, until = 0, time.monotonic() + {seconds} - 1.0
def values():
    for n in range(200001):
        yield n
        if n:
            yield -n
        if n in (200, 2000) and domain != 'integer':
            for b in range(2, 61 if n == 200 else 2):
                for a in range(1, 400):
                    if math.gcd(a, b) == 1:
                        yield Fraction(a, b)
                        yield Fraction(-a, b)
for value in values():
    if found >= 3 or time.monotonic() > until:
        break
    try:
        fits = eval(rule, {{'__builtins__': {{}}}}, dict(known, **{{name: value}})) is True
    except (ArithmeticError, ValueError, TypeError, NameError):
        continue
    if fits:
        print(value, flush=True)
        found += 1
"""
SOLVE = """
import sympy
from sympy.parsing.sympy_parser import convert_xor, implicit_multiplication, parse_expr, standard_transformations
x = sympy.Symbol({name!r}, {assumption})
ways = standard_transformations + (convert_xor, implicit_multiplication)
for part in {predicate!r}.split(' and '):
    left, sign, right = part.strip('() ').partition('==')
    if sign:
        equal = sympy.Eq(*(parse_expr(side, {{{name!r}: x}}, transformations=ways) for side in (left, right)))
        for root in sympy.solve(equal, x)[:6]:
            print(str(sympy.radsimp(root)).replace('**', '^'))
"""
ASSUMPTIONS = {"integer": "integer=True", "rational": "rational=True", "real": "real=True", "complex": "complex=True"}


def proposals(spec: PredicateSpec, bench: Bench) -> Iterator[Proposal]:
    facts = {"predicate": spec.predicate, "name": spec.variable}
    search = SEARCH.format(**facts, domain=spec.domain, seconds=SECONDS)
    yield from lines_of(bench.run(search, seconds=SECONDS), "enumeration of numbers")
    solve = SOLVE.format(**facts, assumption=ASSUMPTIONS[spec.domain])
    yield from lines_of(bench.run(solve, seconds=SECONDS), "SymPy's solve")
