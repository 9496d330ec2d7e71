"""Submissions parsed as data: definitions, values, or one term. Commands are refused, never executed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from common import strict_json
from common.strict_json import Bounds, NotJsonError
from verifiers.contract.text import escaped
from verifiers.smt.language.elaborate import Definition, Names
from verifiers.smt.language.errors import ClaimError, CommandError, FormError
from verifiers.smt.language.operators import OPERATORS
from verifiers.smt.language.reader import SUBMISSION, Atom, Form, Node, atoms, head, read
from verifiers.smt.language.script import COMMANDS, DEFINES, TAMPERING, definition
from verifiers.smt.language.terms import Function
from verifiers.smt.spec import SmtSpec

BOUNDS = Bounds(size=4 * SUBMISSION.characters)
FORM = "not in the required form"
STATUS = frozenset({"success", "sat", "unsat", "unknown"})
"""Words that solvers print before definitions."""
AUXILIARY = re.compile(r"[^!]+!\d+")
"""Names of the auxiliary functions in Z3's models: `k!0`, `f!12`."""
IRRATIONAL = "root-obj"
SPECIAL = frozenset({"let", "forall", "exists", "as", "_"})


def read_definitions(text: str, wanted: Sequence[Function], names: Names) -> dict[str, Definition]:
    """Parses a submission that must define each function of `wanted` once, and nothing else. Raises ClaimError if it
    does not, CommandError for an SMT-LIB command. Accepts `(define-fun x () Int 5)`, bare or in parentheses, `((x 5) (y
    true))`, a JSON object of terms, or the output of Z3 and cvc5: after `sat`, with the claim's own definitions
    (ignored) and objectives. Auxiliary functions that Z3 made up come first, each after those that it uses."""
    by_name = {function.name: function for function in wanted}
    nodes = _from_json(text) if text.lstrip().startswith("{") else read(text, SUBMISSION)
    found: dict[str, Definition] = {}
    made_up: dict[str, Definition] = {}
    for node in _opened(nodes):
        if head(node) == "objectives":
            continue
        made = _one(node, by_name, names)
        if made.name in names.definitions:
            continue
        if made.name not in by_name and not _is_auxiliary(made, names):
            raise ClaimError(f"unexpected definition of {escaped(made.name)}", node.at)
        if made.name in found or made.name in made_up:
            raise ClaimError(f"{escaped(made.name)} is given twice", node.at)
        if any(atom.text == IRRATIONAL for atom in atoms([made.body])) and IRRATIONAL not in names.functions:
            raise ClaimError(
                f"the value of {escaped(made.name)} is irrational ({IRRATIONAL}), and values here are rational numbers:"
                " nothing is proved of it",
                node.at,
            )
        (found if made.name in by_name else made_up)[made.name] = made
    missing = [name for name in by_name if name not in found]
    if missing:
        raise ClaimError(f"no definition of {escaped(', '.join(missing[:5]))}")
    return {made.name: made for made in _in_order(made_up)} | found


def seeing(given: Mapping[str, Definition], uses: Iterable[str], wanted: Sequence[Function]) -> dict[str, Definition]:
    """Restricts each submitted definition to symbols that it may use: those in `uses`, and auxiliary functions defined
    before it."""
    asked = {function.name for function in wanted}
    before = set(uses)
    seen: dict[str, Definition] = {}
    for name, each in given.items():
        seen[name] = replace(each, sees=frozenset(before))
        if name not in asked:
            before.add(name)
    return seen


def _is_auxiliary(made: Definition, names: Names) -> bool:
    known = made.name in names.functions or made.name in names.sorts
    return bool(made.parameters) and AUXILIARY.fullmatch(made.name) is not None and not known


def _in_order(made_up: Mapping[str, Definition]) -> list[Definition]:
    """Sorts auxiliary functions so that each comes after those that it uses. Raises ClaimError for a cycle."""
    uses = {name: {atom.text for atom in atoms([each.body])} & set(made_up) for name, each in made_up.items()}
    ordered: list[Definition] = []
    while uses:
        free = [name for name, others in uses.items() if not others]
        if not free:
            raise ClaimError(f"{escaped(next(iter(uses)))} is defined by itself")
        for name in free:
            del uses[name]
            ordered.append(made_up[name])
        for others in uses.values():
            others.difference_update(free)
    return ordered


