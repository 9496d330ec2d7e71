"""An owner's problems from a file to a night: only what is certified as it is now is trained on."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random

from appliance.client import ApiClient
from appliance.ledger.read_only import ReadOnlyLedger
from appliance.records.cycles import Cycle
from curriculum.certification.certificate import Certificate

SEEDLING = Path(__file__).parents[3] / "fixtures" / "seedling"
RECIPE = """
tasksets = ["digits", "arithmetic", "divisors", "own/words"]
[training]
tasks_per_step = 8
rollouts_per_task = 2
keep = 2
refills = 0
watch_items = 2
checkpoint_every = 1
steps = 60
[evaluation]
sealed_items = 4
unsolvable_items = 2
[[stages]]
name = "one"
kind = "rl"
[stages.agent]
max_tokens = 96
"""


def words(place: Path) -> Path:
    """Forty questions of one word each."""
    drawn = ["".join(Random(at).choices("xyz", k=8)) for at in range(40)]
    rows = [{"question": f"say {word}", "answer": word} for word in drawn]
    (place / "words.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return place / "words.jsonl"


def planned(api: ApiClient, name: str) -> Cycle:
    """The cycle, once it is decided what it asks."""
    while "left_out" not in (cycle := api.cycle(name).cycle).plan:
        assert not cycle.state.ended, cycle.failure
        time.sleep(0.1)
    return cycle


def test_a_cycle_trains_on_what_is_certified_and_no_more_on_what_was_taken_back(start, data, assay, tmp_path) -> None:
    api = start(ASSAY_MODEL__PATH=str(SEEDLING), ASSAY_SCHEDULE__ENABLED="false").ready()
    (tmp_path / "r.toml").write_text(RECIPE)

    def begun() -> str:
        ran = assay("train", "--recipe", str(tmp_path / "r.toml"), "--json")
        assert ran.returncode == 0, ran.stderr
        return str(json.loads(ran.stdout)["id"])

    added = assay("curriculum", "add", str(words(tmp_path)), "--kind", "exact", "--json")
    assert json.loads(added.stdout)["accepted"] == 40, added.stderr
    ran = assay("curriculum", "certify", "own/words", "--seeds", "6", "--json")
    found = json.loads(ran.stdout)
    assert (ran.returncode, found["holds"], found["signed"]) == (0, True, "yes, into the audit log"), ran.stderr
    entries = json.loads(assay("audit", "ls", "--json").stdout)
    [entry] = [one for one in entries if "own/words" in json.dumps(one) and "certif" in json.dumps(one)]
    assert found["made"] in json.dumps(entry)

    name = begun()
    assert planned(api, name).plan["certified"] == {"own/words": found["made"]}
    while not api.cycle(name).steps:
        assert not api.cycle(name).cycle.state.ended, api.cycle(name).cycle.failure
        time.sleep(0.1)
    assert assay("cycle", "cancel", name).returncode == 0
    with ReadOnlyLedger(data / "ledger.sqlite3") as ledger:
        assert "own/words" in {task["taskset"] for task in ledger.step_tasks(name)}

    failed = Certificate(taskset="own/words", made=found["made"], seeds=6, tasks=30, faults=("a reference fails",))
    api.put_certificate(failed)
    cycle = planned(api, begun())
    assert "certified" not in cycle.plan
    assert "own/words" not in cycle.plan["tasksets"]
    assert "not certified" in cycle.plan["left_out"]["own/words"]
    assert assay("cycle", "cancel", cycle.id).returncode == 0
    assert any("own/words is skipped: not certified" in one.event.text for one in api.events(limit=1000))
    assert assay("audit", "verify").returncode == 0
