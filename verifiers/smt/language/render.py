"""Renders terms and values as SMT-LIB text, so that anyone can query another solver. Deterministic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from verifiers.smt.language.reader import SIGNED, TOKEN
from verifiers.smt.language.terms import QUANTIFIERS, Function, Sort, Term, functions, leaves, walk
from verifiers.smt.language.values import ArrayValue, Element, FunctionTable, Value

MAX_WRITTEN = 4_000_000
"""Maximum number of characters written for one query, counting each copy of a part."""
MAX_SHOWN = 120


class TooLong(Exception):
    """The SMT-LIB text would exceed MAX_WRITTEN characters."""


def query_text(assertions: Sequence[Term]) -> str:
    """Renders assertions as a complete SMT-LIB script with declarations and check-sat. Raises TooLong if it exceeds the
    limit."""
    written = _Writer()
    used = functions(assertions)
    sorts = {sort for term in walk(assertions) for sort in leaves(term.sort) if sort.declared}
    for function in used:
        sorts.update(s for each in (*function.domain, function.range) for s in leaves(each) if s.declared)
    lines = ["(set-logic ALL)"]
    lines += [f"(declare-sort {sort} 0)" for sort in sorted(sorts, key=str)]
    lines += [f"(declare-fun {name_text(each.name)} ({' '.join(map(str, each.domain))}) {each.range})" for each in used]
    lines += [f"(assert {written.root(term)})" for term in assertions]
    return "\n".join([*lines, "(check-sat)", ""])


def name_text(name: str) -> str:
    found = TOKEN.fullmatch(name)
    plain = found is not None and found.lastgroup == "symbol" and not SIGNED.match(name)
    return name if plain else f"|{name}|"


def value_text(value: Value, sort: Sort) -> str:
    """Renders a value as SMT-LIB, truncated if long."""
    text = _value(value, sort)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def table_text(table: FunctionTable, function: Function) -> str:
    entries = [
        f"({' '.join(value_text(each, sort) for each, sort in zip(key, function.domain, strict=True))}) -> "
        + value_text(value, function.range)
        for key, value in list(table.entries.items())[:8]
    ]
    return "; ".join([*entries, f"else -> {value_text(table.default, function.range)}"])


def _value(value: Value, sort: Sort) -> str:
    match value:
        case Element(name):
            return name_text(name)
        case ArrayValue(default, entries):
            index, element = sort.parameters
            text = f"((as const {sort}) {_value(default, element)})"
            for place, held in entries[:20]:
                text = f"(store {text} {_value(place, index)} {_value(held, element)})"
            return text + ("..." if len(entries) > 20 else "")
        case bool():
            return "true" if value else "false"
        case Fraction(numerator=above, denominator=below):
            size = f"{abs(above)}.0" if below == 1 else f"(/ {abs(above)}.0 {below}.0)"
            return f"(- {size})" if value < 0 else size
        case int() if sort.name == "BitVec":
            width = sort.width
            return f"#x{value:0{width // 4}x}" if width % 4 == 0 else f"#b{value:0{width}b}"
        case int():
            return f"(- {-value})" if value < 0 else str(value)


class _Writer:
    """Renders terms as SMT-LIB. Binds shared terms by `let`, those under a quantifier separately in its body. Without
    recursion over terms."""

    def __init__(self) -> None:
        self._quantified: dict[int, str] = {}
        self._length = 0
        self._bound = 0

    def root(self, term: Term) -> str:
        for each in walk([term]):
            if each.op in QUANTIFIERS:
                bound = " ".join(f"({_variable(variable)} {variable.sort})" for variable in each.payload)
                self._quantified[each.number] = f"({each.op} ({bound}) {self._scope(each.args[0])})"
        return self._scope(term)

    def _scope(self, root: Term) -> str:
        """Renders a term as SMT-LIB, binding shared subterms by `let`. Does not enter quantifiers, whose text is
        already known."""
        order = list(walk([root], closed=QUANTIFIERS))
        uses = Counter(each.number for term in order if term.op not in QUANTIFIERS for each in term.args)
        text: dict[int, str] = {}
        bindings: list[tuple[str, str]] = []
        for term in order:
            made = self._one(term, text)
            self._length += len(made)
            if self._length > MAX_WRITTEN:
                raise TooLong
            if uses[term.number] > 1 and made.startswith("(") and term is not root:
                self._bound += 1
                name = f"?t{self._bound}"
                bindings.append((name, made))
                made = name
            text[term.number] = made
        opening = "".join(f"(let (({name} {value})) " for name, value in bindings)
        return opening + text[root.number] + ")" * len(bindings)

    def _one(self, term: Term, text: dict[int, str]) -> str:
        match term.op:
            case "value":
                return _value(term.payload, term.sort)
            case "variable":
                return _variable(term)
            case "forall" | "exists":
                return self._quantified[term.number]
            case "apply":
                head = name_text(term.payload.name)
            case "constant_array":
                head = f"(as const {term.sort})"
            case "negate":
                head = "-"
            case "ubv_to_int":
                head = "bv2nat"
            case "int_to_bv":
                head = f"(_ int2bv {term.payload[0]})"
            case op if term.payload:
                head = f"(_ {op} {' '.join(map(str, term.payload))})"
            case op:
                head = op
        return f"({' '.join([head, *[text[each.number] for each in term.args]])})" if term.args else head


def _variable(term: Term) -> str:
    return f"?v{term.payload[1]}"


def shown(
    values: Mapping[Function, Value | FunctionTable], otherwise: Mapping[str, str], most: int = 30
) -> dict[str, str]:
    """Renders values of constants and functions by name, `most` at most. `otherwise` has the text of those without a
    value."""
    found: dict[str, str] = dict(list(otherwise.items())[:most])
    for function, value in list(values.items())[:most]:
        found[function.name] = (
            table_text(value, function) if isinstance(value, FunctionTable) else value_text(value, function.range)
        )
    return found