def read_term(text: str) -> Node:
    """Parses a text as one SMT-LIB expression. Raises ClaimError if it is none or several, CommandError if it is a
    command."""
    nodes = read(text, SUBMISSION)
    for node in nodes:
        refuse_command(node)
    if len(nodes) != 1:
        raise ClaimError(f"{len(nodes)} expressions where one is expected")
    return nodes[0]


def refuse_command(node: Node) -> None:
    """Raises CommandError if a submitted expression is an SMT-LIB command."""
    name = head(node)
    if name in COMMANDS:
        raise CommandError(f"a command where terms are expected: {name}", node.at, tampering=name in TAMPERING)


def check_language(spec: SmtSpec, bodies: Sequence[Node]) -> None:
    """Raises FormError if submitted terms have too many symbols, or use operators that the spec does not allow."""
    found = atoms(bodies)
    if spec.max_size is not None and len(found) > spec.max_size:
        raise FormError(f"{FORM}: {len(found)} symbols and numbers, where {spec.max_size} are allowed")
    names = list(dict.fromkeys(atom.text for atom in found if atom.kind == "symbol"))
    extra = [name for name in names if name in spec.forbidden][:1]
    if not extra and spec.allowed is not None:
        extra = sorted({name for name in names if name in OPERATORS or name in SPECIAL}.difference(spec.allowed))[:5]
    if extra:
        raise FormError(f"{FORM}: {escaped(', '.join(extra))} may not be used here")


def _opened(nodes: Sequence[Node]) -> Sequence[Node]:
    """Returns the entries of a submission, without enclosing parentheses, `(model ...)` or a solver's status words.
    Raises CommandError for SMT-LIB commands other than definitions."""
    first = next((at for at, node in enumerate(nodes) if not _is_status(node)), len(nodes))
    entries: list[Node] = []
    for node in nodes[first:]:
        if head(node) not in DEFINES:
            refuse_command(node)
        items = node.items if isinstance(node, Form) else ()
        if head(node) == "model":
            entries += items[1:]
        elif isinstance(node, Form) and all(isinstance(each, Form) for each in items):
            entries += items
        else:
            entries.append(node)
    return entries


def _is_status(node: Node) -> bool:
    return isinstance(node, Atom) and node.kind == "symbol" and node.text in STATUS


def _one(node: Node, wanted: Mapping[str, Function], names: Names) -> Definition:
    if head(node) in DEFINES:
        return definition(node, names)
    refuse_command(node)
    match node:
        case Form((Atom("symbol", name), body)):
            if name not in wanted:
                raise ClaimError(f"unexpected definition of {escaped(name)}", node.at)
            if wanted[name].domain:
                raise ClaimError(f"{escaped(name)} is a function: define it with define-fun", node.at)
            return Definition(name, (), wanted[name].range, body)
    raise ClaimError("not a definition such as (define-fun x () Int 5)", node.at)


def _from_json(text: str) -> list[Node]:
    if len(text) > SUBMISSION.characters:
        raise ClaimError(f"longer than {SUBMISSION.characters:,} characters")
    try:
        values = strict_json.read(text, BOUNDS, parse_int=_number, parse_float=_number)
    except NotJsonError as error:
        raise ClaimError(f"starts like a JSON object but is not one: {error}") from None
    made: list[Node] = []
    for name, value in values.items():
        written = str(value).lower() if isinstance(value, bool) else value
        if not isinstance(written, str):
            raise ClaimError(f"the value of {escaped(name)} is neither text nor a number")
        body = read_term(written)
        if "|" in name or "\\" in name:
            raise ClaimError(f"{escaped(name)} is not a valid symbol")
        made.append(Form((*read(f"|{name}|", SUBMISSION), body)))
    return made


def _number(text: str) -> str:
    """Converts a JSON number to an SMT-LIB term: `-5` becomes `(- 5)`."""
    return f"(- {text[1:]})" if text.startswith("-") else text
