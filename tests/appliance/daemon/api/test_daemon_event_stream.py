"""Server-sent events and the OpenAPI document, over the real socket of a real core."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from daemon_kit import until
from openapi_spec_validator import validate
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message

from appliance.client.api_client import ApiClient
from appliance.client.connection import ApiConnection
from appliance.client.endpoints import SentIn, endpoints_of
from appliance.client.failures import ApiError
from appliance.client.messages import NumberedEvent
from appliance.config.configuration import Settings
from appliance.daemon.api.app import bound
from appliance.daemon.api.event_stream import MOST_STREAMS, EventStream, framed
from appliance.daemon.api.handlers import handlers
from appliance.daemon.api.requests import document
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.listening import listen
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Event


@pytest.fixture
def core(data: Path) -> Iterator[Core]:
    with Core(Settings(data=data)) as core:
        yield core


class Reader:
    """One stream, read by hand."""

    def __init__(self, path: Path, *headers: str, query: str = "") -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(120)
        self.sock.connect(str(path))
        lines = [f"GET /v1/events/stream{query} HTTP/1.1", "Host: assay", *headers, "", ""]
        self.sock.sendall("\r\n".join(lines).encode())
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])

    def event(self) -> tuple[int, str]:
        """The number and the text of the next one."""
        number = -1
        for line in self.file:
            if line.startswith(b"id: "):
                number = int(line[4:])
            elif line.startswith(b"data: "):
                return number, json.loads(line[6:])["text"]
        raise EOFError

    def close(self) -> None:
        self.file.close()
        self.sock.close()


@pytest.fixture
def stream(core: Core) -> Iterator[tuple[EventStream, Path]]:
    made = EventStream(core.ledger, stall_seconds=1.0)
    path = core.data / "run" / "events.sock"
    app = Starlette(routes=[Route("/v1/events/stream", made.endpoint)])
    with listen(path) as sock:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
        server.config.timeout_graceful_shutdown = 1
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[sock])))
        thread.start()
        yield made, path
        server.should_exit = True
        thread.join()


def test_events_come_as_they_happen_and_a_reader_that_comes_back_misses_none(
    core: Core, stream: tuple[EventStream, Path]
) -> None:
    core.events.add("test", "before")
    first = Reader(stream[1])
    until(lambda: stream[0].open == 1)
    first.file.readline()
    until(lambda: first.file.readline() == b"retry: 2000\n")
    core.events.add("test", "a\nb\r\ndata: forged\n\nid: 9")
    number, text = first.event()
    assert text == "a\nb\r\ndata: forged\n\nid: 9"
    first.close()
    for at in range(3):
        core.events.add("test", f"{at}")
    again = Reader(stream[1], f"Last-Event-ID: {number}")
    assert [again.event() for _ in range(3)] == [(number + 1 + at, f"{at}") for at in range(3)]
    again.close()
    earlier = Reader(stream[1], query="?after=0")
    assert earlier.event()[0] == 1
    earlier.close()
    until(lambda: stream[0].open == 0)


def test_a_reader_that_takes_nothing_is_let_go_and_others_go_on(core: Core, stream: tuple[EventStream, Path]) -> None:
    for _ in range(300):
        core.events.add("test", "x" * 4000)
    slow, well = Reader(stream[1], query="?after=0"), Reader(stream[1], query="?after=0")
    for _ in range(300):
        well.event()
    until(lambda: stream[0].open == 1)
    with contextlib.suppress(EOFError):
        for _ in range(301):
            last = slow.event()[0]
    assert last < 300
    core.events.add("test", "still here")
    seen = ""
    while seen != "still here":
        seen = well.event()[1]
    slow.close()
    well.close()


def test_what_is_no_number_is_refused_and_streams_are_bounded(stream: tuple[EventStream, Path]) -> None:
    assert Reader(stream[1], "Last-Event-ID: 1x").status == 400
    stream[0].open = MOST_STREAMS
    assert Reader(stream[1]).status == 429


def test_a_reader_of_another_ledger_hears_what_happens_from_now_on(
    core: Core, stream: tuple[EventStream, Path]
) -> None:
    core.events.add("test", "before the backup was put back")
    reader = Reader(stream[1], "Last-Event-ID: 5000")
    until(lambda: reader.file.readline() == b"retry: 2000\n")
    core.events.add("test", "after it")
    assert reader.event() == (2, "after it")
    reader.close()


class Gathering:
    """A ledger whose readers go on together, once so many have asked."""

    def __init__(self, ledger: SqliteLedger, count: int) -> None:
        self._ledger, self._all = ledger, threading.Barrier(count, timeout=120)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def newest_event(self) -> int:
        self._all.wait()
        return self._ledger.newest_event()


async def test_many_that_ask_at_once_get_no_more_streams_than_there_are(core: Core) -> None:
    count = MOST_STREAMS + 3
    app = Starlette(routes=[Route("/", EventStream(Gathering(core.ledger, count)).endpoint)])
    answered: list[int] = []

    async def receive() -> Message:
        return await asyncio.Future()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered.append(message["status"])

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    async with asyncio.timeout(240):
        asking = [asyncio.ensure_future(app(dict(scope), receive, send)) for _ in range(count)]
        while len(answered) < count:
            await asyncio.sleep(0.02)
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert sorted(answered) == [200] * MOST_STREAMS + [429] * 3


def test_an_event_is_three_lines_whatever_stands_in_it() -> None:
    event = Event(kind="\n\nid: 1", text="\u2028\r\n\x00\x85end", figures={}, created="now")
    assert framed(NumberedEvent(number=3, event=event)).count(b"\n") == 4
    assert len(framed(NumberedEvent(number=3, event=event)).decode().splitlines()) == 4


def test_the_openapi_document_is_valid_and_has_every_route(standing) -> None:
    standing.ready()
    api = ApiConnection(standing.socket)
    told = json.loads(api.request("GET", "/v1/openapi.json", {}, None))
    validate(told)
    assert {"/metrics", "/v1/status", "/v1/events/stream", "/v1/rollouts/{id}", "/v1/jobs/{id}/retry"} <= set(
        told["paths"]
    )
    for path, operations in told["paths"].items():  # each is answered, though not each with what was asked for
        if "get" in operations and path != "/v1/events/stream":
            said = ""
            try:
                api.request("GET", path.replace("{", "").replace("}", ""), {}, None)
            except ApiError as error:
                said = str(error)
            assert not said.startswith("no GET"), path


def test_every_endpoint_names_the_types_of_what_goes_in_and_comes_out() -> None:
    endpoints = endpoints_of(ApiClient).values()
    told = document(endpoints)
    assert len({(one.method, one.path) for one in endpoints}) == len(endpoints)
    assert sum(len(one) for one in told["paths"].values()) == len(endpoints)
    for endpoint in endpoints:
        assert endpoint.about.endswith(".")
        assert endpoint.answer is not None
        assert sum(one.place is SentIn.BODY for one in endpoint.parameters) <= 1


def test_every_endpoint_has_exactly_one_handler_with_its_parameters(core: Core) -> None:
    endpoints, known = endpoints_of(ApiClient), handlers(core, lambda: None, lambda: None)
    assert len(bound(endpoints, known)) == len(endpoints) - 1, "the event stream has none"
    with pytest.raises(TypeError, match="both an endpoint and a handler: retry"):
        bound(endpoints, {name: one for name, one in known.items() if name != "retry"})
    with pytest.raises(TypeError, match="both an endpoint and a handler: surplus"):
        bound(endpoints, {**known, "surplus": known["retry"]})
    with pytest.raises(TypeError):
        bound(endpoints, {**known, "retry": known["jobs"], "jobs": known["machine"]})


def test_the_document_says_what_a_query_needs_and_what_a_stream_is() -> None:
    told = document(endpoints_of(ApiClient).values())

    def parameters(path: str) -> dict[str, tuple[bool, object]]:
        found = told["paths"][path]["get"]["parameters"]
        return {one["name"]: (one["required"], one["schema"].get("type")) for one in found}

    assert parameters("/v1/models/compare") == {"a": (True, "string"), "b": (True, "string")}
    assert parameters("/v1/events/stream") == {"after": (False, "integer"), "Last-Event-ID": (False, "integer")}
    assert set(told["paths"]["/v1/events/stream"]["get"]["responses"]["200"]["content"]) == {"text/event-stream"}
    (before,) = (one for one in told["paths"]["/v1/audit"]["get"]["parameters"] if one["name"] == "before")
    assert {"type": "integer", "minimum": 0} in before["schema"]["anyOf"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/rollouts?outcom=pass", "unknown query parameter 'outcom'"),
        ("/v1/jobs?state=queued", "unknown query parameter 'state'"),
        ("/v1/status?limit=1", "unknown query parameter 'limit'"),
        (f"/v1/rollouts?step={10**30}", "step"),
        ("/v1/rollouts?step=-1", "step"),
        ("/v1/audit?before=x", "before"),
    ],
)
def test_a_query_that_nobody_reads_is_refused(standing, path: str, said: str) -> None:
    standing.ready()
    with pytest.raises(ApiError, match=said) as refused:
        ApiConnection(standing.socket).request("GET", path, {}, None)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("seed", [-1, 1 << 62, 10**30])
def test_a_seed_that_no_weights_can_be_drawn_from_begins_no_cycle(standing, seed: int) -> None:
    standing.ready()
    with pytest.raises(ApiError, match="seed") as refused:
        ApiConnection(standing.socket).request("POST", "/v1/cycles", {}, json.dumps({"seed": seed}).encode())
    assert refused.value.exit_code == 2
