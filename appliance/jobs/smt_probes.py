"""Claims next to a claim: a stronger goal, an assumption less, the opposite. The solvers decide on each.

A changed claim says more than the job's own, so a sharp claim is one whose changed ones are refuted; one that is proved
as well says that the claim could have said more, or assumed less. For values (`model`, `optimum`) the solver's own
counter-examples are handed in: values that make everything true, and values that make everything but one thing true.
"""

from __future__ import annotations

from collections.abc import Iterator

from appliance.jobs.probes import Probe, Shown, Tried, Try, distinct
from appliance.jobs.smt_words import named, parts_of, sort_words, source, term
from verifiers.smt.errors import ClaimError
from verifiers.smt.reader import CLAIM, Atom, Form, Node, read
from verifiers.smt.spec import SmtSpec

MOST = 8
"""Assumptions, or places, that are changed."""
BETTER = 12
"""Times that better values are asked for."""
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


def claims(spec: SmtSpec, answer: str | None, try_: Try) -> Shown:
    found = [Probe("example", "what the job came to", spec, answer)] if answer is not None else []
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
        return Shown((), (), (f"no neighbours of this claim could be made: {error}",))


def _shown(try_: Try, probes: list[Probe]) -> Shown:
    return Shown(tuple(tried.look() for tried in try_(distinct(probes))))


# what follows from assumptions


def _entailed(spec: SmtSpec, nodes: list[Node], try_: Try) -> Shown:
    own = Probe("example", "the claim as it stands", spec, "entailed", _said(nodes, spec.goal))
    probes = [own, *(_claim(spec, what, changed) for what, changed in _stronger(spec, nodes))]
    tried = try_(distinct(probes))
    first: tuple[str, ...] = ()
    if tried and not tried[0].accepted and tried[0].outcome == "fail":
        first = (f"THE CLAIM IS NOT PROVED: {_witnessed(tried[0]).reason}",)
    return Shown(tuple(_witnessed(one).look() for one in tried), first)


def _witnessed(tried: Tried) -> Tried:
    """With the values of a counter-example in its reason."""
    seen = tried.evidence.get("counterexample")
    values = ", ".join(f"{name} = {value}" for name, value in seen.items()) if isinstance(seen, dict) else ""
    return tried._replace(reason=f"{tried.reason}: {values}") if values else tried


def _claim(spec: SmtSpec, what: str, nodes: list[Node]) -> Probe:
    changed = spec.model_copy(update={"claim": _text(nodes)})
    return Probe("mutant", what, changed, "entailed", _said(nodes, spec.goal))


def _said(nodes: list[Node], goal: str) -> str:
    """Assumptions and goal, in one line."""
    place = _goal_place(nodes, goal)
    assumed = [term(named(_body(node))[1]) for at, node in enumerate(nodes) if _is_assert(node) and at != place]
    what = term(_goal_of(nodes[place], goal)) if place is not None else ""
    return f"{'; '.join(assumed)}  |=  {what}"


def _stronger(spec: SmtSpec, nodes: list[Node]) -> Iterator[tuple[str, list[Node]]]:
    place = _goal_place(nodes, spec.goal)
    if place is None:
        return
    goal = _goal_of(nodes[place], spec.goal)

    def with_goal(other: Node) -> list[Node]:
        return [*nodes[:place], _with_goal(nodes[place], spec.goal, other), *nodes[place + 1 :]]

    yield "the opposite of the goal", with_goal(_form("not", goal))
    for what, other in _strengthened(goal):
        yield f"a stronger goal: {what}", with_goal(other)
    asserts = [at for at, node in enumerate(nodes) if _is_assert(node) and at != place][:MOST]
    for number, at in enumerate(asserts, 1):
        body = named(_body(nodes[at]))[1]
        yield f"without assumption {number}: {term(body)}", [*nodes[:at], *nodes[at + 1 :]]
    for number, at in enumerate(asserts, 1):
        body = named(_body(nodes[at]))[1]
        match body:
            case Form((Atom("symbol", name), *rest)) if name in WEAKER:
                other = _form(WEAKER[name], *rest)
                yield (
                    f"assuming less than assumption {number}: {term(other)} instead of {term(body)}",
                    [*nodes[:at], _form("assert", other), *nodes[at + 1 :]],
                )
            case _:
                pass


def _strengthened(goal: Node) -> Iterator[tuple[str, Node]]:
    """Goals from which this one follows."""
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
        case _:
            pass
    match goal:
        case Form((Atom("symbol", ">" | ">=" as name), one, Atom("numeral", digits))):
            made = _form(name, one, Atom("numeral", str(int(digits) + 1), 0))
            yield term(made), made
        case Form((Atom("symbol", "<" | "<=" as name), one, Atom("numeral", digits))) if int(digits) > 0:
            made = _form(name, one, Atom("numeral", str(int(digits) - 1), 0))
            yield term(made), made
        case _:
            pass


# holes, terms


def _fills(spec: SmtSpec, nodes: list[Node]) -> Iterator[Probe]:
    """Constants in all the holes."""
    declared = {
        node.items[1].text: node
        for node in nodes
        if isinstance(node, Form) and len(node.items) > 2 and isinstance(node.items[1], Atom)
    }
    for choice in (0, 1):
        lines = []
        for hole in spec.holes:
            match declared.get(hole):
                case Form((Atom("symbol", "declare-fun"), _, Form(domain), result)):
                    pass
                case Form((Atom("symbol", "declare-const"), _, result)):
                    domain = ()
                case _:
                    return
            values = CONSTANTS.get(sort_words(result))
            if values is None:
                return
            takes = " ".join(f"(a{number} {source(sort)})" for number, sort in enumerate(domain))
            lines.append(f"(define-fun {hole} ({takes}) {source(result)} {values[choice]})")
        yield Probe("mutant", "a constant for everything that is wanted", spec, "\n".join(lines))


