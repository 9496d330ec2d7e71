"""What a command says of a value, of a gate's figure and of what is not there, in words for a person."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tables import table
from typer.testing import CliRunner

from appliance.cli.curriculum.stats import _nothing
from appliance.cli.governance.policy_check import summary
from appliance.cli.main import app
from appliance.cli.service.commands import _show_status
from appliance.cli.training.rollouts import _nothing as no_rollout
from appliance.client.gate_figures import figure_in_words, needed_in_words
from appliance.client.status import Status, WorkerStatus
from appliance.records.cycles import Cycle, CycleState
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from appliance.settings.policy_files import load_policy
from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import TakenBack
from policies.gates import service
from policies.policy import read_content

AT = "2026-01-02T03:04:05+00:00"


def found(gate: str, figure: float | None, unit: str, **more: float) -> GateFinding:
    return GateFinding(gate=gate, outcome=GateOutcome.PASSED, figure=figure, unit=unit, reason="r", **more)


@table(
    ("finding", "figure", "needed"),
    [
        (found("selftest", 0.0, "cases", threshold=0.0), "none wrong", ""),
        (found("selftest", 2.0, "cases", threshold=0.0), "2 wrong", ""),
        (found("hacks", 1.96, "percent", low=0.0, high=1.96, threshold=2.0), "at most 2.0 %", "allowed: 2 %"),
        (found("integrity", 0.0, "percent", threshold=5.0), "0.0 %", "allowed: 5 %"),
        (found("freshness", 0.000369, "hours", threshold=168.0), "a minute at most", "allowed: 168 hours"),
        (found("freshness", 0.5, "hours", threshold=168.0), "30 minutes", "allowed: 168 hours"),
        (
            found("improvement", 12.3, "points", low=4.0, high=20.0, threshold=1.0),
            "+12.3 points [+4.0, +20.0]",
            "needs at least 1 point",
        ),
        (found("approval", 0.0, "people", threshold=1.0), "0 people", "needs at least 1 person"),
        (found("evidence", 3.9, "to 1", threshold=1800.0), "3.9 to 1", "needs at least 1800 to 1"),
        (found("evidence", 9.019e33, "to 1", threshold=1800.0), "over 1,000,000 to 1", "needs at least 1800 to 1"),
        (found("drift", None, "nats a token"), "", ""),
    ],
)
def test_a_gate_s_figure_is_said_with_what_it_counts(finding: GateFinding, figure: str, needed: str) -> None:
    assert (figure_in_words(finding), needed_in_words(finding)) == (figure, needed)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("submit --seed abc", "'abc': not a whole number"),
        ("cycle start --seed=-1", "'-1': must be 0 or more"),
        ("model approve candidate --hours soon", "'soon': not a number"),
        ("jobs ls --limit 2000", "'2000': must be 1000 or less"),
    ],
)
def test_a_value_that_cannot_be_is_said_in_words(line: str, said: str) -> None:
    ran = CliRunner().invoke(app, line.split())
    assert (ran.exit_code, said in ran.stderr) == (2, True), ran.stderr


def test_a_folder_that_was_named_and_is_not_there_is_said_to_be_missing(tmp_path) -> None:
    ran = CliRunner().invoke(app, ["status", "--data", str(tmp_path / "x")])
    assert f"no such data folder: {tmp_path}/x" in str(ran.exception)
    assert ran.exception.exit_code == 3
    there = CliRunner().invoke(app, ["status", "--data", str(tmp_path)])
    assert "the daemon is not running" in str(there.exception)


def test_a_taskset_without_a_rollout_is_said_with_those_that_have_some() -> None:
    assert _nothing(None, "linaer", Purpose.TRAIN, ["gcd", "linear"]).endswith("known: gcd, linear")


def test_a_policy_says_whose_approval_counts(tmp_path) -> None:
    said = dict(summary(load_policy(tmp_path)))
    assert said["approval"] == "1 person whose key is known here"


@pytest.mark.parametrize(("figure", "said"), [(None, "taken out of service since"), (40.0, "its jobs contradict")])
def test_a_model_that_a_person_took_back_is_not_said_to_have_done_badly(figure: float | None, said: str) -> None:
    finding = service.finding(TakenBack(at=AT, reason="rollback by ada", figure=figure))
    assert said in finding.would_change


def test_a_cancelled_night_has_not_failed_and_its_seventieth_step_is_the_seventieth(capsys) -> None:
    cycle = Cycle(
        id="n", kind="night", seed=0, plan={}, phase="training", state=CycleState.CANCELLED, created=AT, updated=AT
    ).model_copy(update={"failure": "cancelled by a person"})
    _show_status(
        Status(
            version="1",
            pid=1,
            data="d",
            started=AT,
            uptime_seconds=9 * 86_400.0,
            worker=WorkerStatus(state="idle"),
            cycle=cycle,
            step_metrics={"step": 69.0},
            aliases=dict.fromkeys(("champion", "candidate", "previous", "canary")),
            decision=None,
            jobs={},
            next_cycle=None,
            policy="p",
            last_event=0,
        )
    )
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "step 70" in lines
    assert "daemon 1, pid 1, up 9 d" in lines
    assert "cycle n cancelled, training" in lines
    assert not any(line.startswith("failure") for line in lines)


def test_the_policy_in_force_is_printed_as_it_stands(tmp_path) -> None:
    packaged = CliRunner().invoke(app, ["policy", "show", "--data", str(tmp_path)]).stdout
    assert packaged == read_content()[0].decode()
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "in-force.toml").write_text(packaged.replace("min_gain = 1.0", "min_gain = 2.0"))
    assert "min_gain = 2.0" in CliRunner().invoke(app, ["policy", "show", "--data", str(tmp_path)]).stdout


def test_a_family_without_a_rollout_is_said_with_those_of_the_newest_cycle() -> None:
    counted = [SimpleNamespace(family=name) for name in ("linear", "gcd", "gcd")]
    api: Any = SimpleNamespace(cycles=lambda limit: [SimpleNamespace(id="n")], pass_counts=lambda cycle: counted)
    said = no_rollout(api, RolloutFilter(family="linaer"))
    assert said == "no rollout of taskset linaer: the newest cycle has gcd, linear"
    assert no_rollout(api, RolloutFilter(family="gcd", cycle="m")) == "no such rollout"
