"""What a submission says, read as data: definitions, values, or one term. A command in it is refused, never obeyed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from verifiers.answers.reading import clipped
from verifiers.smt.elaborate import Definition, Names, atoms
from verifiers.smt.errors import ClaimError, CommandError, FormError
from verifiers.smt.operators import OPERATORS
from verifiers.smt.reader import SUBMISSION, Atom, Form, Node, read
from verifiers.smt.script import COMMANDS, TAMPERING, definition
from verifiers.smt.spec import SmtSpec
from verifiers.smt.terms import Function

SPECIAL = frozenset({"let", "forall", "exists", "as", "_"})


def read_definitions(text: str, wanted: Sequence[Function], names: Names) -> dict[str, Definition]:
    """A definition for each of these and for nothing else, each once. Raises ClaimError and CommandError.

    They come as `(define-fun x () Int 5)`, bare or in one bracket, as `((x 5) (y true))`, or as a JSON object of terms.
    """
    by_name = {function.name: function for function in wanted}
    nodes = _from_json(text) if text.lstrip().startswith("{") else read(text, SUBMISSION)
    found: dict[str, Definition] = {}
    for node in _opened(nodes):
        made = _one(node, by_name, names)
        if made.name not in by_name:
            raise ClaimError(f"nothing was asked about {clipped(made.name)}", node.at)
        if made.name in found:
            raise ClaimError(f"{clipped(made.name)} is given twice", node.at)
        found[made.name] = made
    missing = [name for name in by_name if name not in found]
    if missing:
        raise ClaimError(f"nothing is said of {clipped(', '.join(missing[:5]))}")
    return found


def read_term(text: str) -> Node:
    """The one expression that this text is. Raises ClaimError and CommandError."""
    nodes = read(text, SUBMISSION)
    for node in nodes:
        refuse_command(node)
    if len(nodes) != 1:
        raise ClaimError(f"{len(nodes)} expressions where one is asked for")
    return nodes[0]


def refuse_command(node: Node) -> None:
    """Raises CommandError where this expression is a command."""
    if isinstance(node, Form) and node.items and isinstance(node.items[0], Atom):
        head = node.items[0].text
        if node.items[0].kind == "symbol" and head in COMMANDS:
            raise CommandError(f"a command where terms are asked for: {head}", node.at, tampering=head in TAMPERING)


def check_language(spec: SmtSpec, bodies: Sequence[Node]) -> None:
    """Raises FormError where terms use what the spec does not allow, or are larger than it allows."""
    found = atoms(bodies)
    if spec.max_size is not None and len(found) > spec.max_size:
        raise FormError(f"{len(found)} symbols and numbers, where {spec.max_size} are allowed")
    names = Counter(atom.text for atom in found if atom.kind == "symbol")
    for name in names:
        if name in spec.forbidden:
            raise FormError(f"{clipped(name)} may not be used here")
    if spec.allowed is not None:
        heads = {atom.text for atom in found if atom.kind == "symbol" and _is_operator(atom.text)}
        extra = sorted(heads - set(spec.allowed))
        if extra:
            raise FormError(f"{clipped(', '.join(extra[:5]))} may not be used here")


def _is_operator(name: str) -> bool:
    return name in OPERATORS or name in SPECIAL


def _opened(nodes: Sequence[Node]) -> list[Node]:
    """The entries, without the bracket or the `(model ...)` around them all."""
    for node in nodes:
        _refuse_other_command(node)
    if len(nodes) == 1 and isinstance(nodes[0], Form):
        items = nodes[0].items
        if items and isinstance(items[0], Atom) and items[0].text == "model":
            return list(items[1:])
        if all(isinstance(each, Form) for each in items):
            return list(items)
    return list(nodes)


def _refuse_other_command(node: Node) -> None:
    match node:
        case Form((Atom("symbol", "define-fun" | "define-const"), *_)):
            return
    refuse_command(node)


def _one(node: Node, wanted: Mapping[str, Function], names: Names) -> Definition:
    _refuse_other_command(node)
    match node:
        case Form((Atom("symbol", "define-fun" | "define-const"), *_)):
            return definition(node, names)
        case Form((Atom("symbol", name), body)):
            if name not in wanted:
                raise ClaimError(f"nothing was asked about {clipped(name)}", node.at)
            if wanted[name].domain:
                raise ClaimError(f"{clipped(name)} is a function: define it with define-fun", node.at)
            return Definition(name, (), wanted[name].range, body)
    raise ClaimError("not a definition such as (define-fun x () Int 5)", node.at)


def _from_json(text: str) -> list[Node]:
    if len(text) > SUBMISSION.characters:
        raise ClaimError(f"longer than {SUBMISSION.characters:,} characters")
    try:
        pairs = json.loads(text, object_pairs_hook=list, parse_int=_Literal, parse_float=_Literal)
    except (ValueError, RecursionError):
        raise ClaimError("begins like a JSON object and is none") from None
    made: list[Node] = []
    for pair in pairs:
        if not isinstance(pair, tuple):
            raise ClaimError("a JSON object of names and terms was expected")
        name, value = pair
        text_of = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else value
        if not isinstance(text_of, str):
            raise ClaimError(f"the value of {clipped(name)} is neither text nor a number")
        if isinstance(value, _Literal) and value.startswith("-"):
            text_of = f"(- {value[1:]})"
        body = read_term(text_of)
        (head,) = read(f"|{name}|", SUBMISSION) if "|" not in name and "\\" not in name else (None,)
        if head is None:
            raise ClaimError(f"{clipped(name)} is no symbol")
        made.append(Form((head, body), 0))
    return made


class _Literal(str):
    """A number as JSON has it, not yet read."""
