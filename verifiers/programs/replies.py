"""Parses the harness's reply to one call, as hostile data, on the judge's side.

A reply is one JSON text after the call's nonce. It may be forged: that answers only the one call that was made, the
same as returning a value. Invariants: for any text, parsing ends quickly, evaluates nothing, and returns a
`ProgramReply` or None.

Tagged values, as `verifiers.programs.harness` writes them: a list is a list; an object has one key: `t` a tuple, `d`
pairs, `s` a set, `b` bytes in hex, `u` text as UTF-8 in hex if it is not plainly printable, `i` a long integer in hex,
`f` a float that is not finite, `c` two floats.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Literal, NamedTuple

from runtime.sandbox import CallStatus
from verifiers.contract.text import clip
from verifiers.programs.data.values import (
    LONG_BITS,
    MOST_DEPTH,
    MOST_ITEMS,
    Arguments,
    DictPairs,
    Elements,
    NotPlainError,
    Value,
    literal,
)

MOST_CHARS = 8 << 20
SIGNALS, SIGNAL_CHARS, MESSAGE_CHARS = 40, 120, 300
SHOWN = 120
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
"""Address in an object's repr, which differs every time."""


class ProgramReply(NamedTuple):
    """Result of one call of a submitted program."""

    kind: Literal["value", "raised", "odd", "loaded", "lost"]
    """Kind of result. `odd`: a value that is not plain data was returned. `loaded`: the source ran and defines the
    wanted functions. `lost`: no readable reply; `status` says why."""
    value: Value = None
    text: str = ""
    """Message of the exception, or type of the returned value. Hostile."""
    names: tuple[str, ...] = ()
    """Type of the exception and its bases, nearest first. Hostile."""
    signals: tuple[str, ...] = ()
    """Anomalies that the harness noticed since the last reply. Hostile."""
    status: CallStatus = CallStatus.OK
    forged: bool = False
    """True if its nonce was printed more than once."""
    chars: int = 0
    """Length of the reply, in characters received."""


def mark(nonce: str) -> str:
    return f"\x1e{nonce} "


def find(output: str, nonce: str) -> ProgramReply:
    """Returns the reply to the call with this nonce; `lost` if that is unreadable, or the nonce not printed once."""
    pieces = output.split(mark(nonce))
    found = parse(pieces[1].partition("\x1e")[0]) if len(pieces) == 2 else None
    found = found and found._replace(chars=len(output))
    why = "it ended without a reply" if len(pieces) == 1 else "its reply cannot be read"
    return found or ProgramReply("lost", text=why, forged=len(pieces) > 2)


def parse(text: str) -> ProgramReply | None:
    """Parses a reply that came out of a program's sandbox. Returns None for anything invalid."""
    if len(text) > MOST_CHARS:
        return None
    try:
        found = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        if type(found) is not dict:
            return None
        signals = tuple(_text(signal, SIGNAL_CHARS) for signal in _list(found.get("s", []))[:SIGNALS])
        if "v" in found:
            return ProgramReply("value", value=_ReplyReader().value(found["v"], 0), signals=signals)
        if "r" in found:
            names = tuple(_text(name, SIGNAL_CHARS) for name in _list(found["r"])[:16])
            return ProgramReply("raised", text=_text(found.get("m", ""), MESSAGE_CHARS), names=names, signals=signals)
        if "x" in found:
            return ProgramReply("odd", text=_text(found["x"], MESSAGE_CHARS), signals=signals)
        if "l" in found:
            return ProgramReply("loaded", signals=signals)
    except (ValueError, RecursionError, OverflowError):
        return None
    return None


def _refuse(constant: str) -> Any:
    raise NotPlainError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise NotPlainError("beyond the range of floats")
    return found


def _list(found: Any) -> list[Any]:
    if type(found) is not list:
        raise NotPlainError("a list was expected")
    return found


def _text(found: Any, most: int) -> str:
    if type(found) is dict and found.keys() == {"u"}:
        found = _decoded(found["u"])
    if type(found) is not str:
        raise NotPlainError("text was expected")
    return found[:most]


