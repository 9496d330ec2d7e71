"""Serves the ledger through a connection: workers get the protocol, only the core has the file.

Invariants: only the methods of the `Ledger` protocol can be called, within the connection's grant (`grants`); both
sides check arguments and results against the type hints; a call returns when the record is on disk. A frame is JSON
only: nothing is unpickled, and its size is bounded before anything is built from it. An incomplete frame is dropped, so
a worker may be killed at any moment. An interrupted call makes its line unusable: the next reply could belong to it.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError

from appliance.audit.log import AuditError
from appliance.ledger.grants import Grant
from appliance.ledger.ledger import Ledger, LedgerError
from common.bounded_models import InvalidInputError, read_model
from common.strict_json import Bounds, NotJsonError
from runtime.model import FrozenModel

if TYPE_CHECKING:  # a worker has no database
    from appliance.ledger.leases import Holder

MAX_FRAME = 64 << 20
MOST_TOLD = 16
"""Refused calls of one worker that are named in the audit log, each sentence once."""


_ROLLOUTS = Bounds(MAX_FRAME, values=4_000_000, containers=200_000)
"""Bounds of calls with rollouts, which have one or two numbers per token."""
_OTHERS = Bounds(1 << 20, values=20_000, containers=5_000)
_LARGE = ("commit_step", "put_rollouts", "put_evaluation")
_NAMED = re.compile(rb'\{"call":"([a-z_]+)"[,}]')
"""Start of a frame: gives the call's name before the rest is parsed."""
_GONE = "the daemon has ended; start it again with `assay serve`: what was recorded is intact"
_NOT_ITS_OWN = "a worker writes only results of its phase; people submit jobs and put models into service"


class _Refusal(FrozenModel):
    message: str
    hint: str


class _Call:
    """A method of the ledger protocol: its signature, and the shapes of a request and a reply."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        hints = get_type_hints(method)
        self.name = name
        self.signature = inspect.signature(method)
        self.parameters = [parameter for parameter in self.signature.parameters if parameter != "self"]
        request: dict[str, Any] = {"call": Literal[name]}
        for parameter in self.parameters:
            default = self.signature.parameters[parameter].default
            hint = hints[parameter]
            shape = list[get_args(hint)[0]] if get_origin(hint) is Sequence else hint  # type: ignore[misc]
            request[parameter] = (shape, ... if default is inspect.Parameter.empty else default)
        reply: dict[str, Any] = {"value": (hints["return"] | None, None), "refused": (_Refusal | None, None)}
        self.request: type[BaseModel] = create_model(f"{name}_request", __base__=FrozenModel, **request)
        self.reply: type[BaseModel] = create_model(f"{name}_reply", __base__=FrozenModel, **reply)


@cache
def _calls() -> dict[str, _Call]:
    methods = inspect.getmembers(Ledger, inspect.isfunction)
    return {name: _Call(name, method) for name, method in methods if not name.startswith("_")}


@cache
def _requests() -> TypeAdapter[Any]:
    shapes: Any = Union[tuple(call.request for call in _calls().values())]  # noqa: UP007 - made at run time
    return TypeAdapter(Annotated[shapes, Field(discriminator="call")])


class _Line:
    """A worker's end of its connection to the ledger. One call at a time; threads may share it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._usable = True

    def _ask(self, call: _Call, arguments: dict[str, Any]) -> Any:
        try:
            frame = call.request(call=call.name, **arguments).model_dump_json().encode()
        except (ValidationError, PydanticSerializationError) as error:
            raise LedgerError(
                f"{call.name}: an argument cannot be represented in JSON: {error}",
                hint="check for a number that is not finite, a text that is not Unicode, or a wrong type",
            ) from error
        if len(frame) > MAX_FRAME:
            raise LedgerError(f"a call of {len(frame)} bytes is too long", hint="write fewer rollouts at a time")
        reply = call.reply.model_validate_json(self._exchange(frame)).__dict__
        if reply["refused"] is not None:
            raise LedgerError(reply["refused"].message, hint=reply["refused"].hint)
        return reply["value"]

    def _exchange(self, frame: bytes) -> bytes:
        with self._lock:
            if not self._usable:
                raise LedgerError("an earlier call to the ledger was interrupted", hint="start the worker again")
            self._usable = False
            try:
                self._connection.send_bytes(frame)
                answer = self._connection.recv_bytes(MAX_FRAME)
            except EOFError as error:
                raise LedgerError("the daemon closed the ledger connection", hint=_GONE) from error
            except OSError as error:
                raise LedgerError(f"the ledger connection broke: {error.strerror or error}", hint=_GONE) from error
            self._usable = True
            return answer


