"""Nothing is imported from where somebody stands: its files are not ours, and some of our processes have a key."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import import_graph

from appliance.daemon.processes.fork_server import FORKSERVER

ROOT = Path(__file__).parents[1]
PACKAGES = ("appliance", "common", "curriculum", "policies", "runtime", "tui", "verifiers")
SAFE = ("-I", "-P", "*COMMAND", "*sys.orig_argv[1:]")
"""`COMMAND` of verifiers.workers.process begins with -B -P; a program that starts itself again keeps its own flags."""
PLANTED = [
    "json",
    "os",
    "re",
    "typing",
    "pathlib",
    "pydantic",
    "torch",
    "transformers",
    "textual",
    "sqlalchemy",
    "asyncio",
    "logging",
    "dataclasses",
]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of the product that begins with this interpreter, as its words are written."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "canaries" in path.parts or "sys.executable" not in path.read_text():
                continue
            for node in ast.walk(import_graph.parsed(path)):
                words = [ast.unparse(word).strip("'") for word in getattr(node, "elts", ())]
                if words[:1] == ["sys.executable"]:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", words


def test_every_python_that_is_started_takes_nothing_from_the_current_folder() -> None:
    found = dict(commands())
    assert len(found) >= 10
    assert {place: words for place, words in found.items() if words[1] not in SAFE} == {}


def test_files_planted_in_the_current_folder_do_not_run_in_the_worker(tmp_path: Path) -> None:
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text("open('mark', 'w').close()\nraise SystemExit(0)\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [*FORKSERVER, "--socket-fd", "99"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode != 0
    assert not (tmp_path / "mark").exists(), ran.stderr


def test_the_installer_starts_no_python_that_takes_anything_from_the_current_folder() -> None:
    called = re.findall(r'"\$(?:PY|1|VENV/bin/python)" (-\S+)', (ROOT / "install.sh").read_text())
    assert len(called) >= 12
    assert set(called) <= {"-I", "-IB"}
