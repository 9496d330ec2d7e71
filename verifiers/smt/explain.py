"""Plain-text explanation of a claim: quantified symbols, assumptions, goal; and the claims of a verdict. Pure.

Terms are written infix with parentheses around each, so that the text does not depend on precedence. Unreadable claims
are shown verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.text import one_line
from verifiers.contract.verdict import Verdict
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.reader import CLAIM, Atom, Form, Node, read
from verifiers.smt.language.render import name_text
from verifiers.smt.spec import SmtSpec

BETWEEN = {
    "and": "and", "or": "or", "xor": "xor", "=>": "implies", "=": "=", "distinct": "differs from", "+": "+", "-": "-",
    "*": "*", "/": "/", "div": "div", "mod": "mod", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "bvult": "< (unsigned)", "bvule": "<= (unsigned)", "bvugt": "> (unsigned)", "bvuge": ">= (unsigned)",
    "bvslt": "< (signed)", "bvsle": "<= (signed)", "bvsgt": "> (signed)", "bvsge": ">= (signed)",
    "bvadd": "+", "bvsub": "-", "bvmul": "*", "bvand": "&", "bvor": "|", "bvxor": "^", "bvshl": "<<", "bvlshr": ">>",
}  # fmt: skip
EVERY = {"forall": "for every", "exists": "there is"}
ASKED = {
    "entails": "Do the assumptions of this claim imply its goal? Say the one word `entailed` if they do.",
    "model": "Give a value to everything that this script declares, so that every assertion is true of them.",
    "optimum": "Give a value to everything that this script declares: every assertion is true, and nothing is better.",
    "equivalent": "Give another term that has the value of the definition `{reference}` wherever the assertions hold.",
}
WITH_HOLES = "Define {holes} with `define-fun`, so that the assumptions of this claim imply its goal."


@dataclass
class ClaimPieces:
    """Parts of an SMT-LIB claim, in order."""

    constants: list[str] = field(default_factory=list)
    """Declared symbols: `x: Int`, or `f: any function of (Int) to Int`."""
    definitions: list[str] = field(default_factory=list)
    asserted: list[tuple[str, Node]] = field(default_factory=list)
    """Name and term of each assertion; unnamed ones have an empty name."""
    objective: tuple[str, Node] | None = None


def explain(spec: SmtSpec) -> Iterator[str]:
    yield from claim_lines(spec)
    yield from _rules(spec)


def visible(spec: SmtSpec) -> str:
    return spec.claim


def question(spec: SmtSpec, asked: str | None) -> str:
    """Returns the question that a person asked or, without one, a question made from the claim."""
    if asked is not None:
        return asked
    wanted = WITH_HOLES if spec.question == "entails" and spec.holes else ASKED[spec.question]
    filled = wanted.format(holes=", ".join(f"`{name}`" for name in spec.holes), reference=spec.reference)
    return f"{filled} The language is SMT-LIB.\n\n{spec.claim.strip()}"


def parts(spec: SmtSpec, verdict: Verdict) -> Verified:
    solvers = verdict.evidence.get("solvers")
    answers = solvers if isinstance(solvers, dict) else {}
    detail = ", ".join(f"{one_line(str(name))} says {one_line(str(answer))}" for name, answer in answers.items())
    claimed = {
        "entails": "that the goal follows from the assumptions",
        "model": "that the values make every assertion true",
        "optimum": "that the values make every assertion true, and that nothing better exists",
        "equivalent": "that the term has the reference's value wherever the assertions hold",
    }
    what = claimed[spec.question]
    if spec.question == "entails" and spec.holes:
        what += f", with the submitted {one_line(', '.join(spec.holes))}"
    limits = [not_covered("that the assumptions hold of the world", "they are the claim's own")]
    if spec.division == "total":
        limits.append(
            not_covered("that nothing is divided by zero", "the claim takes any value for it, as SMT-LIB does")
        )
    if spec.question != "model" and "cvc5" not in answers:
        limits.append(not_covered("that a second solver agrees", "only one was asked, or the other had no word"))
    return Verified([decided(verdict, what, detail)], limits)


def _rules(spec: SmtSpec) -> Iterator[str]:
    if spec.question == "entails" and not spec.holes:
        yield "Nothing is supplied: the answer is the word `entailed`, and the solver decides."
    if spec.uses:
        yield f"A submission may also use: {', '.join(spec.uses)}."
    if spec.allowed is not None:
        yield f"It may use these operators and no others: {', '.join(spec.allowed) or 'none'}."
    if spec.forbidden:
        yield f"It may not use: {', '.join(spec.forbidden)}."
    if spec.max_size is not None:
        yield f"It may have at most {spec.max_size} symbols and numbers."
    if spec.question == "equivalent":
        yield f"A copy of the reference is {'an answer' if spec.copies == 'allowed' else 'refused'}."
    if spec.division == "guarded":
        yield "A division by zero must be impossible wherever the result matters."
    else:
        yield "A division by zero has an arbitrary value, as in SMT-LIB."
    yield "Int and Real are unbounded and exact; div and mod leave no negative remainder; bit vectors wrap around."
    second = {"required": "has to agree", "if_available": "must not contradict", "none": "is not asked"}
    yield f"A second solver {second[spec.second]}; each question to a solver may take {spec.effort} steps."


def claim_lines(spec: SmtSpec) -> list[str]:
    """Renders an SMT-LIB claim as plain text, or verbatim if it cannot be read or is nested too deeply."""
    try:
        return list(_claim(spec, parts_of(read(spec.claim, CLAIM))))
    except (ClaimError, RecursionError):
        return ["A claim that cannot be put into words:", *(f"    {line}" for line in spec.claim.splitlines())]


def _claim(spec: SmtSpec, parts: ClaimPieces) -> Iterator[str]:
    holes = set(spec.holes)
    given = [one for one in parts.constants if one.partition(":")[0] not in holes]
    wanted = [one for one in parts.constants if one.partition(":")[0] in holes]
    if spec.question == "entails":
        yield from _entails(spec, parts, given, wanted)
    elif spec.question == "equivalent":
        yield f"Wanted: a term with the value of {spec.reference}, for all values of these:"
        yield from (f"    {one}" for one in given)
        if parts.asserted:
            yield "wherever all of this holds:"
            yield from _numbered(parts.asserted)
    else:
        yield "Wanted: one value for each of these:"
        yield from (f"    {one}" for one in given)
        yield "so that all of this is true:"
        yield from _numbered(parts.asserted)
        if parts.objective is not None:
            yield f"and so that this is as {parts.objective[0]} as possible: {term(parts.objective[1])}"
    if parts.definitions:
        yield "where:"
        yield from (f"    {one}" for one in parts.definitions)


def _entails(spec: SmtSpec, parts: ClaimPieces, given: list[str], wanted: list[str]) -> Iterator[str]:
    assumed, goal = split(parts.asserted, spec.goal)
    if wanted:
        yield "Wanted: a definition of each of these:"
        yield from (f"    {one}" for one in wanted)
    yield "so that, for all values of these:" if wanted else "It is claimed that, for all values of these:"
    yield from (f"    {one}" for one in given or ["(no free symbols)"])
    if assumed:
        yield "if all of this holds:"
        yield from _numbered(assumed)
        yield "then this holds:"
    else:
        yield "this holds, with no assumption:"
    yield f"    {term(goal)}" if goal is not None else "    (no goal)"


def _numbered(asserted: list[tuple[str, Node]]) -> Iterator[str]:
    for number, (name, node) in enumerate(asserted, 1):
        yield f"    {number}. {term(node)}{f'   [{name}]' if name else ''}"


def split(asserted: list[tuple[str, Node]], goal: str) -> tuple[list[tuple[str, Node]], Node | None]:
    """Splits a claim's assertions, as names and terms, into assumptions and goal: the one named `goal`, or the last,
    negated. The goal is None if there is neither."""
    for place, (name, node) in enumerate(asserted):
        if name == goal:
            return [*asserted[:place], *asserted[place + 1 :]], node
    match asserted:
        case [*assumed, (_, Form((Atom("symbol", "not"), negated)))]:
            return assumed, negated
    return asserted, None


def parts_of(nodes: list[Node]) -> ClaimPieces:
    parts = ClaimPieces()
    for node in nodes:
        match node:
            case Form((Atom("symbol", "declare-sort"), Atom(text=name), *_)):
                parts.constants.append(f"{name}: any set that is not empty")
            case Form((Atom("symbol", "declare-const"), Atom(text=name), sort)):
                parts.constants.append(f"{name}: {sort_words(sort)}")
            case Form((Atom("symbol", "declare-fun"), Atom(text=name), Form(domain), sort)):
                takes = ", ".join(map(sort_words, domain))
                of = f"any function of ({takes}) to {sort_words(sort)}" if takes else sort_words(sort)
                parts.constants.append(f"{name}: {of}")
            case Form((Atom("symbol", "define-const"), Atom(text=name), sort, body)):
                parts.definitions.append(f"{name} is {term(body)}, a {sort_words(sort)}")
            case Form((Atom("symbol", "define-fun"), Atom(text=name), Form(takes), sort, body)):
                given = ", ".join(map(_bound, takes))
                parts.definitions.append(f"{name}({given}) is {term(body)}, a {sort_words(sort)}")
            case Form((Atom("symbol", "assert"), body)):
                parts.asserted.append(named(body))
            case Form((Atom("symbol", "minimize" | "maximize" as way), body)):
                parts.objective = ("small" if way == "minimize" else "large", body)
            case _:
                pass
    return parts


def named(body: Node) -> tuple[str, Node]:
    """Splits an assertion's term into its `:named` name, empty if it has none, and the bare term."""
    match body:
        case Form((Atom("symbol", "!"), inner, *attributes)):
            found = [
                value.text
                for key, value in pairwise(attributes)
                if isinstance(key, Atom) and key.kind == "keyword" and key.text == "named" and isinstance(value, Atom)
            ]
            return (found[0] if found else "", inner)
    return "", body


