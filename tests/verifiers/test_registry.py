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
        "from verifiers.registry import decide, preload\n"
        "preload('verifiers.checklists')\n"
        "before = set(sys.modules)\n"
        "from verifiers.checklists.canary_lists import HONEST_REPORT, JSON, REPORT\n"
        'passed = [decide(JSON, \'{"name": "Ada", "age": 36}\').passed, decide(REPORT, HONEST_REPORT).passed]\n'
        "print(json.dumps([passed, sorted(set(sys.modules) - before - {'verifiers.checklists.canary_lists'})]))\n"
    )
    assert said_by(script) == [[True, True], []]


def test_commands_and_the_daemon_start_without_what_decides_a_checklist() -> None:
    script = (
        "import json, sys\n"
        "import appliance.cli.main, appliance.daemon.serve, verifiers\n"
        "verifiers.Checker()\n"
        "print(json.dumps(sorted({'jsonschema', 'verifiers.checklists.structure'} & set(sys.modules))))\n"
    )
    assert said_by(script) == []
