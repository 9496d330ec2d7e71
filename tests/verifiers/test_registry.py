"""What decides is imported by a worker before an item's clock begins, and by nobody else at its start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def said_by(script: str) -> object:
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_an_item_of_a_checklist_finds_all_that_it_needs_imported() -> None:
    script = (
        "import json, sys\n"
        "from verifiers.registry import decide, kind_named, preload\n"
        "from verifiers.registry.canaries import cases_of\n"
        "preload('verifiers.checklists')\n"
        "before = set(sys.modules)\n"
        "cases = {case.name: (case.spec, case.submission) for case in cases_of(kind_named('checklist'))}\n"
        "passed = [decide(*cases[name]).passed for name in ('honest-json', 'honest-report')]\n"
        "print(json.dumps([passed, sorted(set(sys.modules) - before)]))\n"
    )
    assert said_by(script) == [[True, True], []]


def test_commands_and_the_daemon_start_without_what_decides_a_checklist() -> None:
    script = (
        "import json, sys\n"
        "import appliance.cli.main, appliance.daemon.api.serve, verifiers\n"
        "verifiers.Checker()\n"
        "heavy = {'jsonschema_rs', 'verifiers.checklists.json_schema'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))))\n"
    )
    assert said_by(script) == []
