"""An MCP server of the owner's, from a folder to a certified taskset: what the how-to page has one type, at a daemon.

It needs the SDK for guests: `assay curriculum adapter install mcp`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from curriculum.adapters import ADAPTERS
from runtime.package_sets import set_named, sets_folder

PAGE = (Path(__file__).parents[4] / "docs/howto/own-problems.md").read_text().partition("## Tasks for an MCP server")[2]
COMMANDS = [shlex.split(line) for line in re.findall(r"(?m)^    assay (.+)$", PAGE)]
PACKAGE = Path(__file__).parents[3] / "fixtures/mcp_servers/ledger_server"
NAME = "mcp-ledger_server"
TASKS = (PACKAGE / "tasks.jsonl").read_text().splitlines()
SOME = (TASKS[0], *TASKS[-2:])
"""Of each form some, and one that the server itself scores."""
pytestmark = pytest.mark.skipif(bool(ADAPTERS["mcp"].missing()), reason=ADAPTERS["mcp"].missing())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where one types, with the package and some of its tasks, for each is tried in a world of its own."""
    shutil.copytree(PACKAGE, tmp_path / "ledger_server")
    (tmp_path / "ledger_server" / "tasks.jsonl").write_text("\n".join(SOME))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def installs() -> Iterator[None]:
    """What is installed beside the SDK is taken away again. All processes of the tests share the folder: only who
    installs takes away."""
    there = set_named(NAME)
    yield
    if (made := set_named(NAME)) and made != there:
        (sets_folder() / f"{NAME}.name").unlink()
        shutil.rmtree(sets_folder() / made)


@pytest.mark.usefixtures("installs")
def test_a_server_and_its_tasks_become_a_certified_taskset(start, assay, folder: Path) -> None:
    start(broker=True).ready()
    install, add, show, certify = COMMANDS
    installed = assay(*install)
    assert installed.returncode == 0, installed.stderr
    assert not list((sets_folder() / str(set_named(NAME)) / "ledger_server").glob("tasks*"))
    for more, why in (
        (("--tasks", "3"), "do not apply to your own tasks"),
        (("--batch", "1"), "do not apply to your own tasks"),
    ):
        refused = assay(*add, *more)
        assert (refused.returncode, why in refused.stderr) == (2, True)
    added = assay(*add, "--json")
    assert added.returncode == 0, added.stderr
    found = json.loads(added.stdout)
    assert (found["name"], found["accepted"], found["kinds"]) == ("own/ledger", 2, {"answer": 2})
    assert [one["origin"] for one in found["refused"]] == ["tasks.jsonl:3"]
    shown = assay(*show).stdout
    assert ("balance" in shown, "package ledger_server, tasks.jsonl" in shown, "MIT" in shown) == (True, True, True)
    certified = assay(*certify, "--seeds", "1")
    assert certified.returncode == 0, certified.stdout + certified.stderr
    scored = folder / "scored.jsonl"
    scored.write_text(TASKS[-1])
    alone = assay(*add[:3], "mcp", str(scored), "--package", "ledger_server", "--name", "scored")
    assert "scored by a foreign reward" in alone.stdout, alone.stderr
    assert assay("curriculum", "certify", "own/scored", "--seeds", "1").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "mcp", "none.jsonl", "--package", "ledger_server"), "no such file or folder: none.jsonl"),
        (("add", "mcp", "ledger_server"), "no package is named"),
        (("add", "mcp", "ledger_server", "--package", "../x"), "invalid setup"),
        (("add", "mcp", "ledger_server", "--package", "never_installed"), "is not installed"),
        (("sets", "mcp"), "makes no tasks of its own"),
    ],
)
def test_what_cannot_be_made_says_what_to_do(
    standing, ask, folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    refused = ask("curriculum", "adapter", *arguments)
    assert refused.returncode == 2, (refused.stdout, refused.stderr)
    assert (said in refused.stderr, "Traceback" in refused.stderr) == (True, False), refused.stderr
