"""What ships of the tasksets is what they really make; and whoever asks for one loads one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cards import card_of
from benchmarks.tasksets import SUMMARIES
from curriculum.names import taskset_names
from curriculum.registry import BUILT_IN, TASKSETS
from curriculum.summary import summary_of
from curriculum.taskset_summary import as_shipped, shipped_card, shipped_summaries

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
    cards = {one.name: shipped_card(one.name, one.version) for one in made}
    assert SUMMARIES.read_text() == as_shipped(made, cards)


def test_a_card_has_every_topic_and_level_and_shares_are_shares() -> None:
    for name, one in shipped_summaries().items():
        card = shipped_card(name, one.version)
        assert card, f"{name}: write it: python benchmarks/tasksets.py --cards --only {name}"
        assert [(place.level, place.topic) for place in card] == [
            (level, topic) for topic in one.topics for level in range(one.levels)
        ]
        for place in card:
            assert all(
                0 <= share <= 1 for share in (place.guess, place.one_line, place.brute_force) if share is not None
            )
    assert shipped_card("digits", 99) == ()


def test_scripts_work_on_a_card_as_one_call_of_the_tool_does() -> None:
    easy = {place.topic: place for place in card_of("modular_arithmetic", 4, 1) if place.level == 0}
    assert {(place.one_line, place.steps) for place in easy.values()} == {(1.0, 1.0)}
    assert easy["chinese_remainder"].brute_force == 1.0
    assert easy["modular_power"].brute_force is None, "nobody wrote a script that tries everything"
    calculator = card_of("powers", 4, 1)
    assert {place.one_line for place in calculator} == {1.0}


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
        "published_servers",
    }
    assert missing == {name: TASKSETS[name].missing() for name in taskset_names()}


def test_whoever_names_tasksets_loads_none_and_whoever_makes_a_task_loads_that_one() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    named_only, for_one = json.loads(ran.stdout)
    assert named_only
    assert "curriculum.tasksets.tables" in for_one
    assert not {"curriculum.tasksets.puzzles.knights", "curriculum.families.digits"} & set(for_one)
