"""First-order terms, and normal forms under rewriting rules.

A term is a variable (a string) or a tuple of a symbol and its arguments. A rule rewrites left to right; one whose sides
match each other, such as commutativity, rewrites only towards smaller terms (ordered rewriting: Baader and Nipkow, Term
Rewriting and All That, 1998).

Invariant: each step of a rewriting is one instance of one rule at one place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Term = str | tuple[Any, ...]
"""Variable, or `(symbol, *arguments)`."""
Path = tuple[int, ...]
MOST_STEPS = 200
MOST_SIZE = 300


class UnprovenError(Exception):
    """The sides have different normal forms, or no normal form within the limits."""


def parsed(text: str, variables: Collection[str]) -> Term:
    """Reads a term such as `f (g x) y`; names that are not variables are symbols."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()

    def group() -> Term:
        parts: list[Term] = []
        while words and (word := words.pop(0)) != ")":
            parts.append(group() if word == "(" else word if word in variables else (word,))
        head, *arguments = parts
        return (*head, *arguments) if arguments else head

    return group()


def size(term: Term) -> int:
    return 1 if isinstance(term, str) else 1 + sum(map(size, term[1:]))


def variables_of(term: Term) -> list[str]:
    """Returns the variables in the order in which they first occur."""
    if isinstance(term, str):
        return [term]
    return list(dict.fromkeys(name for part in term[1:] for name in variables_of(part)))


def symbols_of(term: Term) -> set[str]:
    return set() if isinstance(term, str) else {term[0]}.union(*map(symbols_of, term[1:]))


def substituted(term: Term, values: Mapping[str, Term]) -> Term:
    if isinstance(term, str):
        return values.get(term, term)
    return (term[0], *(substituted(part, values) for part in term[1:]))


def matched(pattern: Term, term: Term, values: dict[str, Term]) -> bool:
    """True if the term is an instance of the pattern; adds the values of its variables to `values`, which hold before
    too."""
    if isinstance(pattern, str):
        return values.setdefault(pattern, term) == term
    if isinstance(term, str) or term[0] != pattern[0] or len(term) != len(pattern):
        return False
    return all(matched(one, other, values) for one, other in zip(pattern[1:], term[1:], strict=True))


def smaller(one: Term, other: Term) -> bool:
    """True if `one` comes before `other` in a total order: by size, then symbol, then arguments."""
    if size(one) != size(other):
        return size(one) < size(other)
    heads = [term if isinstance(term, str) else str(term[0]) for term in (one, other)]
    if heads[0] != heads[1] or isinstance(one, str) or isinstance(other, str):
        return heads[0] < heads[1]
    pairs = zip(one[1:], other[1:], strict=True)
    return next((smaller(left, right) for left, right in pairs if left != right), False)


def places(term: Term, path: Path = ()) -> Iterator[tuple[Path, Term]]:
    """Yields every subterm with its path, innermost first."""
    if not isinstance(term, str):
        for at, part in enumerate(term[1:], 1):
            yield from places(part, (*path, at))
    yield path, term


def replaced(term: Term, path: Path, new: Term) -> Term:
    if not path:
        return new
    assert not isinstance(term, str)
    return (*term[: path[0]], replaced(term[path[0]], path[1:], new), *term[path[0] + 1 :])


@dataclass(frozen=True)
class Rule:
    """Equation `left = right`: a definition if it has no name, else a lemma that takes the binders in their order."""

    left: Term
    right: Term
    name: str = ""
    binders: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    """Variables that stand for themselves alone, as in an induction hypothesis."""

    @cached_property
    def ordered(self) -> bool:
        """True if each side is an instance of the other, so that the rule could be applied forever."""
        return matched(self.left, self.right, {}) and matched(self.right, self.left, {})

    def instance(self, term: Term) -> dict[str, Term] | None:
        """Returns the values for which the left side is the term, or None if the rule does not apply."""
        values: dict[str, Term] = {name: name for name in self.fixed}
        if not matched(self.left, term, values):
            return None
        if not self.ordered:
            return values
        new = substituted(self.right, values)
        return values if (new != term if self.fixed else smaller(new, term)) else None


@dataclass(frozen=True)
class RewritingStep:
    rule: Rule
    before: Term
    path: Path
    values: Mapping[str, Term]

    @property
    def after(self) -> Term:
        return replaced(self.before, self.path, substituted(self.rule.right, self.values))


@dataclass
class Rewriting:
    """Normal forms under rules, which are tried in their order at the innermost places first."""

    rules: Sequence[Rule]
    _by_head: dict[str, list[Rule]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule in self.rules:
            assert not isinstance(rule.left, str)
            self._by_head.setdefault(rule.left[0], []).append(rule)

    def steps(self, term: Term) -> list[RewritingStep]:
        """Returns the steps to the term's normal form. Raises UnprovenError beyond the limits."""
        steps: list[RewritingStep] = []
        while (step := self._step(term)) is not None:
            steps.append(step)
            term = step.after
            if len(steps) > MOST_STEPS or size(term) > MOST_SIZE:
                raise UnprovenError(f"no normal form within {MOST_STEPS} steps of size {MOST_SIZE}")
        return steps

    def _step(self, term: Term) -> RewritingStep | None:
        for path, part in places(term):
            for rule in () if isinstance(part, str) else self._by_head.get(part[0], ()):
                if (values := rule.instance(part)) is not None:
                    return RewritingStep(rule, term, path, values)
        return None

    def joined(self, left: Term, right: Term) -> tuple[list[RewritingStep], list[RewritingStep]]:
        """Returns the steps from both sides to their common normal form. Raises UnprovenError if they have none."""
        both = self.steps(left), self.steps(right)
        ends = [steps[-1].after if steps else term for steps, term in zip(both, (left, right), strict=True)]
        if ends[0] != ends[1]:
            raise UnprovenError(f"{ends[0]} and {ends[1]} differ")
        return both
