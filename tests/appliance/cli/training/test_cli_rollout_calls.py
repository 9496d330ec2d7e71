"""A person who reads a rollout sees what was asked of its world, escaped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from appliance.cli.training.rollouts import _show_calls
from appliance.records.rollouts import ToolCall, ToolStatus


def test_calls_of_a_world_are_shown_with_their_arguments_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = ToolCall(tool="search", arguments={"keywords": "\x1b[2J\n\u202eevil"}, status=ToolStatus.OK, sandbox="s")
    shown: Any = SimpleNamespace(
        tokens=8, calls=(hostile, ToolCall(code="1 / 0", status=ToolStatus.EXCEPTION, sandbox="s"))
    )
    _show_calls(shown)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert out.splitlines()[1:] == ["--- calls", out.splitlines()[2], "exception: python, 5 characters of code"]
    assert out.splitlines()[2].startswith('ok: search {"keywords": ')


def test_calls_whose_words_are_not_kept_any_more_are_named_with_how_they_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = (ToolCall(tool="search", status=ToolStatus.OK), ToolCall(status=ToolStatus.EXCEPTION))
    pruned: Any = SimpleNamespace(tokens=0, calls=calls)
    _show_calls(pruned)
    assert capsys.readouterr().out.splitlines()[1:] == ["--- calls", "ok: search", "exception: python"]


def test_a_call_that_names_no_tool_is_one_of_python() -> None:
    old = ToolCall.model_validate({"code": "print(1)", "status": "ok", "output": "1\n", "sandbox": "s"})
    assert (old.tool, old.asks_world, old.asked) == ("python", False, "print(1)")
