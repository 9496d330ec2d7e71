"""Variants of a claim: a stronger goal, one assumption fewer, the opposite. The solvers decide on each.

A changed claim says more than the job's own, so a sharp claim is one whose variants are refuted; a variant that is
proved shows that the claim could have said more, or assumed less. For values (`model`, `optimum`) the solver's own
counterexamples are submitted: values that make everything true, and values that make all but one assertion true.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from verifiers.contract.examples import AskVerifier, CheckedExample, ExampleInput, ExampleReport, distinct
from verifiers.smt.explain import named, parts_of, sort_words, source, split, term
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.reader import CLAIM, Atom, Form, Node, head, read
from verifiers.smt.language.render import name_text
from verifiers.smt.spec import SmtSpec

MOST = 8
"""Maximum number of assumptions, or places, that are changed."""
BETTER = 12
"""Maximum number of searches for better values."""
STRONGER = {"<=": "<", ">=": ">", "bvule": "bvult", "bvuge": "bvugt", "bvsle": "bvslt", "bvsge": "bvsgt"}
WEAKER = {other: one for one, other in STRONGER.items()}
OTHER = {
    "+": "-", "-": "+", "*": "+", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "bvadd": "bvsub", "bvsub": "bvadd",
    "bvand": "bvor", "bvor": "bvand", "bvxor": "bvand", "bvmul": "bvadd", "and": "or", "or": "and", "div": "mod",
    "mod": "div",
}  # fmt: skip
COMMUTES = ("+", "*", "and", "or", "bvadd", "bvmul", "bvand", "bvor", "bvxor")
CONSTANTS = {"Bool": ("true", "false"), "Int": ("0", "1"), "Real": ("0.0", "1.0")}
GOAL = "assay-goal"


def examples(spec: SmtSpec, answer: str | None, try_: AskVerifier) -> ExampleReport:
    found = [ExampleInput("example", "the job's answer", spec, answer)] if answer is not None else []
    try:
        nodes = read(spec.claim, CLAIM)
        if spec.question == "entails" and spec.holes:
            return _shown(try_, [*found, *_fills(spec, nodes)])
        if spec.question == "entails":
            return _entailed(spec, nodes, try_)
        if spec.question == "equivalent":
            return _shown(try_, [*found, *_terms(spec, nodes)])
        return _values(spec, nodes, found, try_)
    except (ClaimError, RecursionError) as error:
        return ExampleReport((), (), (f"no variants of this claim could be made: {error}",))


def _shown(try_: AskVerifier, inputs: list[ExampleInput]) -> ExampleReport:
    return ExampleReport(tuple(try_(distinct(inputs))))


# entailments


def _entailed(spec: SmtSpec, nodes: list[Node], try_: AskVerifier) -> ExampleReport:
    own = ExampleInput("example", "the claim as it stands", spec, "entailed", _in_one_line(nodes, spec.goal))
    inputs = [own, *(_claim(spec, what, changed) for what, changed in _stronger(spec, nodes))]
    tried = [_witnessed(one) for one in try_(distinct(inputs))]
    first: tuple[str, ...] = ()
    if tried and not tried[0].accepted and tried[0].outcome == "fail":
        first = (f"THE CLAIM IS NOT PROVED: {tried[0].reason}",)
    return ExampleReport(tuple(tried), first)


def _witnessed(tried: CheckedExample) -> CheckedExample:
    """Appends the values of a counterexample, if the verdict has one, to the reason in a tried example."""
    seen = tried.evidence.get("counterexample")
    values = ", ".join(f"{name} = {value}" for name, value in seen.items()) if isinstance(seen, dict) else ""
    return tried._replace(reason=f"{tried.reason}: {values}") if values else tried


def _claim(spec: SmtSpec, what: str, nodes: list[Node]) -> ExampleInput:
    changed = spec.model_copy(update={"claim": _text(nodes)})
    return ExampleInput("mutant", what, changed, "entailed", _in_one_line(nodes, spec.goal))


def _in_one_line(nodes: list[Node], goal: str) -> str:
    """Renders the assumptions and the goal of an SMT-LIB claim in one line."""
    assumed, what = split(parts_of(nodes).asserted, goal)
    return f"{'; '.join(term(node) for _, node in assumed)}  |=  {term(what) if what is not None else ''}"


def _stronger(spec: SmtSpec, nodes: list[Node]) -> Iterator[tuple[str, list[Node]]]:
    """Yields variants of a claim that assert more or assume less, each with a description of the change."""
    asserted = _asserted(nodes)
    if not asserted:
        return
    place, name, goal = next((each for each in asserted if each[1] == spec.goal), asserted[-1])
    match goal:
        case Form((Atom("symbol", "not"), inner)) if name != spec.goal:
            goal = inner

    def with_goal(other: Node) -> list[Node]:
        made = _assertion(other, name) if name == spec.goal else _assertion(_form("not", other))
        return _replaced(nodes, place, made)

    yield "the opposite of the goal", with_goal(_form("not", goal))
    for what, other in _strengthened(goal):
        yield f"a stronger goal: {what}", with_goal(other)
    assumed = [(at, body) for at, _, body in asserted if at != place][:MOST]
    for number, (at, body) in enumerate(assumed, 1):
        yield f"without assumption {number}: {term(body)}", _replaced(nodes, at)
    for number, (at, body) in enumerate(assumed, 1):
        match body:
            case Form((Atom("symbol", op), *rest)) if op in WEAKER:
                other = _form(WEAKER[op], *rest)
                what = f"assuming less than assumption {number}: {term(other)} instead of {term(body)}"
                yield what, _replaced(nodes, at, _assertion(other))


def _strengthened(goal: Node) -> Iterator[tuple[str, Node]]:
    """Yields goals that imply the given goal, each with a description of the change."""
    match goal:
        case Form((Atom("symbol", "=>"), _, *rest)):
            yield "without its condition", rest[-1]
        case Form((Atom("symbol", "or"), *parts)):
            yield from ((f"only its part {number}", part) for number, part in enumerate(parts[:MOST], 1))
        case Form((Atom("symbol", name), one, other)) if name in STRONGER:
            made = _form(STRONGER[name], one, other)
            yield term(made), made
        case Form((Atom("symbol", "forall"), bound, body)):
            for what, inner in _strengthened(body):
                yield what, _form("forall", bound, inner)
    match goal:
        case Form((Atom("symbol", "<" | "<=" | ">" | ">=" as name), one, Atom("numeral", digits))):
            nearer = int(digits) + (1 if name.startswith(">") else -1)
            if nearer >= 0:
                made = _form(name, one, Atom("numeral", str(nearer)))
                yield term(made), made


# holes, terms


def _fills(spec: SmtSpec, nodes: list[Node]) -> Iterator[ExampleInput]:
    """Yields two example submissions that define every hole of a claim as a constant. Yields none if a hole's sort has
    no known constants."""
    declared = _named(nodes)
    for choice in (0, 1):
        lines = []
        for hole in spec.holes:
            *domain, result = declared.get(hole) or [Form(())]
            values = CONSTANTS.get(sort_words(result))
            if values is None:
                return
            sorts = domain[0].items if domain and isinstance(domain[0], Form) else ()
            takes = " ".join(f"(a{number} {source(sort)})" for number, sort in enumerate(sorts))
            lines.append(f"(define-fun {hole} ({takes}) {source(result)} {values[choice]})")
        yield ExampleInput("mutant", "constants for all holes", spec, "\n".join(lines))


def _terms(spec: SmtSpec, nodes: list[Node]) -> Iterator[ExampleInput]:
    defined = _named(nodes).get(spec.reference)
    if defined is None:
        return
    body = defined[-1]
    yield ExampleInput("example", "the reference itself", spec, source(body))
    twice = "as a choice between equal terms", _form("ite", _form("=", body, body), body, body)
    turned = ((f"with {what}", made) for what, made in _changes(body, swap=True))
    what, made = next(turned, twice)
    yield ExampleInput("example", f"the reference {what}", spec, source(made))
    for what, made in islice(_changes(body, swap=False), MOST):
        yield ExampleInput("mutant", f"the reference with {what}", spec, source(made))


def _changes(node: Node, *, swap: bool) -> Iterator[tuple[str, Node]]:
    """Yields variants of an SMT-LIB term with one change: another operator or number or, with `swap`, arguments
    exchanged."""
    match node:
        case Form((Atom("symbol", name), *rest)):
            if swap and name in COMMUTES and len(rest) == 2 and rest[0] != rest[1]:
                yield f"{term(node)} turned round", _form(name, rest[1], rest[0])
            if not swap and name in OTHER and len(rest) == 2:
                made = _form(OTHER[name], *rest)
                yield f"{term(made)} instead of {term(node)}", made
            for place, inner in enumerate(rest):
                for what, other in _changes(inner, swap=swap):
                    yield what, _form(name, *rest[:place], other, *rest[place + 1 :])
        case Atom("numeral", digits) if not swap:
            yield f"{int(digits) + 1} instead of {digits}", Atom("numeral", str(int(digits) + 1))


# values


def _values(spec: SmtSpec, nodes: list[Node], found: list[ExampleInput], try_: AskVerifier) -> ExampleReport:
    """Submits values that satisfy all assertions of a claim, and values that satisfy all but one. The solver finds
    them; returns the report on both."""
    plain = [node for node in nodes if head(node) not in ("minimize", "maximize", "check-sat")]
    asserted = _asserted(plain)
    questions = [("values that make all of it true", [*plain, _assertion(Atom("symbol", "false"), GOAL)])]
    for number, (at, _, body) in enumerate(asserted[:MOST], 1):
        others = [*_replaced(plain, at), _assertion(body, GOAL)]
        questions.append((f"values that make all of it true but {number}: {term(body)}", others))
    asked = [
        ExampleInput(
            "mutant", what, SmtSpec(claim=_text(made), goal=GOAL, division="total", effort=spec.effort), "entailed"
        )
        for what, made in questions
    ]
    answers = try_(asked)
    inputs, notes = list(found), []
    for place, one in enumerate(answers):
        values = _assignment(one, nodes)
        if values:
            inputs.append(ExampleInput("mutant" if place else "example", one.given.what, spec, values))
        elif place and one.accepted:
            notes.append(f"{one.given.what.partition('but ')[2]} follows from the others, so it is redundant")
        else:
            notes.append(f"no {one.given.what} were found: {one.reason}")
    tried = try_(distinct(inputs))
    if spec.question == "optimum":
        tried = [*tried, *_better(spec, nodes, tried, try_)]
    return ExampleReport(tuple(tried), (), tuple(notes))


def _better(spec: SmtSpec, nodes: list[Node], tried: list[CheckedExample], try_: AskVerifier) -> list[CheckedExample]:
    """Submits the better values that a verdict about an optimum names, until a verdict names none. Returns the last two
    examples."""
    more: list[CheckedExample] = []
    last = next((one for one in tried if one.given.sort == "example" and "better" in one.evidence), None)
    while last is not None and len(more) < BETTER:
        values = _assignment(last, nodes, "better")
        if not values:
            break
        one = try_([ExampleInput("example", "better values found by the solver", spec, values)])
        more += one
        last = one[0] if one and "better" in one[0].evidence else None
    return more[-2:]


def _assignment(tried: CheckedExample, nodes: list[Node], key: str = "counterexample") -> str:
    """Returns the values in a verdict's evidence as a submission. Empty unless every declared symbol has a value."""
    seen = tried.evidence.get(key)
    declared = [one.partition(":")[0] for one in parts_of(nodes).constants]
    if not isinstance(seen, dict) or any("any function" in one for one in parts_of(nodes).constants):
        return ""
    if not all(isinstance(seen.get(name), str) for name in declared):
        return ""
    return "(" + " ".join(f"({name_text(name)} {seen[name]})" for name in declared) + ")"


# forms


def _asserted(nodes: list[Node]) -> list[tuple[int, str, Node]]:
    """Returns index, name and term of each assertion in a claim; unnamed ones have an empty name."""
    return [
        (at, *named(node.items[-1]))
        for at, node in enumerate(nodes)
        if isinstance(node, Form) and head(node) == "assert"
    ]


def _named(nodes: list[Node]) -> dict[str, list[Node]]:
    """Returns the items after the name of each declaration and definition in a claim, by name."""
    return {
        node.items[1].text: list(node.items[2:])
        for node in nodes
        if isinstance(node, Form) and len(node.items) > 2 and isinstance(node.items[1], Atom)
    }


def _assertion(body: Node, name: str = "") -> Node:
    if name:
        body = _form("!", body, Atom("keyword", "named"), Atom("symbol", name))
    return _form("assert", body)


def _replaced(nodes: list[Node], at: int, *others: Node) -> list[Node]:
    return [*nodes[:at], *others, *nodes[at + 1 :]]


def _form(name: str, *rest: Node) -> Form:
    return Form((Atom("symbol", name), *rest))


def _text(nodes: list[Node]) -> str:
    return "\n".join(map(source, nodes))