def _terms(spec: SmtSpec, nodes: list[Node]) -> Iterator[Probe]:
    body = next(
        (
            node.items[-1]
            for node in nodes
            if isinstance(node, Form) and len(node.items) > 2 and isinstance(node.items[1], Atom)
            and node.items[1].text == spec.reference
        ),
        None,
    )  # fmt: skip
    if body is None:
        return
    yield Probe("example", "the reference itself", spec, source(body))
    turned = next(_changes(body, swap=True), None)
    if turned is not None:
        yield Probe("example", f"the reference with {turned[0]}", spec, source(turned[1]))
    else:
        same = _form("ite", _form("=", body, body), body, body)
        yield Probe("example", "the reference in a choice between twice the same", spec, source(same))
    for number, (what, made) in enumerate(_changes(body, swap=False)):
        if number < MOST:
            yield Probe("mutant", f"the reference with {what}", spec, source(made))


def _changes(node: Node, *, swap: bool) -> Iterator[tuple[str, Node]]:
    """The term with one thing changed: another operator, another number; or, to `swap`, another order."""
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
            yield f"{int(digits) + 1} instead of {digits}", Atom("numeral", str(int(digits) + 1), 0)
        case _:
            pass


# values


def _values(spec: SmtSpec, nodes: list[Node], found: list[Probe], try_: Try) -> Shown:
    """What makes all of it true, and what makes all of it true but one thing."""
    plain = [node for node in nodes if not _is(node, "minimize", "maximize", "check-sat")]
    asserts = [at for at, node in enumerate(plain) if _is_assert(node)]
    questions = [("values that make all of it true", [*plain, _goal(Atom("symbol", "false", 0))])]
    for number, at in enumerate(asserts[:MOST], 1):
        body = named(_body(plain[at]))[1]
        others = [*plain[:at], *plain[at + 1 :], _goal(body)]
        questions.append((f"values that make all of it true but {number}: {term(body)}", others))
    asked = [
        Probe("mutant", what, SmtSpec(claim=_text(made), goal=GOAL, division="total", effort=spec.effort), "entailed")
        for what, made in questions
    ]
    answers = try_(asked)
    probes, notes = list(found), []
    for place, one in enumerate(answers):
        values = _assignment(one, nodes)
        if values:
            probes.append(Probe("mutant" if place else "example", one.probe.what, spec, values))
        elif place and one.accepted:
            notes.append(
                f"{asserts and one.probe.what.partition('but ')[2]} follows from the others: it asks nothing more"
            )
        else:
            notes.append(f"no {one.probe.what} were found: {one.reason}")
    tried = try_(distinct(probes))
    if spec.question == "optimum":
        tried = [*tried, *_better(spec, nodes, tried, try_)]
    return Shown(tuple(one.look() for one in tried), (), tuple(notes))


def _better(spec: SmtSpec, nodes: list[Node], tried: list[Tried], try_: Try) -> list[Tried]:
    """From values that can be bettered to those that cannot."""
    more: list[Tried] = []
    last = next((one for one in tried if one.probe.sort == "example" and "better" in one.evidence), None)
    while last is not None and len(more) < BETTER:
        values = _assignment(last, nodes, "better")
        if not values:
            break
        one = try_([Probe("example", "better values, as the solver found them", spec, values)])
        more += one
        last = one[0] if one and "better" in one[0].evidence else None
    return more[-2:]


def _assignment(tried: Tried, nodes: list[Node], key: str = "counterexample") -> str:
    """The values of a counter-example, as they are handed in; empty where there are none for everything."""
    seen = tried.evidence.get(key)
    declared = [one.partition(":")[0] for one in parts_of(nodes).constants]
    if not isinstance(seen, dict) or any("any function" in one for one in parts_of(nodes).constants):
        return ""
    if not all(isinstance(seen.get(name), str) for name in declared):
        return ""
    return "(" + " ".join(f"({source(Atom('symbol', name, 0))} {seen[name]})" for name in declared) + ")"


# forms


def _goal(node: Node) -> Node:
    keyword = Atom("keyword", "named", 0)
    return _form("assert", Form((Atom("symbol", "!", 0), node, keyword, Atom("symbol", GOAL, 0)), 0))


def _goal_place(nodes: list[Node], goal: str) -> int | None:
    places = [at for at, node in enumerate(nodes) if _is_assert(node)]
    return next((at for at in places if named(_body(nodes[at]))[0] == goal), places[-1] if places else None)


def _goal_of(node: Node, goal: str) -> Node:
    name, body = named(_body(node))
    match body:
        case Form((Atom("symbol", "not"), inner)) if name != goal:
            return inner
    return body


def _with_goal(node: Node, goal: str, other: Node) -> Node:
    name, _ = named(_body(node))
    if name != goal:
        return _form("assert", _form("not", other))
    keyword = Atom("keyword", "named", 0)
    return _form("assert", Form((Atom("symbol", "!", 0), other, keyword, Atom("symbol", name, 0)), 0))


def _is_assert(node: Node) -> bool:
    return _is(node, "assert")


def _is(node: Node, *commands: str) -> bool:
    match node:
        case Form((Atom("symbol", name), *_)):
            return name in commands
    return False


def _body(node: Node) -> Node:
    return node.items[-1] if isinstance(node, Form) and node.items else node


def _form(name: str, *rest: Node) -> Form:
    return Form((Atom("symbol", name, 0), *rest), 0)


def _text(nodes: list[Node]) -> str:
    return "\n".join(map(source, nodes))
