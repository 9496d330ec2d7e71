"""Functional programs with the lemmas that hold for them, and Lean text for both.

A theory is written as lines:

    type L = e | c N L                    a data type with its constructors
    app : L L -> L                        a function, defined by its equations
    app (c x a) b = c x (app a b)
    lemma app_e : app a e = a             by the rules so far, or by induction on the first variable
    lemma left : f x y = g x = f y x      the same, over terms in between

Invariants: a lemma is proven from definitions, its induction hypotheses and lemmas above it, or the theory is refused;
a function recurs on parts of its first argument, so Lean accepts it as structural recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from curriculum.tasksets.program_theorems.terms import (
    Rewriting,
    RewritingStep,
    Rule,
    Term,
    UnprovenError,
    parsed,
    replaced,
    substituted,
    symbols_of,
    variables_of,
)

SORTS = {
    **dict.fromkeys(("x", "y", "n", "m", "w", "x1", "x2", "x3"), "N"),
    **dict.fromkeys(("a", "b", "d", "a1", "a2", "a3"), "L"),
    **dict.fromkeys(("t", "u", "t1", "t2", "t3"), "T"),
    **dict.fromkeys(("p", "q", "r", "p1", "p2", "p3"), "P"),
    **dict.fromkeys(("g", "h", "g1", "g2", "g3"), "E"),
}
"""Sorts of the variables, by name. Those with numbers are arguments of constructors in proofs."""
FRESH = {"N": "x", "L": "a", "T": "t", "P": "p", "E": "g"}
HOLE = "hole"


@dataclass(frozen=True)
class Constructor:
    name: str
    sorts: tuple[str, ...]
    sort: str


@dataclass(frozen=True)
class DefinedFunction:
    name: str
    sorts: tuple[str, ...]
    sort: str
    equations: tuple[tuple[Term, Term], ...]


Chain = tuple[tuple[list[RewritingStep], list[RewritingStep]], ...]


@dataclass(frozen=True)
class Proof:
    """Steps from both sides of an equation to a common term. There are several equations in a chain, and a chain for
    each case of an induction."""

    rule: Rule
    cases: tuple[tuple[Constructor | None, Chain], ...]

    @property
    def used(self) -> frozenset[str]:
        """Names of the lemmas that the proof uses directly."""
        return frozenset(step.rule.name for step in self.steps if step.rule.name and not step.rule.fixed)

    @property
    def steps(self) -> list[RewritingStep]:
        return [step for _, chain in self.cases for link in chain for step in (*link[0], *link[1])]


@dataclass
class Theory:
    constructors: dict[str, Constructor] = field(default_factory=dict)
    functions: dict[str, DefinedFunction] = field(default_factory=dict)
    proofs: dict[str, Proof] = field(default_factory=dict)
    _within: dict[int, tuple[list[Rule], Rewriting]] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Theory:
        """Reads a theory and proves its lemmas. Raises UnprovenError."""
        theory = cls()
        for line in filter(None, map(str.strip, text.splitlines())):
            if line.startswith("type "):
                theory._type(*line.removeprefix("type ").split(" = "))
            elif line.startswith("lemma "):
                name, said = line.removeprefix("lemma ").split(" : ", 1)
                theory.proofs[name] = theory.proven(name, *(parsed(side, SORTS) for side in said.split(" = ")))
            elif " : " in line:
                name, said = line.split(" : ")
                *sorts, sort = said.replace("->", " ").split()
                theory.functions[name] = DefinedFunction(name, tuple(sorts), sort, ())
            else:
                left, right = (parsed(side, SORTS) for side in line.split(" = "))
                assert not isinstance(left, str)
                of = theory.functions[left[0]]
                theory.functions[of.name] = DefinedFunction(of.name, of.sorts, of.sort, (*of.equations, (left, right)))
        return theory

    def _type(self, sort: str, constructors: str) -> None:
        for said in constructors.split(" | "):
            name, *sorts = said.split()
            self.constructors[name] = Constructor(name, tuple(sorts), sort)

    @property
    def definitions(self) -> list[Rule]:
        return [Rule(left, right) for function in self.functions.values() for left, right in function.equations]

    @property
    def lemmas(self) -> list[Rule]:
        return [proof.rule for proof in self.proofs.values()]

    def within(self, most: int) -> tuple[list[Rule], Rewriting]:
        """Returns the lemmas whose proofs need at most `most` lemmas, themselves included, and normal forms under them
        and all definitions. The theory must have been read."""
        if most not in self._within:
            lemmas = [proof.rule for name, proof in self.proofs.items() if len(self.needed([name])) <= most]
            self._within[most] = (lemmas, Rewriting([*self.definitions, *lemmas]))
        return self._within[most]

    def of_sort(self, sort: str) -> list[Constructor]:
        return [one for one in self.constructors.values() if one.sort == sort]

    def proven(self, name: str, *terms: Term) -> Proof:
        """Proves that the first term equals the last, over those in between, by the rules so far or by induction on
        the first variable. Raises UnprovenError."""
        rules = [*self.definitions, *self.lemmas]
        left, right = terms[0], terms[-1]
        binders = tuple(dict.fromkeys((*variables_of(left), *variables_of(right))))
        rule = Rule(left, right, name, binders)
        try:
            return Proof(rule, ((None, _chain(rules, terms)),))
        except UnprovenError:
            if not binders:
                raise
        cases = []
        for constructor in self.of_sort(SORTS[binders[0]]):
            hypotheses = []
            for ih, part in recursive_parts(constructor):
                own = {binders[0]: part}
                hypotheses.append(Rule(substituted(left, own), substituted(right, own), ih, binders[1:], (part,)))
            values = {binders[0]: (constructor.name, *arguments(constructor))}
            chain = _chain([*self.definitions, *hypotheses, *self.lemmas], [substituted(one, values) for one in terms])
            cases.append((constructor, chain))
        return Proof(rule, tuple(cases))

    def needed(self, names: Iterable[str]) -> list[str]:
        """Returns lemmas with all those that their proofs use, in the order in which they are proven."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.proofs[name].used
        return [name for name in self.proofs if name in found]

    def reached(self, terms: Iterable[Term]) -> list[DefinedFunction]:
        """Returns the functions of the terms with all those that their definitions use, in the order of definition."""
        found: set[str] = set()
        waiting = [name for term in terms for name in symbols_of(term)]
        while waiting:
            name = waiting.pop()
            if name in self.functions and name not in found:
                found.add(name)
                waiting += [name for _, right in self.functions[name].equations for name in symbols_of(right)]
        return [function for name, function in self.functions.items() if name in found]

    def sort_of(self, term: Term) -> str:
        if isinstance(term, str):
            return SORTS[term]
        return self.functions[term[0]].sort if term[0] in self.functions else self.constructors[term[0]].sort


