"""What a person reads before a command runs: examples that can be typed, and what a shell offers for the next word."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
import typer
from cli_commands import leaves
from sandbox_commands import in_process

from appliance.cli.main import COMMANDS, app

PLAIN = {"--data", "--json", "--help", "--as", "--limit"}
EXAMPLE = re.compile(r"Example: assay (.*?)(?:\n\s*\n|\Z)", re.DOTALL)


def offered(line: str, **environ: str) -> list[str]:
    """What bash would offer after this line."""
    words = line.split(" ")
    asked = {"_ASSAY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-m", "appliance.cli.main"]
    result = subprocess.run(
        command, env={**os.environ, **asked, **environ}, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.stderr == ""
    return result.stdout.split()


def test_a_command_with_something_to_choose_shows_an_example_and_each_example_can_be_typed() -> None:
    root = typer.main.get_command(app)
    for path, command in leaves(root):
        chosen = [p for p in command.params if not PLAIN.intersection(p.opts)]
        found = EXAMPLE.search(command.help)
        assert found or not chosen, path
        if found:
            typed = shlex.split(" ".join(found[1].split()))
            assert typed[: len(path.split())] == path.split(), path
            command.make_context(path, typed[len(path.split()) :])  # raises for a word that it does not take


@pytest.mark.parametrize("words", ["model import nowhere", "curriculum add nowhere", "curriculum adapter add a b"])
def test_an_option_that_some_spell_otherwise_is_taken_in_both_ways_and_shown_in_one(words: str, tmp_path) -> None:
    data = ["--data", str(tmp_path)]
    first, second = (in_process([*data, *words.split(), one, "x"]) for one in ("--license", "--licence"))
    assert (first.returncode, first.stderr) == (second.returncode, second.stderr)
    assert "no such option" not in first.stderr.lower()
    assert "--licence" not in in_process([*words.split(), "--help"]).stdout


@pytest.mark.parametrize(
    ("line", "names"),
    [("assay cur", ["curriculum"]), ("assay curriculum re", ["reverify"]), ("assay jobs sh", ["show"])],
)
def test_the_shell_offers_commands(line: str, names: list[str]) -> None:
    assert offered(line) == names


def test_the_shell_offers_tasksets_by_name_and_nothing_where_no_daemon_answers(tmp_path) -> None:
    found = offered("assay curriculum show constr", ASSAY_DATA=str(tmp_path))
    assert found == ["constructions", "constructions_by_hand", "constraint_models"]
    assert offered("assay jobs show ", ASSAY_DATA=str(tmp_path)) == []


def test_offering_the_first_word_loads_no_command(tmp_path) -> None:
    program = "import sys; from appliance.cli.main import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)\n"
    asked = {"_ASSAY_COMPLETE": "complete_bash", "COMP_WORDS": "assay ", "COMP_CWORD": "1"}
    result = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    printed = result.stdout.split()
    assert set(COMMANDS) <= set(printed)
    assert "appliance.cli.check.commands" not in printed
