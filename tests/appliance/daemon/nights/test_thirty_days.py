"""Days of nights on a fake clock, in short; `benchmarks/thirty_days.py` is thirty of them, with memory."""

from __future__ import annotations

import json
from datetime import timedelta

from benchmarks.thirty_days import Days, simulate


def test_each_date_has_its_night_over_a_restart_and_one_that_is_too_long_and_all_of_them_a_report(
    data, start, assay, lent
) -> None:
    found = simulate(Days(data, step=timedelta(minutes=90)), 4)
    assert found["wrong"] == {}
    assert found["happened"] == {"restart": 1, "slow": 1}
    assert found["states"] == {"done": 3, "stopped": 1}
    assert found["cycles"] == 4
    assert max(found["memory_mb"]) - found["memory_mb"][1] < 20
    start().ready()
    shown = assay("report")
    assert shown.returncode == 0, shown.stderr
    assert "taskset" in shown.stdout
    assert "decision: " in shown.stdout
    report = json.loads(assay("report", "latest", "--json").stdout)
    assert [point[0] for point in report["curves"]["entropy"]] == [0, 1, 2, 3]
    assert report["families"][0]["items"] == 40
    out = data.parent / "morning"
    written = assay("report", report["cycle"]["id"], "--out", str(out))
    assert written.returncode == 0, written.stderr
    names = {file.name for file in out.iterdir()}
    assert names == {
        "report.html",
        "report.md",
        *(f"{name}.svg" for name in ("nights", "success", "entropy", "time", "families")),
    }
    nights = json.loads(assay("schedule", "show", "--json").stdout)["nights"]
    assert ("2026-10-11", "done") in [(night["key"], night["state"]) for night in nights]
