"""What a person sees of every command: a suggestion for a mistyped one, and no colours where none are wanted."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from appliance.cli.main import app


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("statsu", "status"),
        ("gateway token nwe", "new"),
        ("curriculum adapter intsall", "install"),
        ("model aprove", "approve"),
        ("jobs shwo x", "show"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(typed: str, meant: str) -> None:
    ran = CliRunner().invoke(app, typed.split())
    assert (ran.exit_code, f"Did you mean '{meant}'" in ran.stderr) == (2, True)


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True)])
def test_no_color_takes_the_colours_of_every_command(
    value: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    root = typer.main.get_command(app)
    with root.make_context("assay", ["status"]) as context:
        root.callback(data=None, version=False)
        assert (context.color is not False) is coloured
