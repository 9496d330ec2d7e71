"""Serves an environment of OpenEnv and speaks to it. It runs in the guest.

What always holds: the server is a process of its own, reached over loopback inside this sandbox and by nobody else, by
the project's own wire (`/ws`: reset, step, state). One that ends, floods or says what is no message breaks the world at
once. No clock is read here: one that does not answer is waited for until the host ends the call, whose limit is of the
world's own time. Its reward is taken where it is a finite number; the newest one counts.
"""

import hashlib
import importlib
import json
import os
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from curriculum.environments.foreign.serving import Errors, fork_server

    SETUP: dict[str, Any] = {}
    ToolError = Exception

MESSAGE_BYTES = 1 << 17
SHOWN = 6_000
open_connection: "list[ClientConnection]" = []
errors: "list[Errors]" = []
last: "dict[str, Any]" = {"reward": None, "done": False}


class BrokenServer(Exception):
    """Says that the server is at fault; the world is lost."""


def serve(listener: socket.socket) -> None:
    """Serves the app of the owner's package, in a process of its own."""
    app = importlib.import_module(f"{SETUP['package']}.server.app").app
    uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="websockets")).run(sockets=[listener])


def connection() -> ClientConnection:
    """Returns the connection to the package's server; first forks the server and connects. Raises BrokenServer."""
    if not open_connection:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        silent = os.open(os.devnull, os.O_RDWR)
        errors.append(fork_server(lambda: serve(listener), silent, silent, (listener.fileno(),)))
        os.close(silent)
        listener.close()
        try:
            open_connection.append(
                connect(
                    f"ws://127.0.0.1:{port}/ws",
                    open_timeout=None,
                    close_timeout=0.1,
                    max_size=MESSAGE_BYTES,
                    compression=None,
                    ping_interval=None,
                    proxy=None,
                )
            )
        except (OSError, WebSocketException) as error:
            raise BrokenServer(gone(f"the server of {SETUP['package']} does not begin", error)) from error
    return open_connection[0]


def gone(what: str, error: Exception) -> str:
    """Says what has happened, with the end of the server's errors if there are any."""
    return f"{what}: {errors[0].last() or error}"


def asked(kind: str, data: "dict[str, Any]") -> "dict[str, Any]":
    """What the server says to one message. Raises ToolError for what it refuses, BrokenServer."""
    wire = connection()
    try:
        wire.send(json.dumps({"type": kind, "data": data} if kind != "state" else {"type": kind}))
        message = json.loads(wire.recv())
        found, body = message["type"], message["data"]
    except (OSError, WebSocketException) as error:
        raise BrokenServer(gone("the server is gone", error)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BrokenServer(f"the server said what is no message: {type(error).__name__}") from error
    if not isinstance(body, dict):
        raise BrokenServer("the server said what is no message")
    if found == "error":
        raise ToolError(f"refused: {shown(body.get('message'))[:300]}")
    return body


def observed(body: "dict[str, Any]") -> "dict[str, Any]":
    """What a model is shown of an observation: never its reward."""
    last["reward"] = body.get("reward", last["reward"])
    last["done"] = body.get("done") is True
    found = body.get("observation")
    kept = {key: value for key, value in found.items() if key != "reward"} if isinstance(found, dict) else {}
    return {"observation": kept, "done": last["done"]}


def shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)[:SHOWN]


def reset(seed: int) -> str:
    return shown(observed(asked("reset", {"seed": seed})))


def schema() -> str:
    """What an action has to be, as the package's own app says it."""
    app = importlib.import_module(f"{SETUP['package']}.server.app").app
    for route in app.routes:
        if getattr(route, "path", "") == "/schema":
            import asyncio  # by who makes items alone

            found = asyncio.run(route.endpoint())
            return shown(found.model_dump(mode="json")["action"] if hasattr(found, "model_dump") else found["action"])
    raise ToolError(f"{SETUP['package']} has no schema of its actions")


def begin() -> None:
    """Sets the environment to the item's beginning, once. Raises BrokenServer for another beginning than was told."""
    if not open_connection:
        item = SETUP["item"]
        first = reset(item["seed"] + item["index"])
        if hashlib.sha256(first.encode()).hexdigest() != item["asked"]:
            raise BrokenServer("it begins otherwise than it did when the task was made")


def step(action: "dict[str, Any]") -> str:
    begin()
    if last["done"]:
        raise ToolError("it is over: nothing more can be done")
    return shown(observed(asked("step", action)))


def state() -> str:
    begin()
    return shown(asked("state", {}))


def list_sets() -> str:
    return json.dumps({str(SETUP["package"]): 1})


def make_items(name: str, level: int, seed: int, size: int, first: int) -> str:
    """Makes one item at index `first`: its question is the environment's action schema and the observation after a
    seeded reset. Its answer is empty, since none is known. Raises ToolError for any other package."""
    if name != SETUP["package"]:
        raise ToolError(f"this package serves {SETUP['package']} and nothing else")
    began = reset(seed + first)
    text = f"Actions of the environment {name} are JSON objects of this schema:\n{schema()}\n\nIt begins with:\n{began}"
    digest = hashlib.sha256(began.encode()).hexdigest()
    return json.dumps([{"index": first, "question": text, "answer": "", "asked": digest}], ensure_ascii=False)


def reward() -> Any:
    begin()
    return last["reward"]


PLAYS: "dict[str, Callable[..., str]]" = {"step": step, "state": state}