def sort_words(node: Node) -> str:
    match node:
        case Atom(text=text):
            return text
        case Form((Atom("symbol", "_"), Atom("symbol", "BitVec"), Atom(text=bits))):
            return f"bit vector of {bits}"
        case Form((Atom("symbol", "Array"), index, item)):
            return f"array from {sort_words(index)} to {sort_words(item)}"
    return source(node)


def term(node: Node) -> str:
    """Renders an SMT-LIB term in infix notation, with parentheses except around the whole."""
    text = _term(node)
    return text[1:-1] if text.startswith("(") and _closes_last(text) else text


def _closes_last(text: str) -> bool:
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def _term(node: Node) -> str:
    match node:
        case Atom():
            return source(node)
        case Form((Atom("symbol", "!"), inner, *_)):
            return _term(inner)
        case Form((Atom("symbol", "not"), inner)):
            return f"(not {_term(inner)})"
        case Form((Atom("symbol", "-" | "bvneg"), inner)):
            return f"(-{_term(inner)})"
        case Form((Atom("symbol", "ite"), one, two, three)):
            return f"({_term(two)} if {_term(one)}, otherwise {_term(three)})"
        case Form((Atom("symbol", "forall" | "exists" as which), Form(bound), body)):
            such = ":" if which == "forall" else " so that"
            return f"({EVERY[which]} {', '.join(map(_bound, bound))}{such} {_term(body)})"
        case Form((Atom("symbol", "let"), Form(bound), body)):
            where = ", ".join(
                f"{_term(one.items[0])} = {_term(one.items[1])}"
                for one in bound
                if isinstance(one, Form) and len(one.items) == 2
            )
            return f"({_term(body)} where {where})"
        case Form((Atom("symbol", "distinct"), first, second, third, *rest)):
            return f"({', '.join(map(_term, (first, second, third, *rest)))} all differ)"
        case Form((Atom("symbol", name), first, second, *rest)) if name in BETWEEN:
            return "(" + f" {BETWEEN[name]} ".join(map(_term, (first, second, *rest))) + ")"
        case Form((Atom("symbol", name), *arguments)) if arguments:
            return f"{name}({', '.join(map(term, arguments))})"
    return source(node)


def _bound(node: Node) -> str:
    match node:
        case Form((Atom(text=name), sort)):
            return f"{name}: {sort_words(sort)}"
    return source(node)


def source(node: Node) -> str:
    """Renders a parsed SMT-LIB expression as SMT-LIB text again."""
    if isinstance(node, Form):
        return f"({' '.join(map(source, node.items))})"
    match node.kind:
        case "symbol":
            return name_text(node.text)
        case "string":
            return f'"{node.text}"'
        case kind:
            return {"keyword": ":", "hexadecimal": "#x", "binary": "#b"}.get(kind, "") + node.text