def _chain(rules: Sequence[Rule], terms: Sequence[Term]) -> Chain:
    return tuple(_link(rules, one, other) for one, other in pairwise(terms))


def _link(rules: Sequence[Rule], one: Term, other: Term) -> tuple[list[RewritingStep], list[RewritingStep]]:
    """Joins two terms by all rules, or by one of them. Raises UnprovenError."""
    try:
        return Rewriting(rules).joined(one, other)
    except UnprovenError:
        for rule in rules:
            with suppress(UnprovenError):
                return Rewriting([rule]).joined(one, other)
        raise


def arguments(constructor: Constructor) -> tuple[str, ...]:
    """Returns variables for a constructor's arguments in a proof."""
    return tuple(f"{FRESH[sort]}{at}" for at, sort in enumerate(constructor.sorts, 1))


def recursive_parts(constructor: Constructor) -> list[tuple[str, str]]:
    """Returns an induction hypothesis's name with its argument, for each argument of the constructor's own sort."""
    pairs = zip(arguments(constructor), constructor.sorts, strict=True)
    return [(f"ih{at}", part) for at, (part, sort) in enumerate(pairs, 1) if sort == constructor.sort]


@dataclass(frozen=True)
class LeanText:
    """Lean text of a theory's parts. `names` renames data types, constructors and functions."""

    theory: Theory
    names: Mapping[str, str]

    def term(self, term: Term, *, inner: bool = False) -> str:
        if isinstance(term, str):
            return term
        symbol = term[0]
        head = self.names[symbol]
        if symbol in self.theory.constructors:
            head = f"{self.names[self.theory.constructors[symbol].sort]}.{head}"
        text = " ".join((head, *(self.term(part, inner=True) for part in term[1:])))
        return f"({text})" if inner and len(term) > 1 else text

    def types(self, used: Iterable[str]) -> list[str]:
        """Returns the declarations of data types, those that others contain first."""
        lines = []
        for sort in used:
            said = [
                f"  | {self.names[one.name]} : {' → '.join(self.names[part] for part in (*one.sorts, sort))}"
                for one in self.theory.of_sort(sort)
            ]
            lines.append("\n".join((f"inductive {self.names[sort]} where", *said)))
        return lines

    def definition(self, function: DefinedFunction) -> str:
        said = []
        for left, right in function.equations:
            unused = dict.fromkeys(set(variables_of(left)) - set(variables_of(right)), "_")
            shown = ", ".join(self.term(substituted(part, unused)) for part in left[1:])
            said.append(f"  | {shown} => {self.term(right)}")
        kind = " → ".join(self.names[sort] for sort in (*function.sorts, function.sort))
        return "\n".join((f"def {self.names[function.name]} : {kind}", *said))

    def statement(self, rule: Rule) -> str:
        binders = " ".join(f"({name} : {self.names[SORTS[name]]})" for name in rule.binders)
        return f"{'∀ ' + binders + ', ' if binders else ''}{self.term(rule.left)} = {self.term(rule.right)}"

    def theorem(self, proof: Proof, name: str) -> str:
        """Returns a theorem with its proof; lemmas that it uses are named as in the theory."""
        head = f"theorem {name} : {self.statement(proof.rule)} := by"
        first, *rest = proof.rule.binders or ("",)
        others = f"intro {' '.join(rest)}" if rest else ""
        if proof.cases[0][0] is None:
            intro = f"  intro {' '.join(proof.rule.binders)}\n" if proof.rule.binders else ""
            return f"{head}\n{intro}  exact {self._equal(proof.cases[0][1])}"
        lines = [head, f"  intro {first}", f"  induction {first} with"]
        for constructor, chain in proof.cases:
            assert constructor is not None
            parts = (*arguments(constructor), *(ih for ih, _ in recursive_parts(constructor)))
            lines.append(f"  | {' '.join((self.names[constructor.name], *parts))} =>")
            lines += [f"    {others}"] if others else []
            lines.append(f"    exact {self._equal(chain)}")
        return "\n".join(lines)

    def _equal(self, chain: Chain) -> str:
        """Returns a Lean proof that the first term of a chain equals its last."""
        links: list[str] = []
        for left, right in chain:
            links += [
                said for said in (self._steps(left), f"({self._steps(right)}).symm") if said not in {"", "().symm"}
            ]
        return _joined(links) or "rfl"

    def _steps(self, steps: list[RewritingStep]) -> str:
        links = []
        for step in (step for step in steps if step.rule.name):
            values = (self.term(step.values[name], inner=True) for name in step.rule.binders)
            said = " ".join((step.rule.name, *values))
            if step.path:
                around = self.term(replaced(step.before, step.path, HOLE))
                sides = f"{self.term(step.before)} = {self.term(step.after)}"
                said = f"congrArg (fun {HOLE} => {around}) ({said}) : {sides}"
            links.append(said)
        return _joined(links)


def _joined(links: Sequence[str]) -> str:
    """Chains Lean proofs of equations by transitivity; empty without one."""
    chain = ""
    for link in reversed(links):
        chain = f"({link}).trans ({chain})" if chain else f"({link})" if " : " in link else link
    return chain
