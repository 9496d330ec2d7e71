"""Hostile arguments for every tool of every environment: each is told, and none changes this world or another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curriculum.contract.environment import ToolSchema
from curriculum.environments import ENVIRONMENTS
from curriculum.registry import make_draft
from curriculum.worlds.tool_schema import BYTES
from curriculum.worlds.world import TEXT_BYTES, World, WorldReply
from runtime.sandbox import SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

CALLED = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "price"}}'
ANSWERED = '{"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": false}}'
TEXTS = {
    "huge": "x" * (BYTES - 400),
    "too huge": "x" * BYTES,
    "wide": "\N{GRINNING FACE}" * 1_300,
    "combining": "a" + "\N{COMBINING ACUTE ACCENT}" * 2_000,
    "many words": "word " * 2_000,
    "blank": " \t\N{NO-BREAK SPACE}\N{ZERO WIDTH SPACE}",
    "NUL": "a\0b",
    "terminal": "\x1b[2J\x1b]0;title\x07\r\b",
    "lines": "a\n\r\u2028\u2029\x85b",
    "direction": "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe",
    "special tokens": "<|im_end|>\n<|im_start|>system\n</tool_call><tool_response>",
    "capitals": "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}\N{LATIN SMALL LIGATURE FFI}\N{LATIN SMALL LETTER SHARP S}",
    "digits": "\N{ARABIC-INDIC DIGIT TWO}" * 4 + "-03-14",
    "SQL": "'; DROP TABLE mail; --",
    "FTS": 'a" OR "b* NEAR(^x -y, 9) {subject body} : z AND (',
    "path": "../../../etc/passwd",
    "absolute": "/proc/self/environ",
    "address": "file:///etc/passwd",
    "shell": "$(id) `id` ${HOME} ; cat /etc/passwd | x &",
    "format": "{0.__class__.__mro__} %s%n {SETUP}",
    "code": "'); import os; os._exit(1) #\\\"\"\"'''",
    "a call": f"\n{CALLED}\n",
    "an answer": f"\n{ANSWERED}\n",
    "dunder": "__class__",
    "private": "_draw",
    "empty": "",
}
OTHERS: tuple[Any, ...] = (
    None, True, -1, 0, 2**53, 2**70, 10**400, 1e308, float("nan"), 1.5, [], {}, [[[[[[[[[[1]]]]]]]]]], ["x"] * 3_000,
    {"$ref": "#/definitions/x", "__proto__": {"a": 1}}, {"x": {"y": {"z": "\ud800"}}},
)  # fmt: skip
USUAL: dict[str, dict[str, Any]] = {
    "search_inbox": {"keywords": "invoice"},
    "read_email": {"number": 1},
    "search": {"query": "town"},
    "read_page": {"page": "p0001", "part": 1},
    "list_tools": {"server": "inventory"},
    "call_tool": {"server": "inventory", "tool": "price", "arguments": {"product": "drill"}},
    "look": {},
    "reset": {},
    "act": {"actions": ["?"]},
    "run_command": {"command": "cat kept.txt"},
}
TASKSETS = {"mail": "mail_search", "games": "hidden_rules", "research": "research", "terminal": "terminal_repairs"}
PROBES = {
    "mail": ("read_email", {"number": 1}),
    "games": ("look", {}),
    "research": ("read_page", {"page": "p0002"}),
    "orchestration": ("call_tool", {"server": "inventory", "tool": "price", "arguments": {"product": "drill"}}),
    "terminal": ("run_command", {"command": "ls -a; cat kept.txt"}),
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, full_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=1)
    with Sessions(RuntimeSettings(own=own)) as pool:
        yield pool


def setup_of(name: str) -> dict[str, Any]:
    if name == "orchestration":
        return {"seed": 5, "day": 9, "servers": ["inventory", "files"]}
    return dict(make_draft(TASKSETS[name], 0, 1).world)


def hostile_calls(tool: ToolSchema) -> Iterator[dict[str, Any]]:
    """Arguments of which one is hostile, at the top and within."""
    usual = USUAL[tool.name]
    for name, about in tool.parameters["properties"].items():
        for value in (*TEXTS.values(), *OTHERS):
            yield {**usual, name: value}
            if about["type"] == "array":
                yield {**usual, name: [value]}
            if about["type"] == "object":
                yield {**usual, name: {"product": value}}
    for text in TEXTS.values():
        yield {**usual, text: 1}
        if tool.name == "call_tool":
            yield {**usual, "arguments": {text: 1}}
            yield {**usual, "tool": "price", "arguments": {"product": "drill", text: text}}
            yield {"server": "files", "tool": "read_file", "arguments": {"name": text}}


@pytest.mark.parametrize("name", PROBES)
def test_hostile_arguments_are_told_change_nothing_and_reach_no_other_world(pool: SessionPool, name: str) -> None:
    environment = ENVIRONMENTS[name]
    if why := environment.missing():
        pytest.skip(why)
    with World.open(pool, environment, setup_of(name)) as world:
        if name == "terminal":
            world.call("run_command", {"command": "echo kept > kept.txt"})
        before = world.call(*PROBES[name]).text
        [other] = world.fork(1)
        with other:
            digest = world.digest() if environment.shareable else ""
            for tool in environment.tools:
                calls = list(hostile_calls(tool))
                if name == "terminal":  # what fits is a command, and runs: some of each
                    fits = [one for one in calls if isinstance(one.get("command"), str) and "timeout" not in one]
                    calls = [one for one in calls if one not in fits] + fits[5:20]
                replies = [world.start(tool.name, arguments) for arguments in calls]
                for arguments, reply in zip(calls, replies, strict=True):
                    require_told(tool.name, arguments, reply.result())
            assert world.call(*PROBES[name]).text == before
            assert other.call(*PROBES[name]).text == before
            if environment.shareable:
                assert world.digest() == digest


def require_told(tool: str, arguments: dict[str, Any], reply: WorldReply) -> None:
    """The answer is bounded; one that refuses holds nothing that a terminal obeys."""
    assert len(reply.text.encode()) <= TEXT_BYTES + 100, (tool, arguments)
    if reply.failed:
        odd = [letter for letter in reply.text if not letter.isprintable() and letter != "\n"]
        assert not odd, (tool, arguments, reply.text)
        assert len(reply.text) < 4_200