def _method(call: _Call) -> Callable[..., Any]:
    def ask(self: _Line, *args: Any, **kwargs: Any) -> Any:
        bound = call.signature.bind(self, *args, **kwargs).arguments
        return self._ask(call, {name: bound[name] for name in call.parameters if name in bound})

    ask.__name__ = call.name
    return ask


RemoteLedger = cast(
    Callable[[Connection], Ledger],
    type("RemoteLedger", (_Line,), {name: _method(call) for name, call in _calls().items()}),
)
"""A Ledger over a connection. Every method may raise LedgerError: the core's own, or because the core has ended."""


def serve_ledger(connection: Connection, ledger: Ledger, grant: Grant, holder: Holder | None = None) -> None:
    """Answers a worker's ledger calls within its grant until the worker closes or dies; blocks, then closes the
    connection.

    Writes count only while the leases of `holder` are valid. A request outside the protocol or the grant raises
    LedgerError on the other side, and one outside the grant is named in the audit log; one that is too long or
    truncated ends the connection.
    """
    told: set[str] = set()

    def refused(call: str, why: str) -> bytes:
        if why not in told and len(told) < MOST_TOLD and not grant.is_over(ledger):
            told.add(why)
            with suppress(LedgerError, AuditError):
                ledger.note_refused(grant.work, call, why)  # type: ignore[attr-defined]
        return _refused(call, why)

    with connection:
        while True:
            try:
                frame = connection.recv_bytes(MAX_FRAME)
            except (EOFError, OSError):
                return
            with ledger.leases.acting(holder) if holder is not None else nullcontext():  # type: ignore[attr-defined]
                answer = _answer(ledger, frame, grant, refused)
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.send_bytes(answer)


def _refused(call: str, why: str) -> bytes:
    return _refusal(why, _NOT_ITS_OWN)


def _answer(ledger: Ledger, frame: bytes, grant: Grant, refused: Callable[[str, str], bytes] = _refused) -> bytes:
    named = _NAMED.match(frame)
    call_name = "" if named is None else named[1].decode()
    if call_name in _calls() and call_name not in grant.calls:
        return refused(call_name, f"{grant.work} may not call {call_name}")
    try:
        request = read_model(_requests(), frame, _ROLLOUTS if call_name in _LARGE else _OTHERS)
    except NotJsonError as error:
        return _refusal(f"invalid ledger call: {error}", "write fewer rollouts at a time")
    except InvalidInputError as error:
        return _refusal(
            f"invalid ledger call: {error}",
            "restart the daemon if its version differs from the worker's; otherwise a number in the call is not finite",
        )
    call = _calls()[request.call]
    try:
        if why := grant.refusal(request, ledger):
            return refused(call.name, why)
        value = getattr(ledger, call.name)(**{name: getattr(request, name) for name in call.parameters})
    except (LedgerError, AuditError) as error:
        return _refusal(str(error), error.hint)
    answer = call.reply(value=value).model_dump_json().encode()
    return answer if len(answer) <= MAX_FRAME else _refusal("the answer is too long", "request fewer records")


def _refusal(message: str, hint: str) -> bytes:
    return b'{"refused":%s}' % _Refusal(message=message, hint=hint).model_dump_json().encode()
