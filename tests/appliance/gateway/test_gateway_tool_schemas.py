"""Schemas of tools that ask for the network, for a regular expression's night, or for more steps than there are."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from pydantic import ValidationError

from appliance.gateway.chat_request import ClientTool
from curriculum.worlds import tool_schema
from curriculum.worlds.tool_schema import fault_of, schema_fault, schema_validator


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[str]]]:
    """A server that notes what it is asked."""
    asked: list[str] = []

    class Noting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Noting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "fields",
    [
        {"$schema": "URL/meta"},
        {"$schema": "URL/meta", "$vocabulary": {"URL/words": True}},
        {"$id": "URL/base", "properties": {"a": {"$ref": "other"}}},
        {"properties": {"a": {"$id": "URL/inner", "$schema": "URL/meta"}}},
        {"properties": {"a": {"$ref": "URL/x"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"$recursiveRef": "URL/x"},
        {"$dynamicRef": "URL/x#y"},
    ],
)
def test_a_schema_never_makes_this_machine_ask_another_one(stranger, fields: dict[str, Any]) -> None:
    url, asked = stranger
    schema = json.loads(json.dumps({"type": "object", **fields}).replace("URL", url))
    assert schema_fault(schema)
    with contextlib.suppress(Exception):  # also not where nobody looked at it before
        list(schema_validator(json.dumps(schema)).iter_errors({"a": 1}))
    assert asked == []


def meeting(depth: int, times: int = 2) -> dict[str, Any]:
    defs: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * times} for at in range(depth)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, f"d{depth}": {}}}


def anchored(depth: int) -> dict[str, Any]:
    defs = {
        f"d{at}": {"$anchor": f"at{at}", "anyOf": [{"$ref": f"#at{at + 1}"}, {"$ref": f"#%61t{at + 1}"}]}
        for at in range(depth)
    }
    return {
        "type": "object",
        "properties": {"a": {"$ref": "#at0"}},
        "$defs": {**defs, "end": {"$anchor": f"at{depth}", "type": "integer"}},
    }


def grafted(depth: int) -> dict[str, Any]:
    """References that mean something else inside a part with a name of its own."""
    return {"type": "object", "properties": {"a": {"$id": "http://x.example/y", **meeting(depth)["properties"]["a"]}}}


@pytest.mark.parametrize(
    "schema",
    [
        meeting(60),
        meeting(4, 40),
        anchored(60),
        grafted(60),
        meeting(5_000, 1) | {"x": "y" * 1},
        {"type": "object", "$ref": "#"},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"not": {"$ref": "#/$defs/x"}}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"items": {"oneOf": [{"$ref": "#/$defs/x"}] * 30}}},
        },
        {"type": "object", "properties": {"a": json.loads('{"items":' * 180 + "{}" + "}" * 180)}},
        {"type": "object", "properties": {"a": {"pattern": "((a{1,1000}){1,1000}){1,1000}"}}},
    ],
    ids=["twice", "forty times", "anchors", "grafted", "a chain", "itself", "not itself", "a tree", "deep", "pattern"],
)
def test_a_schema_that_asks_for_more_steps_than_there_are_is_refused_at_once(schema: dict[str, Any]) -> None:
    began = time.process_time()
    with pytest.raises(ValidationError, match="a tool's parameters"):
        ClientTool(name="look", parameters=schema)
    assert time.process_time() - began < 2


def test_a_pattern_that_goes_back_for_ever_ends() -> None:
    pattern = {"items": {"type": "string", "pattern": "^(?=x?)(a|aa)+$(?!z)"}}
    tool = ClientTool(name="look", parameters={"type": "object", "properties": {"a": pattern}})
    began = time.process_time()
    assert fault_of(tool, {"a": ["a" * 40 + "!"] * 300})
    assert time.process_time() - began < 2


def test_schemas_as_clients_write_them_are_taken() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}}}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/n"},
            "$schema": {"type": "string"},
            "of": {"anyOf": [{"type": "string", "pattern": "^(?!x)[a-z]+$"}, {"type": "null"}], "default": None},
            **{f"field{at}": {"type": "array", "items": {"enum": ["a", "b"]}} for at in range(100)},
        },
        "$defs": {"n": tree},
    }
    tool = ClientTool(name="look", parameters=schema)
    assert fault_of(tool, {"tree": {"left": {"right": {}}}, "of": "abc"}) == ""
    assert "left" in fault_of(tool, {"tree": {"left": 1}})
    assert fault_of(tool, {"of": "xy"})


HEAVY: dict[str, tuple[dict[str, Any], Any]] = {
    "divisions": ({"items": {"allOf": [{"multipleOf": 0.0001 * (n + 1)} for n in range(900)]}}, [1.5] * 3_000),
    "choices": ({"items": {"enum": list(range(8_000))}}, [1.5] * 3_000),
    "contained": ({"allOf": [{"contains": {"const": n}} for n in range(1_500)]}, [1.5] * 3_000),
    "unique": ({"allOf": [{"uniqueItems": True}] * 1_500}, [{"b": n} for n in range(1_000)]),
    "patterns": ({"allOf": [{"pattern": f"a.*b.*c{n}$"} for n in range(1_500)]}, "ab" * 8_000),
    "lookahead": ({"pattern": "(?=a)(a|aa)+z"}, "a" * 16_000),
    "names": (
        {"patternProperties": {f"(?=a)(a|aa)+{n}$": True for n in range(1_000)}},
        {"a" * 100 + str(n): 1 for n in range(99)},
    ),
    "nested": (
        {"items": {"items": {"items": {"allOf": [{"minimum": n} for n in range(500)]}}}},
        [[[1] * 20] * 12] * 12,
    ),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_call_that_would_take_its_schema_too_many_steps_is_refused_before_it_is_checked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, value = HEAVY[name]
    tool = ClientTool(name="t", parameters={"type": "object", "properties": {"a": schema}})
    monkeypatch.setattr(tool_schema, "schema_validator", None)
    assert "too long for its schema" in fault_of(tool, {"a": value})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"type": "number", "minimum": 0}}, [1.5] * 3_000),
        ({"type": "string"}, "x" * 16_000),
        ({"pattern": "^/"}, "/" + "x" * 4_000),
        ({"enum": [str(n) for n in range(3_000)]}, "2999"),
        (
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"x": {"type": "number"}, "y": {"type": "string", "pattern": r"^[\w.-]+$"}},
                    "required": ["x", "y"],
                    "additionalProperties": False,
                },
            },
            [{"x": 1, "y": "name"}] * 600,
        ),
    ],
)
def test_a_large_call_of_an_ordinary_tool_is_checked(schema: dict[str, Any], value: Any) -> None:
    tool = ClientTool(name="t", parameters={"type": "object", "properties": {"a": schema, "b": {"pattern": "^a"}}})
    assert fault_of(tool, {"a": value, "b": "ab"}) == ""
    assert fault_of(tool, {"a": value, "b": "b"})