def _decoded(found: Any) -> str:
    if type(found) is not str:
        raise NotPlainError("text was expected")
    return bytes.fromhex(found).decode("utf-8", "surrogatepass")


def tagged(arguments: Arguments) -> str:
    """Renders positional and named arguments as one text for the harness."""
    return json.dumps([{"t": [_tagged(value) for value in arguments.positional]}, _tagged(DictPairs(arguments.named))])


def _tagged(value: Value) -> Any:
    match value:
        case list():
            return [*map(_tagged, value)]
        case tuple():
            return {"t": [*map(_tagged, value)]}
        case DictPairs(pairs):
            return {"d": [[_tagged(key), _tagged(item)] for key, item in pairs]}
        case Elements(items):
            return {"s": [*map(_tagged, items)]}
        case bytes():
            return {"b": value.hex()}
        case complex():
            return {"c": [repr(value.real), repr(value.imag)]}
        case float() if not math.isfinite(value):
            return {"f": repr(value)}
        case int() if value.bit_length() > LONG_BITS:
            return {"i": hex(value)}
        case _:
            return value


PLAIN = frozenset([type(None), bool, int, float, str])
"""Types that are the same in JSON and Python."""


class _ReplyReader:
    def __init__(self) -> None:
        self._items = 0

    def value(self, found: Any, depth: int) -> Value:
        self._items += 1
        if depth > MOST_DEPTH + 1 or self._items > MOST_ITEMS:
            raise NotPlainError("too deep, or too much")
        if type(found) in PLAIN:
            plain: Value = found
            return plain
        if type(found) is list:
            if PLAIN.issuperset(map(type, found)):  # fast path for long rows of numbers
                self._items += len(found)
                return found if self._items <= MOST_ITEMS and depth <= MOST_DEPTH else _refuse("so much")
            return [self.value(item, depth + 1) for item in found]
        if type(found) is not dict or len(found) != 1:
            raise NotPlainError("no tagged value")
        [(tag, inside)] = found.items()
        return self._tagged(tag, inside, depth + 1)

    def _tagged(self, tag: str, inside: Any, depth: int) -> Value:
        match tag:
            case "t":
                return tuple(self.value(item, depth) for item in _list(inside))
            case "s":
                return Elements(tuple(self.value(item, depth) for item in _list(inside)))
            case "d":
                return DictPairs(tuple(self._pair(pair, depth) for pair in _list(inside)))
            case "i":
                return int(_text(inside, MOST_CHARS), 16)
            case "u":
                return _decoded(inside)
            case "b":
                return bytes.fromhex(_text(inside, MOST_CHARS))
            case "f" if inside in ("nan", "inf", "-inf"):
                return float(inside)
            case "c":
                real, imaginary = (_float(part) for part in _list(inside))
                return complex(real, imaginary)
            case _:
                raise NotPlainError("an unknown tag")

    def _pair(self, found: Any, depth: int) -> tuple[Value, Value]:
        pair = _list(found)
        if len(pair) != 2:
            raise NotPlainError("no pair")
        return self.value(pair[0], depth), self.value(pair[1], depth)


def _float(found: Any) -> float:
    if found in ("nan", "inf", "-inf"):
        return float(found)
    if type(found) is not float:
        raise NotPlainError("a float was expected")
    return found


def shown(reply: ProgramReply) -> str:
    """Describes a program's reply in a few words, with hostile text escaped."""
    match reply.kind:
        case "value":
            return clip(literal(reply.value), SHOWN)
        case "raised":
            name = reply.names[0] if reply.names else "an exception"
            text = f"raised {name}: {reply.text}" if reply.text else f"raised {name}"
        case "odd":
            text = f"returned {reply.text}"
        case "loaded":
            text = "was loaded"
        case "lost":
            text = reply.text
    return ADDRESS.sub("0x...", ascii(text[:SHOWN])[1:-1])
