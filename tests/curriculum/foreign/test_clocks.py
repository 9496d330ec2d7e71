"""No program of an adapter's world reads a clock that goes on while others have the processors."""

from __future__ import annotations

import ast

import pytest

from curriculum.environments.foreign import FOREIGN

CLOCKS = {"monotonic", "perf_counter", "time", "wait_for", "timeout"}
"""Names of functions, and of what they are given, by which a program would end what another keeps waiting."""


@pytest.mark.parametrize("name", FOREIGN)
def test_how_long_a_call_may_take_is_the_hosts_to_say(name: str) -> None:
    read = set()
    for node in ast.walk(ast.parse(FOREIGN[name].program)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            read.add(node.func.attr)
            read |= {one.arg for one in node.keywords if one.arg == "timeout"}
    assert not read & CLOCKS
