"""The import picture of docs/architecture.md, and where the heavy parts may come in."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import import_graph
from tables import table

from appliance.daemon.processes.worker_process import LIBRARIES

ROOT = import_graph.ROOT
PACKAGES = import_graph.PACKAGES

LEARNERS = tuple(
    f"appliance/{name}/" for name in ("gpu_selftest", "inference", "learning", "models", "seedling", "worker")
)
HEAVY = {
    "torch": LEARNERS,
    "transformers": LEARNERS,
    "sympy": ("verifiers/",),
    "z3": ("verifiers/smt/",),
    "cvc5": ("verifiers/smt/",),
    "textual": ("tui/",),
    "vllm": ("appliance/inference/",),
    "ray": ("runtime/cluster/",),
    "inspect_ai": ("appliance/interop/",),
}
"""Which folders may name which heavy part; anywhere else even a delayed import is a mistake."""

LIGHT = ("appliance/daemon", "appliance/client", "appliance/ledger", "policies", "runtime", "tui")
"""What the core, its clients and the sandboxes are made of: processes that live long and have to stay small."""


def sources(*folders: str) -> list[Path]:
    return [
        path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if "canaries" not in path.parts
    ]


def imported(path: Path) -> set[str]:
    """The first names of everything that a module imports, also inside its functions."""
    names: set[str] = set()
    for node in import_graph.import_statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_each_layer_knows_only_what_lies_below_it() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([str(lint), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_files_import_each_other_in_a_circle() -> None:
    assert import_graph.circles(import_graph.files()) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    assert import_graph.circles(import_graph.folders()) == []


def test_a_circle_would_be_found() -> None:
    graph = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"a"}), "d": frozenset({"a"})}
    assert import_graph.circles(graph) == [["a", "b", "c"]]


@table("part", sorted(HEAVY))
def test_a_heavy_part_is_named_only_in_the_folders_that_adapt_it(part: str) -> None:
    elsewhere = [
        str(path.relative_to(ROOT))
        for path in sources(*PACKAGES)
        if part in imported(path) and not str(path.relative_to(ROOT)).startswith(HEAVY[part])
    ]
    assert elsewhere == []


def test_workers_of_solvers_the_core_and_its_clients_load_no_model_and_no_algebra() -> None:
    """One process for all: each part has to be there before the next one is imported, which may load more."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sources(*LIGHT)
        if path.name != "__main__.py" and "guest" not in path.parts and "migrations" not in path.parts
    ]
    algebra = ["torch", "transformers", "sympy", "z3", "cvc5", "numpy", "scipy"]
    parts = [
        ("a worker of solvers", ["appliance.worker.__main__", "appliance.worker.tasks"], ["sqlalchemy", "asyncio"]),
        ("the core and its clients", [*modules, "appliance.cli.main"], []),
        ("what workers for solvers alone are forked with", [*LIBRARIES], []),
    ]
    script = (
        "import importlib, json, sys\n"
        "parts, algebra = json.loads(sys.argv[1])\n"
        "found = {}\n"
        "for part, modules, more in parts:\n"
        "    for name in modules: importlib.import_module(name)\n"
        "    found[part] = sorted({*algebra, *more} & set(sys.modules))\n"
        "print(json.dumps(found))\n"
    )
    command = [sys.executable, "-c", script, json.dumps([parts, algebra])]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {part: [] for part, _, _ in parts}


def test_the_first_frame_of_the_screen_waits_for_no_client_of_the_daemon() -> None:
    script = (
        "import json, sys\n"
        "import tui.__main__, tui.screens.now\n"
        "print(json.dumps(sorted({'pydantic', 'cryptography', 'appliance.client.exports'} & set(sys.modules))))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == []


def test_who_asks_a_checker_loads_none_of_what_decides() -> None:
    script = (
        "import json, sys\n"
        "import verifiers\n"
        "alone = sorted(name for name in sys.modules if name.startswith(('verifiers.', 'runtime', 'pydantic')))\n"
        "verifiers.Checker()\n"
        "print(json.dumps([alone, sorted({'sympy', 'z3', 'cvc5', 'numpy'} & set(sys.modules))]))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [[], []]


def test_what_runs_inside_a_sandbox_needs_nothing_but_the_standard_library() -> None:
    guests = sources("runtime/guest")
    assert guests
    foreign = {
        (path.name, name)
        for path in guests
        for name in imported(path)
        if name not in sys.stdlib_module_names and name not in {"__future__", "runtime"}
    }
    # Inside, the files lie beside each other, so they may name each other.
    assert {pair for pair in foreign if pair[1] not in {path.stem for path in guests}} == set()
