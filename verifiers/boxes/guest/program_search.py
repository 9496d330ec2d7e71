"""Inside the sandbox: expressions over a function's parameters that reproduce the visible examples.

Bottom-up enumeration with observational equivalence (Udupa et al., PLDI 2013): values are combined, not texts, so no
source assembled here is ever run, only the patterns of the tables below. Of expressions with the same values on all
examples one is kept; those with the wanted values are reported, shortest first.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MOST_KEPT = 60_000
MOST_SIZE = 9
MOST_ITEMS = 2_000
LARGEST = 1 << 256
INNER_SIZE = 4
MOST_INNER = 200
SIZE_BEFORE_PAIRS = 4
"""Size up to which short expressions are searched directly."""
MOST_INNER_ITEMS = 150
"""Maximum number of items over which comprehensions are tried, in all examples together."""
MOST_SOURCES = 12
FEW_EXAMPLES = 3
MOST_ANSWERS = 4
"""Maximum number of different results that may be constants of a program, like the labels of a classification."""
LONGER_SECONDS = 2.0
"""Seconds of search after the first program."""
MOST_FOUND = 1_000
RARE = ("bin(", "isqrt(", "swapcase(", "//", "**", "gcd(", "lcm(", "title(", ".count(")
"""Fragments that are rarely intended without an example for them."""

Values = tuple[Any, ...]


class Expression:
    """Text, value on each example, number of parts, and precedence (3: an operand, 0: a conditional)."""

    __slots__ = ("binds", "kind", "size", "text", "values")

    def __init__(self, text: str, values: Values, size: int, binds: int = 3) -> None:
        self.text, self.values, self.size, self.binds = text, values, size, binds
        kinds = {type(value).__name__ for value in values}
        self.kind = kinds.pop() if len(kinds) == 1 else "mixed"

    def at(self, least: int) -> str:
        return self.text if self.binds >= least else f"({self.text})"


def stop() -> Any:
    raise ValueError


def quotient(whole: int, part: int) -> int:
    found, left = divmod(whole, part)
    return stop() if left else found


def rest(whole: Any, first: Any) -> Any:
    return whole[len(first) :] if whole[: len(first)] == first else stop()


def every(kinds: type | tuple[type, ...], *lists: list[Any]) -> bool:
    return all(isinstance(each, kinds) for items in lists for each in items)


ONE = {
    "int": "abs({0}); str({0}); list(range({0})); list(range(1, {0} + 1)); list(range(2, {0})); math.factorial({0});"
    " math.isqrt({0}); bin({0})[2:]",
    "float": "abs({0}); round({0})",
    "str": "len({0}); {0}[::-1]; {0}.upper(); {0}.lower(); {0}.title(); {0}.strip(); {0}.swapcase(); {0}.split();"
    " list({0}); int({0}); {0}[0]; {0}[-1]; {0}[1:]",
    "list": "len({0}); sum({0}); max({0}); min({0}); sorted({0}); {0}[::-1]; {0}[0]; {0}[-1]; {0}[1:]; {0}[:-1];"
    " list(dict.fromkeys({0})); ''.join({0}); ' '.join({0}); math.prod({0}); all({0}); any({0});"
    " [y for x in {0} for y in x]; tuple({0})",
    "tuple": "list({0})",
    "dict": "len({0}); list({0}); list({0}.values()); sorted({0}, key={0}.get)",
    "bool": "not {0}",
}
"""Operations on one operand of a kind: patterns separated by semicolons."""
TWO = {
    ("int", "int"): "~{0} + {1}; {0} - {1}; ~{0} * {1}; {0} // {1}; {0} % {1}; {0} / {1}; {0} ** {1}; ~max({0}, {1});"
    " ~min({0}, {1}); ~math.gcd({0}, {1}); ~math.lcm({0}, {1}); ~{0} == {1}; ~{0} != {1}; {0} < {1}; {0} <= {1}",
    ("float", "float"): "~{0} + {1}; {0} - {1}; ~{0} * {1}; {0} / {1}",
    ("float", "int"): "{0} * {1}; {0} / {1}; {0} + {1}",
    ("str", "str"): "{0} + {1}; ~{0} == {1}; {0} in {1}; {0}.count({1}); {0}.split({1})",
    ("str", "int"): "{0} * {1}; {0}[{1}]; {0}[:{1}]; {0}[{1}:]",
    ("list", "list"): "{0} + {1}; ~{0} == {1}; ~[x * y for x, y in zip({0}, {1})]; ~[x + y for x, y in zip({0}, {1})]",
    ("list", "int"): "{0}[{1}]; {0}[:{1}]; {0}[{1}:]; {0}.count({1}); {1} in {0}",
    ("list", "str"): "{1}.join({0}); {1} in {0}",
    ("bool", "bool"): "~{0} and {1}; ~{0} or {1}",
}
"""Operations on two operands; `~` marks commutative ones."""
BOUNDS = {
    "list(range({0}))": "{0} <= MOST_ITEMS",
    "list(range(1, {0} + 1))": "{0} <= MOST_ITEMS",
    "list(range(2, {0}))": "{0} <= MOST_ITEMS",
    "math.factorial({0})": "{0} <= 60",
    "all({0})": "every(bool, {0})",
    "any({0})": "every(bool, {0})",
    "[y for x in {0} for y in x]": "every(list, {0})",
    "{0} ** {1}": "0 <= {1} <= 64",
    "{0} * {1}": "isinstance({0}, (int, float)) or {1} * len({0}) <= MOST_ITEMS",
    "[x * y for x, y in zip({0}, {1})]": "every((int, float), {0}, {1})",
}
"""Conditions under which a pattern has a value: excludes what is slow or means something odd."""
WORDED = frozenset(["{0} and {1}", "{0} or {1}", "not {0}"])


class CompiledPattern(NamedTuple):
    """A pattern of the tables with its compiled function."""

    pattern: str
    function: Callable[..., Any]
    symmetric: bool

    def on(self, parts: list[Expression], size: int) -> Iterator[Expression]:
        """Yields the expression over these parts, if it has a value on each example."""
        values = applied(self.function, [part.values for part in parts])
        if values is not None:
            text, binds = written(self.pattern, parts)
            yield Expression(text, values, size, binds)


def operations(patterns: str) -> list[CompiledPattern]:
    found = []
    for row in patterns.split("; "):
        pattern = row.removeprefix("~")
        value, bound = pattern.format("a", "b"), BOUNDS.get(pattern, "True").format("a", "b")
        operands = "a, b" if "{1}" in pattern else "a"
        function = eval(f"lambda {operands}: {value} if {bound} else stop()")  # noqa: S307 - our own table
        found.append(CompiledPattern(pattern, function, row != pattern))
    return found


EQUALITIES = operations("{0} == {1}; {0} != {1}")
ON_ONE = {kind: operations(patterns) for kind, patterns in ONE.items()}
ON_TWO: dict[str, list[tuple[str, CompiledPattern]]] = {}
for (first_kind, second_kind), patterns in TWO.items():
    ON_TWO.setdefault(first_kind, []).extend((second_kind, each) for each in operations(patterns))


def bounded(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    if isinstance(value, str | list) and len(value) > MOST_ITEMS:
        raise ValueError
    if isinstance(value, complex):
        raise TypeError
    return value


def applied(function: Callable[..., Any], operands: list[Values]) -> Values | None:
    """Returns the values, or None if undefined on some example."""
    try:
        return tuple(bounded(function(*each)) for each in zip(*operands, strict=True))
    except (ValueError, TypeError, IndexError, KeyError, ZeroDivisionError, OverflowError, AttributeError):
        return None


def written(pattern: str, parts: list[Expression]) -> tuple[str, int]:
    """Returns text and precedence."""
    if pattern in WORDED:
        return pattern.format(*[part.at(2) for part in parts]), 1
    if pattern[0] == "{" and (" " in pattern and not pattern.endswith(("]", ")"))):
        return pattern.format(*[part.at(3) for part in parts]), 2
    inside = pattern.endswith(")") and not pattern.startswith("{")
    return pattern.format(*[part.at(0 if inside and "+ 1" not in pattern else 3) for part in parts]), 3


class Search:
    """One search: from parameters and wanted values to expressions."""

    def __init__(self, parameters: dict[str, Values], wanted: Values, end: float) -> None:
        self.parameters, self.wanted, self.end = parameters, wanted, end
        self.pause = end
        self.key = repr(wanted)
        self.kind = type(wanted[0]).__name__
        self.bank: dict[int, list[Expression]] = {size: [] for size in range(1, MOST_SIZE + 3)}
        self.known: dict[str, Expression] = {}
        self.matching: dict[tuple[bool, ...], Expression] = {}
        """First expression that is right on exactly these examples."""
        few = len(wanted) < FEW_EXAMPLES
        self.constants, self.later = ([0, 1], [2, 3, 10]) if few else ([0, 1, 2, 3, 10], [])
        """With few examples, constants that happen to fit come later."""

    @property
    def over(self) -> bool:
        return len(self.known) >= MOST_KEPT or time.monotonic() > self.end

    def offered(self, made: Expression) -> bool:
        """Records a new expression. Returns True if it has the wanted values."""
        key = repr(made.values)
        if key == self.key:
            return True
        if key not in self.known:
            self.known[key] = made
            self.bank[made.size].append(made)
            if made.kind == self.kind:
                right = tuple(have == want for have, want in zip(made.values, self.wanted, strict=True))
                self.matching.setdefault(right, made)
        return False

    def run(self) -> Iterator[str]:
        """Yields texts with the wanted values as they are found, and an empty text whenever `pause` has passed."""
        for size in range(1, MOST_SIZE + 1):
            for made in self.level(size):
                if self.over:
                    return
                if self.offered(made):
                    yield made.text
                if time.monotonic() > self.pause:
                    yield ""
            if size >= SIZE_BEFORE_PAIRS:
                yield from self.completed()

    def completed(self) -> Iterator[str]:
        """Combines two known expressions: the second is computed backwards from the wanted values and looked up. So a
        sum is found as soon as both terms are known."""
        for first in list(self.known.values()):
            if self.over:
                return
            if first.kind == self.kind == "int":
                for pattern, other in (("{0} + {1}", operator.sub), ("{1} - {0}", operator.add)):
                    yield from self.together(pattern, first, applied(other, [self.wanted, first.values]))
                yield from self.together("{0} - {1}", first, applied(operator.sub, [first.values, self.wanted]))
                yield from self.together("{0} * {1}", first, applied(quotient, [self.wanted, first.values]))
            elif first.kind == self.kind and self.kind in ("str", "list"):
                yield from self.together("{0} + {1}", first, applied(rest, [self.wanted, first.values]))
        for condition in [each for each in self.known.values() if each.kind == "bool"]:
            yes = self.right_where(condition.values)
            no = self.right_where(tuple(not each for each in condition.values))
            if yes is not None and no is not None:
                yield f"{yes.at(1)} if {condition.at(1)} else {no.at(1)}"

    def together(self, pattern: str, first: Expression, values: Values | None) -> Iterator[str]:
        second = None if values is None else self.known.get(repr(values))
        if second is not None:
            yield written(pattern, [first, second])[0]

    def right_where(self, places: Values) -> Expression | None:
        if not any(places):
            return None
        fit = [
            made
            for right, made in self.matching.items()
            if all(ok for ok, asked in zip(right, places, strict=True) if asked)
        ]
        return min(fit, key=lambda made: (made.size, len(made.text)), default=None)

    def level(self, size: int) -> Iterator[Expression]:
        yield from self.simple(size)
        if size == 3:
            yield from self.comprehensions()
            for constant in self.later:
                yield Expression(repr(constant), (constant,) * len(self.wanted), size)

    def simple(self, size: int) -> Iterator[Expression]:
        """Yields a level without nested comprehensions."""
        if size == 1:
            yield from self.leaves()
            return
        for part in self.bank[size - 1]:
            for operation in ON_ONE.get(part.kind, ()):
                yield from operation.on([part], size)
        for first_size in range(1, size - 1):
            yield from self.pairs(first_size, size - 1 - first_size, size)

    def leaves(self) -> Iterator[Expression]:
        count = len(next(iter(self.parameters.values())))
        for name, values in self.parameters.items():
            yield Expression(name, values, 1)
        texts = any(isinstance(value, str) for values in self.parameters.values() for value in values)
        constants: list[Any] = [*self.constants, *([" ", "", ","] if texts or self.kind == "str" else [])]
        answers = {repr(value): value for value in self.wanted if isinstance(value, bool | str)}
        if len(answers) <= MOST_ANSWERS < count + MOST_ANSWERS - 1:
            constants += [value for value in answers.values() if value not in constants or isinstance(value, bool)]
        for constant in constants:
            yield Expression(repr(constant), (constant,) * count, 1)

    def pairs(self, first_size: int, second_size: int, size: int) -> Iterator[Expression]:
        by_kind: dict[str, list[Expression]] = {}
        for each in self.bank[second_size]:
            by_kind.setdefault(each.kind, []).append(each)
        for first in self.bank[first_size]:
            for kind, operation in ON_TWO.get(first.kind, ()):
                if operation.symmetric and first_size > second_size:
                    continue
                for second in by_kind.get(kind, ()):
                    yield from operation.on([first, second], size)
                    if self.over:
                        return

    def comprehensions(self) -> Iterator[Expression]:
        """Yields comprehensions over lists, texts and short ranges, with an operation per item and a filter."""
        sources = [each for size in (1, 2) for each in self.bank[size] if each.kind in ("list", "str", "tuple")]
        for source in sources[:MOST_SOURCES]:
            items = [(place, item) for place, value in enumerate(source.values) for item in value]
            if not items or len(items) > MOST_INNER_ITEMS:
                continue
            name = "c" if source.kind == "str" else "x"
            inner = self.inner(name, items)
            where: list[list[int]] = [[] for _ in source.values]
            for index, (place, _) in enumerate(items):
                where[place].append(index)
            for test in [None, *(each for each in inner if each.kind == "bool")]:
                asked, cheap = (f" if {test.at(1)}", 6 - test.size) if test else ("", 3)
                for each in inner[: MOST_INNER // 8] if test else inner:
                    if self.over:
                        return
                    values = tuple(
                        [each.values[index] for index in indices if not test or test.values[index]] for indices in where
                    )
                    size = source.size + (2 if each.size <= cheap else 3)
                    yield Expression(f"[{each.text} for {name} in {source.at(3)}{asked}]", values, size)

    def inner(self, name: str, items: list[tuple[int, Any]]) -> list[Expression]:
        """Small expressions over one item and the scalar parameters."""
        below = Search(
            {name: tuple(item for _, item in items)}
            | {
                other: tuple(values[place] for place, _ in items)
                for other, values in self.parameters.items()
                if all(isinstance(value, int | str | float) for value in values)
            },
            ((),) * len(items),
            min(self.end, time.monotonic() + 1.0),
        )
        if all(isinstance(item, str) for _, item in items):
            below.parameters.update({"'aeiou'": ("aeiou",) * len(items)})
        found: list[Expression] = []
        for size in range(1, INNER_SIZE + 1):
            for made in below.simple(size) if size < INNER_SIZE else below.remainders():
                if below.over:
                    return found
                before = len(below.known)
                below.offered(made)
                if len(below.known) > before and (len(found) < MOST_INNER or made.kind == "bool"):
                    found.append(made)
        return found

    def remainders(self) -> Iterator[Expression]:
        """Yields tests like `x % k == 0`, which are common but larger than the rest."""
        constants = [each for each in self.bank[1] if each.values[0] in (0, 1) and each.kind == "int"]
        for part in self.bank[3]:
            if " % " in part.text and part.kind == "int":
                for constant in constants:
                    for operation in EQUALITIES:
                        yield from operation.on([part, constant], INNER_SIZE)


def arguments_of(text: str) -> list[Any]:
    """Returns the values between the parentheses of a call; keywords are rejected. Raises ValueError."""
    call = ast.parse(f"f({text}\n)", mode="eval").body
    if not isinstance(call, ast.Call) or call.keywords:
        raise ValueError("keyword arguments")
    return [ast.literal_eval(each) for each in call.args]


def names_for(columns: list[Values]) -> list[str]:
    """Chooses parameter names: `a, b` for scalars, `xs, ys` for lists, `s, t` for texts."""
    left = {"list": iter(["xs", "ys", "zs", "us", "vs"]), "str": iter(["s", "t", "u", "v", "w"]), "": iter("abnmkpqr")}
    return [next(left.get(type(column[0]).__name__, left[""])) for column in columns]


class Looking:
    """A search in slices, so that its caller can end it."""

    def __init__(
        self, function: str, question: str, shown: list[tuple[list[Any], Any]], seconds: float, most: int
    ) -> None:
        self.hinted = hints(question)
        columns = [tuple(arguments[place] for arguments, _ in shown) for place in range(len(shown[0][0]))]
        self.function, self.most, self.names = function, most, names_for(columns)
        parameters = dict(zip(self.names, columns, strict=True))
        self.finder = Search(parameters, tuple(value for _, value in shown), time.monotonic() + seconds)
        self.texts = self.finder.run()
        self.found: dict[str, None] = {}

    def more(self, seconds: float) -> dict[str, Any]:
        """Continues for `seconds`. Returns new programs, likeliest first; `more` if not over; a note if none."""
        finder, new = self.finder, []
        finder.pause = time.monotonic() + seconds
        over = True
        for text in self.texts:
            if text and text not in self.found:
                if not self.found:
                    finder.end = min(finder.end, time.monotonic() + LONGER_SECONDS)
                self.found[text] = None
                new.append(text)
            if not text or len(self.found) >= MOST_FOUND:
                over = len(self.found) >= MOST_FOUND
                break
        best = sorted(new, key=lambda text: oddity(text, self.names, self.hinted))[: self.most]
        return {
            "more": not over,
            "programs": [program(self.function, self.names, text) for text in best],
            "note": "" if self.found or not over else f"{len(finder.known)} different expressions were tried",
        }


LOOKING: list[Looking] = []


def begin(function: str, question: str, examples: list[list[str]], seconds: float, most: int) -> dict[str, Any]:
    """Starts a search. `examples`: arguments and expected value, as text. Returns an answer like that of `more`."""
    try:
        shown = [(arguments_of(arguments), ast.literal_eval(expected)) for arguments, expected in examples]
    except (ValueError, SyntaxError, TypeError):
        return {"programs": [], "note": "the examples contain more than plain values"}
    if len({len(arguments) for arguments, _ in shown}) != 1 or not shown[0][0]:
        return {"programs": [], "note": "the examples do not all have the same arguments"}
    LOOKING[:] = [Looking(function, question, shown, seconds, most)]
    return {"more": True}


def more(seconds: float) -> dict[str, Any]:
    """Continues the search that was begun."""
    return LOOKING[0].more(seconds)


HINTS = [
    (r"larg|great|high|max|most|longest", "max("),
    (r"small|least|low|min|shortest", "min("),
    (r"differ|minus|subtract|less than", " - "),
    (r"differ|range|span", "max(xs) - min(xs)"),
    (r"\bsum|total|add", "sum("),
    (r"\bplus|\bsum of\b", " + "),
    (r"product|times|multipl", " * "),
    (r"\beven\b", " % 2) == 0"),
    (r"\bodd\b", " % 2) != 0"),
    (r"divisible|multiple of|remainder", " % "),
    (r"mean|average", " / len("),
    (r"how many|number of|count|length", "len("),
    (r"revers|backward|palindrom", "[::-1]"),
    (r"sort|order", "sorted("),
    (r"absolut|magnitude|distance", "abs("),
    (r"word", ".split()"),
    (r"upper|capital", ".upper()"),
    (r"lower", ".lower()"),
    (r"unique|distinct|duplicate", "dict.fromkeys("),
    (r"factorial", "factorial("),
    (r"digit", "str("),
    (r"vowel", "aeiou"),
]
"""Words of a question with the fragments that they suggest."""
HINTED = 6


def oddity(text: str, names: list[str], hinted: list[str]) -> float:
    """Ranks a text, likeliest lowest: matches the question's words, short, uses all parameters, no special cases."""
    words = len(re.findall(r"\w+|[^\w\s]", text))
    unused = sum(not re.search(rf"\b{name}\b", text) for name in names)
    numbers = re.findall(r"(?<![A-Za-z0-9])[0-9]+", text)
    rare = sum(text.count(word) for word in RARE)
    special = 3 * len(numbers) + 6 * sum(int(number) > 2 for number in numbers) + 12 * text.count(" else ")
    matched = sum(fragment in text for fragment in hinted)
    return words + special + 15 * unused + 5 * rare - HINTED * matched


def hints(question: str) -> list[str]:
    asked = question.lower()
    return [fragment for pattern, fragment in HINTS if re.search(pattern, asked)]


def program(function: str, names: list[str], text: str) -> str:
    imports = "import math\n\n\n" if "math." in text else ""
    return f"{imports}def {function}({', '.join(names)}):\n    return {text}\n"
