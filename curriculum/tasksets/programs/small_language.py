"""Programs of a small imperative language over integers, written in Python and in three other notations.

Invariants: a program terminates (every loop has a constant number of rounds), no divisor is zero, and all notations of
a program are equivalent. Division rounds down, so a remainder by a positive number is never negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

FUNCTION = "solve"
VARIABLES = "abc"
"""The first two are the arguments; the third starts at 0 and is the result."""
SEMANTICS = "Division rounds down, and a remainder is never negative."

Expression = int | str | tuple[str, "Expression", "Expression"]
"""Number, variable, or operator with two operands."""


@dataclass(frozen=True)
class Put:
    """Statement that assigns a value to a variable."""

    variable: str
    value: Expression


@dataclass(frozen=True)
class Rounds:
    """Statement that repeats a block a constant number of times."""

    count: int
    block: tuple[Statement, ...]


@dataclass(frozen=True)
class Conditional:
    """Statement that runs one block or another, by a comparison."""

    left: Expression
    sign: str
    right: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement = Put | Rounds | Conditional
Block = tuple[Statement, ...]


def drawn_block(size: int, depth: int, rng: Random) -> Block:
    """Draws a program of `size` top-level statements, nested at most `depth` deep. The last one sets the result."""
    statements = [_statement(depth, rng, looped=False) for _ in range(size - 1)]
    return (*statements, Put("c", ("+", ("*", "c", rng.randint(2, 9)), rng.choice("ab"))))


def _statement(depth: int, rng: Random, *, looped: bool) -> Statement:
    if depth and rng.random() < 0.7:
        if rng.random() < 0.5:
            return Rounds(rng.randint(2, 5), tuple(_statement(depth - 1, rng, looped=True) for _ in range(2)))
        divisor = rng.randint(3, 5)
        left: Expression = ("%", rng.choice(VARIABLES), divisor)
        then, otherwise = (tuple(_statement(depth - 1, rng, looped=looped) for _ in range(1)) for _ in range(2))
        return Conditional(left, rng.choice(("<", "==")), rng.randint(1, divisor - 1), then, otherwise)
    one, two = rng.sample(VARIABLES, 2)
    number = rng.randint(2, 9)
    values: tuple[Expression, ...] = (
        ("+", one, number),
        ("-", two, one),
        ("+", one, ("*", two, number)),
        ("+", ("//", ("*", one, number), 2), two),
        ("%", ("+", ("*", one, number), two), rng.randint(30, 99)),
    )
    if looped:  # what grows with each round would have hundreds of digits
        values = tuple(("%", value, rng.randint(101, 999)) for value in values[:3])
    return Put(one, rng.choice(values))


@dataclass(frozen=True)
class Notation:
    """Syntax in which programs of the small language are written."""

    name: str
    expression: Callable[[Expression], str]
    lines: Callable[[Block], Iterator[str]]
    frame: str
    """Template with `{}` for the lines."""

    def text(self, block: Block) -> str:
        return self.frame.format("\n".join(self.lines(block)))


def _infix(value: Expression, *, outer: bool = True) -> str:
    if not isinstance(value, tuple):
        return str(value)
    sign, left, right = value
    text = f"{_infix(left, outer=False)} {sign} {_infix(right, outer=False)}"
    return text if outer else f"({text})"


_WORDS = {"+": "plus", "-": "minus", "*": "times", "//": "divided by", "%": "modulo", "<": "is below", "==": "equals"}


def _spoken(value: Expression, *, outer: bool = True) -> str:
    if not isinstance(value, tuple):
        return str(value)
    sign, left, right = value
    text = f"{_spoken(left, outer=False)} {_WORDS[sign]} {_spoken(right, outer=False)}"
    return text if outer else f"({text})"


_PREFIX = {"//": "div", "%": "mod", "==": "="}


def _prefix(value: Expression) -> str:
    if not isinstance(value, tuple):
        return str(value)
    sign, left, right = value
    return f"({_PREFIX.get(sign, sign)} {_prefix(left)} {_prefix(right)})"


def _braced_expression(value: Expression, *, outer: bool = True) -> str:
    if not isinstance(value, tuple):
        return str(value)
    sign, left, right = value
    if sign == "//":
        return f"floor({_braced_expression(left)} / {_braced_expression(right)})"
    text = f"{_braced_expression(left, outer=False)} {sign} {_braced_expression(right, outer=False)}"
    return text if outer else f"({text})"


def _python(block: Block, indent: str = "    ", depth: int = 0) -> Iterator[str]:
    for one in block:
        match one:
            case Put(variable, value):
                yield f"{indent}{variable} = {_infix(value)}"
            case Rounds(count, inner):
                yield f"{indent}for {'ijkmn'[depth]} in range({count}):"
                yield from _python(inner, indent + "    ", depth + 1)
            case Conditional(left, sign, right, then, otherwise):
                yield f"{indent}if {_infix(left)} {sign} {_infix(right)}:"
                yield from _python(then, indent + "    ", depth)
                yield f"{indent}else:"
                yield from _python(otherwise, indent + "    ", depth)


def _spoken_lines(block: Block, indent: str = "  ") -> Iterator[str]:
    for one in block:
        match one:
            case Put(variable, value):
                yield f"{indent}SET {variable} TO {_spoken(value)}"
            case Rounds(count, inner):
                yield f"{indent}REPEAT {count} TIMES"
                yield from _spoken_lines(inner, indent + "  ")
                yield f"{indent}END"
            case Conditional(left, sign, right, then, otherwise):
                yield f"{indent}IF {_spoken(left)} {_WORDS[sign]} {_spoken(right)} THEN"
                yield from _spoken_lines(then, indent + "  ")
                yield f"{indent}ELSE"
                yield from _spoken_lines(otherwise, indent + "  ")
                yield f"{indent}END"


def _bracketed(block: Block, indent: str = "  ") -> Iterator[str]:
    for one in block:
        match one:
            case Put(variable, value):
                yield f"{indent}(set {variable} {_prefix(value)})"
            case Rounds(count, inner):
                yield f"{indent}(repeat {count}"
                *before, last = _bracketed(inner, indent + "  ")
                yield from before
                yield last + ")"
            case Conditional(left, sign, right, then, otherwise):
                yield f"{indent}(if {_prefix((sign, left, right))}"
                for word, inner, end in (("then", then, ")"), ("else", otherwise, "))")):
                    yield f"{indent}  ({word}"
                    *before, last = _bracketed(inner, indent + "    ")
                    yield from before
                    yield last + end


def _braced(block: Block, indent: str = "  ", depth: int = 0) -> Iterator[str]:
    for one in block:
        match one:
            case Put(variable, value):
                yield f"{indent}{variable} = {_braced_expression(value)};"
            case Rounds(count, inner):
                name = "ijkmn"[depth]
                yield f"{indent}for ({name} = 0; {name} < {count}; {name}++) {{"
                yield from _braced(inner, indent + "  ", depth + 1)
                yield f"{indent}}}"
            case Conditional(left, sign, right, then, otherwise):
                yield f"{indent}if ({_braced_expression(left)} {sign} {_braced_expression(right)}) {{"
                yield from _braced(then, indent + "  ", depth)
                yield f"{indent}}} else {{"
                yield from _braced(otherwise, indent + "  ", depth)
                yield f"{indent}}}"


PYTHON = Notation("python", _infix, _python, f"def {FUNCTION}(a, b):\n    c = 0\n{{}}\n    return c\n")
SPOKEN = Notation("spoken", _spoken, _spoken_lines, "GIVEN a AND b\n  SET c TO 0\n{}\n  RESULT c\n")
BRACKETS = Notation("brackets", _prefix, _bracketed, f"(function {FUNCTION} (a b)\n  (set c 0)\n{{}}\n  (result c))\n")
BRACES = Notation(
    "braces",
    _braced_expression,
    _braced,
    f"integer {FUNCTION}(integer a, integer b) {{{{\n  c = 0;\n{{}}\n  return c;\n}}}}\n",
)


def compiled(source: str) -> Callable[..., int]:
    """Executes the source of a Python program, and returns its function. Only for sources generated here."""
    names: dict[str, Callable[..., int]] = {}
    exec(compile(source, "made here", "exec"), names)  # noqa: S102
    return names[FUNCTION]
