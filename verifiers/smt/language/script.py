"""Reads commands into a claim: declarations, assertions, an objective. Unlisted commands are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verifiers.contract.text import escaped
from verifiers.smt.language.elaborate import SORTS, Definition, Elaborator, Names
from verifiers.smt.language.errors import ClaimError, CommandError
from verifiers.smt.language.reader import CLAIM, Atom, Form, Node, form, head, read, symbol
from verifiers.smt.language.terms import BOOL, INT, REAL, Function, Sort, Term, Terms

LOGIC = re.compile(r"ALL|(QF_)?(A|AX)?(UF)?(BV)?(LIA|LRA|LIRA|NIA|NRA|NIRA|IDL|RDL)?", re.ASCII)
MAX_ASSERTIONS = 5_000
TAMPERING = frozenset(
    {
        "set-option", "reset", "reset-assertions", "exit", "echo", "include", "eval", "push", "pop", "simplify",
        "display", "load", "get-value", "get-model", "get-proof", "get-unsat-core", "get-unsat-assumptions",
        "get-info", "get-option", "get-assertions", "get-assignment", "apply", "check-sat-using",
        "check-sat-assuming", "declare-tactic", "model-add", "model-del", "query",
    }
)  # fmt: skip
"""Commands that control a solver or make it write, instead of stating a claim."""
COMMANDS = TAMPERING | frozenset(
    {
        "assert", "assert-soft", "check-sat", "declare-const", "declare-fun", "declare-sort", "declare-datatype",
        "declare-datatypes", "define-const", "define-fun", "define-fun-rec", "define-funs-rec", "define-sort",
        "set-info", "set-logic", "minimize", "maximize",
    }
)  # fmt: skip
DEFINES = ("define-fun", "define-const")


@dataclass(frozen=True, slots=True)
class Assertion:
    name: str
    """Given name, or `assertion N`, counted from one."""
    term: Term
    body: Node
    """Source expression, without its name."""


@dataclass(frozen=True, slots=True)
class OptimizationGoal:
    term: Term
    least: bool


@dataclass(slots=True)
class SmtClaim:
    terms: Terms = field(default_factory=Terms)
    names: Names = field(default_factory=Names)
    logic: str = ""
    info: dict[str, str] = field(default_factory=dict)
    assertions: list[Assertion] = field(default_factory=list)
    objective: OptimizationGoal | None = None
    declared: list[Function] = field(default_factory=list)
    """Declared functions in order, including those that a submission defines."""
    elaborator: Elaborator = field(init=False)

    def __post_init__(self) -> None:
        self.elaborator = Elaborator(self.terms, self.names)


def read_claim(
    nodes: Sequence[Node], fills: Mapping[str, Definition] | None = None, terms: Terms | None = None
) -> SmtClaim:
    """Converts the parsed commands of an SMT-LIB script to a claim. Definitions in `fills` replace declared symbols.
    Raises ClaimError for an invalid script. A fill must have the arguments and sorts of its declaration. Claims whose
    terms are used together share `terms`. Fills without a declaration are auxiliary functions of the others."""
    claim = SmtClaim(terms or Terms())
    fills = fills or {}
    declared = {symbol(node.items[1], "a name") for node in nodes if isinstance(node, Form) and len(node.items) > 1
                and head(node) in ("declare-const", "declare-fun")}  # fmt: skip
    claim.names.definitions.update((name, each) for name, each in fills.items() if name not in declared)
    ended = False
    for node in nodes:
        items = form(node, "a command")
        if not items:
            raise ClaimError("an empty command", node.at)
        command = symbol(items[0], "a command")
        if ended:
            raise CommandError("nothing may follow check-sat", node.at)
        match command:
            case "set-logic":
                claim.logic = _logic(form(node, command, 2)[1])
            case "set-info":
                _info(claim, items, node.at)
            case "declare-sort":
                _declare_sort(claim, node)
            case "declare-const" | "declare-fun":
                _declare(claim, command, node, fills)
            case "define-const" | "define-fun":
                define(claim, definition(node, claim.names), node.at)
            case "assert":
                _assert(claim, node)
            case "minimize" | "maximize":
                if claim.objective is not None:
                    raise ClaimError("a second objective", node.at)
                term = claim.elaborator.term(form(node, command, 2)[1])
                if term.sort not in (INT, REAL) and term.sort.name != "BitVec":
                    raise ClaimError("an objective must be a number or a bit vector", node.at)
                claim.objective = OptimizationGoal(term, command == "minimize")
            case "check-sat":
                form(node, command, 1)
                ended = True
            case _:
                raise CommandError(
                    f"the command {escaped(command)} is not allowed in a claim", node.at, tampering=command in TAMPERING
                )
    return claim


def definition(node: Node, names: Names) -> Definition:
    """Parses a definition, `(define-fun f ((x Int)) Int x)` or `(define-const c Int 1)`. Raises ClaimError for anything
    else."""
    items = form(node, "a definition")
    match items:
        case (Atom("symbol", "define-const"), name, sort, body):
            return Definition(symbol(name, "a name"), (), names.sort(sort), body)
        case (Atom("symbol", "define-fun"), name, parameters, sort, body):
            variables = tuple(names.variables(parameters, "a parameter"))
            return Definition(symbol(name, "a name"), variables, names.sort(sort), body)
    raise ClaimError("not a definition", node.at)


def define(claim: SmtClaim, made: Definition, at: int) -> None:
    """Adds a definition to a claim after checking its sorts. Raises ClaimError if the name is taken or the body is
    invalid; it may use only earlier symbols."""
    claim.names.free(made.name, at)
    claim.elaborator.check(made)
    claim.names.definitions[made.name] = made


def _logic(node: Node) -> str:
    name = symbol(node, "a logic")
    if not LOGIC.fullmatch(name) or not name:
        raise ClaimError(f"unsupported logic {escaped(name)}", node.at)
    return name


def _info(claim: SmtClaim, items: Sequence[Node], at: int) -> None:
    if len(items) not in (2, 3) or not (isinstance(items[1], Atom) and items[1].kind == "keyword"):
        raise ClaimError("set-info takes a keyword and a value", at)
    value = items[2] if len(items) == 3 else None
    if isinstance(value, Atom):
        claim.info[items[1].text] = value.text


def _declare_sort(claim: SmtClaim, node: Node) -> None:
    _, name_node, arity = form(node, "declare-sort", 3)
    name = symbol(name_node, "a sort")
    if not (isinstance(arity, Atom) and arity.kind == "numeral" and arity.text == "0"):
        raise ClaimError("declared sorts take no arguments", node.at)
    if name in SORTS or name in claim.names.sorts:
        raise ClaimError(f"the sort {escaped(name)} is already declared", node.at)
    claim.names.sorts[name] = Sort(name, (), declared=True)


def _declare(claim: SmtClaim, command: str, node: Node, fills: Mapping[str, Definition]) -> None:
    items = form(node, command, 3 if command == "declare-const" else 4)
    name = claim.names.free(symbol(items[1], "a name"), node.at)
    domain = tuple(map(claim.names.sort, form(items[2], "argument sorts"))) if command == "declare-fun" else ()
    function = Function(name, domain, claim.names.sort(items[-1]))
    claim.declared.append(function)
    fill = fills.get(name)
    if fill is None:
        claim.names.functions[name] = function
        return
    if tuple(sort for _, sort in fill.parameters) != domain or fill.range != function.range:
        raise ClaimError(f"{escaped(name)} is defined with sorts that differ from its declaration")
    define(claim, fill, node.at)


def _assert(claim: SmtClaim, node: Node) -> None:
    body = form(node, "assert", 2)[1]
    if len(claim.assertions) >= MAX_ASSERTIONS:
        raise ClaimError(f"more than {MAX_ASSERTIONS:,} assertions", node.at)
    name = f"assertion {len(claim.assertions) + 1}"
    match body:
        case Form((Atom("symbol", "!"), inner, Atom("keyword", "named"), Atom("symbol", given))):
            name, body = given, inner
            if any(each.name == name for each in claim.assertions):
                raise ClaimError(f"a second assertion named {escaped(name)}", node.at)
    term = claim.elaborator.term(body)
    if term.sort != BOOL:
        raise ClaimError(f"an assertion of sort {term.sort}", node.at)
    claim.assertions.append(Assertion(name, term, body))


def read_text(text: str) -> SmtClaim:
    """Parses a whole SMT-LIB script as a claim. Raises ClaimError if it is invalid."""
    return read_claim(read(text, CLAIM))
