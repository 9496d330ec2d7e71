"""What ships of the tasksets is what they really make; and whoever asks for one loads one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.tasksets import SUMMARIES
from curriculum.names import taskset_names
from curriculum.registry import BUILT_IN, TASKSETS
from curriculum.summary import summary_of
from curriculum.taskset_summary import as_shipped, shipped_summaries

LOADED = """
import json, sys
from curriculum.registry import TASKSETS, make_draft
def loaded():
    return sorted(name for name in sys.modules if name.startswith(("curriculum.tasksets.", "curriculum.families.")))
before = loaded()
names = [name for name in TASKSETS if name in TASKSETS]
assert len(names) == len(TASKSETS) and "nobody" not in TASKSETS
named = loaded()
make_draft("tables", 0, 1)
print(json.dumps([before == named, sorted(set(loaded()) - set(before))]))
"""


def test_what_ships_of_each_taskset_is_what_it_makes() -> None:
    made = [summary_of(BUILT_IN, name) for name in TASKSETS]
    assert list(shipped_summaries().values()) == made, "write it anew: python benchmarks/tasksets.py --summaries"
    assert SUMMARIES.read_text() == as_shipped(made)


def test_what_a_machine_lacks_is_what_the_tasksets_themselves_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_TOOLCHAIN", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    missing = {name: one.missing for name, one in shipped_summaries().items()}
    assert {name for name, why in missing.items() if why} == {
        "theorems",
        "disproofs",
        "program_theorems",
        "orchestration",
    }
    assert missing == {name: TASKSETS[name].missing() for name in taskset_names()}


def test_whoever_names_tasksets_loads_none_and_whoever_makes_a_task_loads_that_one() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    named_only, for_one = json.loads(ran.stdout)
    assert named_only
    assert "curriculum.tasksets.tables" in for_one
    assert not {"curriculum.tasksets.puzzles.knights", "curriculum.families.digits"} & set(for_one)
