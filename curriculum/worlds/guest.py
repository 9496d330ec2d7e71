"""Runs inside a world's sandbox: makes the world from its program, and answers what the host asks of it.

What always holds: each answer is one line, which begins with the mark that the host gave with that question; whatever
the program prints is dropped; a `ToolError` is what the model did wrong, any other exception is a broken world; the
program's `STATE` is what the host gave with the question, and what it began as once the answer is there.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import sys
import types
import zlib

TYPE_CHECKING = False  # what it guards is for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STATE_BYTES = 8_000
"""Of a program's `STATE`, packed."""
world = types.ModuleType("world")
begun = ""
"""What `STATE` was when the program had begun."""


class ToolError(Exception):
    """Says what the model did wrong."""


class Nowhere(io.TextIOBase):
    """Takes what the program prints."""

    def write(self, text: str) -> int:
        return len(text)


def answer(mark: str, asked: str, most: int) -> None:
    """Does what is asked, in JSON, and prints one line of at most so many bytes, or a little more."""
    said, nowhere, left = sys.stdout, Nowhere(), ""
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        try:
            what, state, *details = json.loads(asked)
            if state:
                vars(world)["STATE"] = unpack(state)
            kind, text = "ok", ASKED[what](*details)
            left = "" if what == "digest" else state_left()
            if not isinstance(text, str):
                kind, text = "broken", f"{what} gave {type(text).__name__} and no text"
        except ToolError as error:
            kind, text = "refused", str(error)
        except BaseException as error:  # noqa: BLE001 - all else that a program raises means that the world is broken
            kind, text = "broken", f"{type(error).__name__}: {error}"
        if begun:
            vars(world)["STATE"] = unpack(begun)
        most = max(64, most - len(left))
        if kind == "ok" and what == "submission" and len(text := pack(text)) > most:
            kind, text = "long", ""
        line = mark + json.dumps([kind, short(text, most), left], ensure_ascii=False)
    said.write(line + "\n")
    said.flush()


def begin(program: str, setup: str) -> str:
    sys.modules["world"] = world
    vars(world).update(SETUP=json.loads(setup), ToolError=ToolError)
    exec(compile(program, "world.py", "exec", dont_inherit=True), vars(world))  # noqa: S102
    global begun  # noqa: PLW0603
    begun = state_left()
    return ""


def state_left() -> str:
    """The program's `STATE`, packed; empty where it has none."""
    if "STATE" not in vars(world):
        return ""
    left = pack(json.dumps(vars(world)["STATE"]))
    if len(left) > STATE_BYTES:
        raise ValueError(f"STATE is {len(left)} bytes, packed; there may be {STATE_BYTES}")
    return left


def call(tool: str, arguments: dict[str, Any]) -> str:
    return world.call(tool, arguments)  # type: ignore[no-any-return]


def submission() -> str:
    return world.submission()  # type: ignore[no-any-return]


def digest() -> str:
    """Returns the SHA-256 of the working folder's files and of the plain data in the world module's variables."""
    found = hashlib.sha256()
    for folder, folders, names in os.walk("."):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)  # noqa: PTH118
            found.update(f"{path}\0".encode("utf-8", "surrogateescape"))
            with open(path, "rb") as file:  # noqa: PTH123
                found.update(hashlib.sha256(file.read()).digest())
    plain({name: value for name, value in vars(world).items() if not name.startswith("__")}, found.update, set())
    return found.hexdigest()


def plain(value: Any, feed: Callable[[bytes], object], above: set[int]) -> None:
    """Feeds what a value holds, as far as it is data: of another object its type and nothing more."""
    feed(f"{type(value).__name__}:".encode())
    if isinstance(value, str | bytes | int | float | None):
        feed(repr(value).encode("utf-8", "backslashreplace"))
        return
    if hasattr(value, "total_changes"):  # a connection of sqlite3
        feed(str(value.total_changes).encode())
    inner: Any = ()
    if isinstance(value, dict):
        inner = [part for pair in value.items() for part in pair]
    elif isinstance(value, list | tuple):
        inner = value
    elif isinstance(value, set | frozenset):
        inner = sorted(map(repr, value))
    elif type(value).__module__ == "world":
        inner = list(getattr(value, "__dict__", {}).items())
    if id(value) not in above:
        above.add(id(value))
        for part in inner:
            plain(part, feed, above)
        above.discard(id(value))
    feed(b";")


def short(text: str, most: int) -> str:
    """Cuts a text so that it needs at most so many bytes in a line of JSON, and says that it was cut."""
    text = text.encode("utf-8", "replace").decode()
    length = len(text)
    while len(json.dumps(text, ensure_ascii=False).encode()) > most:
        text = text[: max(0, min(len(text) - 1, len(text) * 9 // 10))]
    return text if len(text) == length else f"{text}\n[{length - len(text)} more characters were cut]"


def pack(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()


def unpack(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


ASKED: dict[str, Callable[..., Any]] = {"begin": begin, "call": call, "submission": submission, "digest": digest}
