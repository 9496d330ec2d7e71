"""Parses text into S-expressions: SMT-LIB 2.6, section 3.1, in ASCII. Linear, without recursion, within limits.

No text reaches a solver's own parser: those exceed time and memory while parsing, where their limits do not apply, and
have commands that write files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from verifiers.contract.text import escaped
from verifiers.smt.language.errors import ClaimError

Kind = Literal["symbol", "numeral", "decimal", "hexadecimal", "binary", "keyword", "string"]
MAX_DIGITS = 4_000
"""Maximum length of a number: the limit of Python's decimal conversion."""
MAX_SYMBOL = 128

TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+ | ;[^\r\n]*)
    | (?P<open>\() | (?P<close>\))
    | \|(?P<quoted>[^|\\]*)\|
    | "(?P<string>(?:[^"]|"")*)"
    | (?P<decimal>(?:0|[1-9][0-9]*)\.[0-9]+)(?![^\s();"|])
    | (?P<numeral>0|[1-9][0-9]*)(?![^\s();"|])
    | \#x(?P<hexadecimal>[0-9a-fA-F]+)(?![^\s();"|])
    | \#b(?P<binary>[01]+)(?![^\s();"|])
    | :(?P<keyword>[a-zA-Z0-9~!@$%^&*_+=<>.?/-]+)(?![^\s();"|])
    | (?P<symbol>[a-zA-Z~!@$%^&*_+=<>.?/-][a-zA-Z0-9~!@$%^&*_+=<>.?/-]*)(?![^\s();"|])
    """,
    re.VERBOSE | re.ASCII,
)
SIGNED = re.compile(r"[+-][0-9]", re.ASCII)
"""Start of a symbol that people, and solvers, mistake for a number."""
QUOTED = re.compile(r"[\x20-\x7e\t\r\n]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    characters: int
    nodes: int
    """Maximum number of atoms and parentheses."""
    depth: int


CLAIM = ReaderLimits(characters=200_000, nodes=60_000, depth=1_000)
SUBMISSION = ReaderLimits(characters=60_000, nodes=20_000, depth=400)


@dataclass(frozen=True, slots=True)
class Atom:
    kind: Kind
    text: str
    """Text without bars, quotes, `:`, `#x` and `#b`."""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """A parenthesized list of SMT-LIB expressions."""

    items: tuple[Atom | Form, ...]
    at: int = 0


Node = Atom | Form


def read(text: str, limits: ReaderLimits) -> list[Node]:
    """Parses all SMT-LIB expressions of a text, in order. Raises ClaimError for invalid or unclosed ones, or beyond the
    limits."""
    if len(text) > limits.characters:
        raise ClaimError(f"longer than {limits.characters:,} characters")
    stack: list[list[Node]] = [[]]
    opened: list[int] = []
    at, nodes = 0, 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise ClaimError(f"cannot be read here: {escaped(text[at : at + 20])}", at)
        kind = found.lastgroup
        if kind != "blank":
            nodes += 1
            if nodes > limits.nodes:
                raise ClaimError(f"more than {limits.nodes:,} atoms and brackets", at)
        if kind == "open":
            if len(opened) >= limits.depth:
                raise ClaimError(f"nested more than {limits.depth:,} deep", at)
            opened.append(at)
            stack.append([])
        elif kind == "close":
            if not opened:
                raise ClaimError("unmatched closing parenthesis", at)
            items = stack.pop()
            stack[-1].append(Form(tuple(items), opened.pop()))
        elif kind != "blank":
            stack[-1].append(_atom(str(kind), found[str(kind)], at))
        at = found.end()
    if opened:
        raise ClaimError("unclosed parenthesis", opened[-1])
    return stack[0]


def _atom(kind: str, text: str, at: int) -> Atom:
    match kind:
        case "quoted" | "symbol":
            if len(text) > MAX_SYMBOL or not QUOTED.fullmatch(text):
                raise ClaimError(f"a symbol longer than {MAX_SYMBOL} characters, or not in ASCII", at)
            if kind == "symbol" and SIGNED.match(text):
                raise ClaimError(f"{escaped(text)} is a symbol in SMT-LIB, not a number: write (- 1) for minus one", at)
            if text.startswith((".", "@", "?t", "?v")):
                raise ClaimError("symbols that begin with `.`, `@`, `?t` or `?v` are reserved", at)
            return Atom("symbol", text, at)
        case "numeral" | "decimal" | "hexadecimal" | "binary":
            if len(text) > MAX_DIGITS:
                raise ClaimError(f"a number of more than {MAX_DIGITS:,} digits", at)
            return Atom(kind, text, at)
        case _:
            return Atom("keyword" if kind == "keyword" else "string", text, at)


def head(node: Node) -> str:
    """Returns the symbol at the start of a parenthesized list; empty for anything else."""
    match node:
        case Form((Atom("symbol", name), *_)):
            return name
    return ""


def atoms(nodes: Sequence[Node]) -> list[Atom]:
    """Returns all symbols, numbers and other atoms inside expressions, in order."""
    found: list[Atom] = []
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if isinstance(node, Atom):
            found.append(node)
        else:
            stack.extend(reversed(node.items))
    return found


def symbol(node: Node, what: str) -> str:
    """Returns the name if a parsed expression is a symbol. Raises ClaimError, naming `what` it should be, for any
    other."""
    if isinstance(node, Atom) and node.kind == "symbol":
        return node.text
    raise ClaimError(f"{what} is not a symbol", node.at)


def form(node: Node, what: str, length: int | None = None) -> Sequence[Node]:
    """Returns the items of a parenthesized list. Raises ClaimError for any other expression, or another length than
    `length`."""
    if isinstance(node, Form) and length in (None, len(node.items)):
        return node.items
    raise ClaimError(f"{what} is not a parenthesized list" + (f" of {length}" if length is not None else ""), node.at)
