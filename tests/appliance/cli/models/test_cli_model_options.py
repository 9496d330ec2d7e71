"""The options of a command are those of a model: names, types, help, bounds, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import typer
from pydantic import BaseModel, ConfigDict, Field

from appliance.cli.shell.model_options import given, parameters_of, read_options, with_options


class Wanted(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    call_seconds: float | None = Field(None, gt=0, description="Wall clock of a call.")
    memory_mib: int = Field(256, ge=16, le=1024, description="Memory.", json_schema_extra={"metavar": "MIB"})
    mode: Literal["fast", "slow"] = "fast"
    file: tuple[str, ...] = ()
    folder: Path | None = None
    raw: bool = False
    spec: dict[str, Any] | str | None = Field(None, json_schema_extra={"flag": "--the-spec"})


def command(found: dict[str, Any]) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.command("run")
    @with_options(parameters_of(Wanted), doc="Runs it.")
    def run(name: str, **values: Any) -> None:
        found["name"], found["wanted"] = name, read_options(Wanted, values)

    return typer.main.get_command(app)


def test_every_field_is_an_option_with_its_own_type_and_the_model_s_default() -> None:
    found: dict[str, Any] = {}
    command(found)(["it"], standalone_mode=False)
    assert found == {"name": "it", "wanted": Wanted()}
    line = "it --call-seconds 2.5 --memory-mib 64 --mode slow --file a --file b --folder /d --raw --the-spec s.toml"
    command(found)(line.split(), standalone_mode=False)
    assert found["wanted"] == Wanted(
        call_seconds=2.5, memory_mib=64, mode="slow", file=("a", "b"), folder=Path("/d"), raw=True, spec="s.toml"
    )


def test_help_comes_from_the_descriptions(capsys) -> None:
    command({})(["--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    for text in (
        "Runs it.",
        "--call-seconds",
        "Wall clock of a call.",
        "--memory-mib MIB",
        "16<=x<=1024",
        "--the-spec",
    ):
        assert text in shown


@pytest.mark.parametrize(
    ("line", "option"),
    [("--memory-mib 8", "--memory-mib"), ("--call-seconds 0", "--call-seconds"), ("--mode other", "--mode")],
)
def test_what_is_out_of_bounds_is_named_by_its_option(line: str, option: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        command({})(["it", *line.split()])
    assert (ended.value.code, option in capsys.readouterr().err) == (2, True)


def test_only_what_was_said_is_given() -> None:
    assert given({"a": None, "b": False, "c": [], "d": 0, "e": ["x"], "f": ""}) == {"d": 0, "e": ("x",), "f": ""}
