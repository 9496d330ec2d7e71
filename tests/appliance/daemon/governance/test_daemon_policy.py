"""What a policy says about the past is read and never recorded; what it says about jobs and room is obeyed."""

from __future__ import annotations

import json
from importlib import resources

import pytest
import test_daemon_governance as built
from daemon_kit import submit

from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError, RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.daemon.governance import backtest
from appliance.daemon.service.readiness import require_room
from appliance.errors import exit_code
from appliance.settings.policy_files import in_force_file
from appliance.system.clock import utc_now
from policies.contract.decision import DecisionOutcome
from policies.permissions import job_refused
from policies.policy import load, parse
from verifiers.exact.spec import ExactSpec
from verifiers.predicate.spec import PredicateSpec

PACKAGED = resources.files("policies").joinpath("default_policy.toml").read_text()
SPEC = PredicateSpec(predicate="7*x + 3 == 45", variable="x", domain="integer")


def changed(*changes: tuple[str, str]) -> str:
    text = PACKAGED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def core(data):
    """One candidate that is far better, one that is worse, and a champion."""
    with Core(Settings(data=data), now=lambda: built.AT) as running:
        champion = built.put_model(data, running.ledger, b"champion")
        running.ledger.set_aliases({"champion": champion}, "first", built.AT)
        built.put_decided(running, champion, b"better")
        built.put_decided(running, champion, b"worse", before=8, after=3)
        yield running


def test_a_backtest_decides_anew_over_every_candidate_and_records_nothing(core) -> None:
    before = core.ledger.decisions(limit=100)
    as_it_is = backtest.backtest(core.ledger, core.policy)
    assert [(row.recorded, row.now.outcome) for row in as_it_is.rows] == [
        (DecisionOutcome.REJECT, DecisionOutcome.REJECT),
        (DecisionOutcome.HOLD, DecisionOutcome.HOLD),
    ]
    lax = parse(changed(("required = true ", "required = false ")).encode(), "lax")
    rows = backtest.backtest(core.ledger, lax).rows
    assert [row.now.outcome for row in rows] == [DecisionOutcome.REJECT, DecisionOutcome.PROMOTE]
    assert {row.now.policy for row in rows} == {lax.digest}
    strict = parse(changed(("min_gain = 1.0", "min_gain = 70.0")).encode(), "strict")
    assert [row.now.outcome for row in backtest.backtest(core.ledger, strict).rows] == [DecisionOutcome.REJECT] * 2
    assert core.ledger.decisions(limit=100) == before


def test_the_budget_shows_what_is_left_and_how_far_each_candidate_is(core) -> None:
    found = backtest.budget(core.ledger, core.policy, core.now())
    assert (found.quarter, found.candidates, found.left) == ("2026-Q1", 90, 88)
    worse, better = found.evidence
    assert (better.nights, better.items, better.gained, better.lost) == (1, 800, 400, 0)
    assert better.odds > found.needed == pytest.approx(1800)
    assert worse.odds < 1
    assert worse.nights_to_go is None


def test_a_job_that_no_rule_allows_is_refused_and_the_refusal_is_on_record(data) -> None:
    data.mkdir()
    rule = '{ check = "any", then = "allow" }'
    (data / "policy.toml").write_text(
        changed((rule, '{ check = "predicate", then = "allow" }'), ("max_attempts = 1024", "max_attempts = 4"))
    )
    with Core(Settings(data=data)) as running:
        assert submit(running, "q", SPEC, attempts=4).attempts == 4
        with pytest.raises(RefusedByPolicyError, match="no rule covers jobs") as refused:
            submit(running, "q", ExactSpec(expected="1"), attempts=1)
        assert exit_code(refused.value) == 4
        with pytest.raises(RefusedByPolicyError, match="5 attempts are more than the 4 allowed"):
            submit(running, "q", SPEC, attempts=5)
        texts = [event.text for _, event in running.ledger.events() if event.kind == "governance"]
        assert sum("a job was refused" in text for text in texts) == 2
        assert len(running.ledger.jobs()) == 1


def test_the_first_rule_on_jobs_that_fits_decides() -> None:
    rules = parse(
        changed(('{ check = "any", then', '{ check = "lean", then = "deny" },\n  { check = "any", then')).encode(), "p"
    ).jobs
    assert "rule 1 denies" in job_refused(["lean"], 1, 0, rules)
    assert job_refused(["program"], 1, 0, rules) == ""
    rules = parse(
        changed(('{ check = "any", then', '{ check = "data", then = "deny" },\n  { check = "any", then')).encode(), "p"
    ).jobs
    assert "rule 1 denies" in job_refused(["answer", "data"], 1, 0, rules)
    assert job_refused(["answer", "question"], 1, 0, rules) == ""
    assert "1000 jobs are already queued" in job_refused(["program"], 1, 1000, rules)
    assert job_refused(["program"], 1, 0, load().jobs) == ""


def test_without_the_room_that_the_policy_asks_for_no_work_begins(tmp_path) -> None:
    require_room(tmp_path, 0.0)
    with pytest.raises(BrokenError, match="the policy asks for 1e\\+06") as met:
        require_room(tmp_path, 1e6)
    assert "min_free_gib" in met.value.hint


def test_the_policy_is_checked_explained_tried_out_and_simulated_at_the_command_line(
    start, assay, data, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built, "AT", utc_now())
    with Core(Settings(data=data)) as running:
        champion = built.put_model(data, running.ledger, b"champion")
        running.ledger.set_aliases({"champion": champion}, "first", utc_now())
        candidate = built.put_decided(running, champion, b"better")
    checked = assay("policy", "check")
    assert (checked.returncode, "all passed: promote; else: hold" in checked.stdout) == (0, True), checked.stderr
    broken = tmp_path / "broken.toml"
    broken.write_text(changed(("min_gain = 1.0", "min_gian = 1.0")))
    refused = assay("policy", "check", str(broken))
    assert (refused.returncode, "min_gian: unknown key" in refused.stderr) == (2, True)
    before = in_force_file(data).read_bytes()
    in_force_file(data).write_bytes(before.replace(b"version = 1", b"version = 5"))
    old = assay("policy", "check")
    assert (old.returncode, "not carried over" in old.stderr, "start fresh" in old.stderr) == (2, True, True)
    in_force_file(data).write_bytes(before)
    assert "default: the policy in force" in " ".join(assay("policy", "backtest", "--help").stdout.split())
    simulated = assay("policy", "simulate", "--quarters", "2", "--nights", "4", "--json")
    assert {"null_promoted_share", "power"} <= json.loads(simulated.stdout).keys()
    impossible = assay("policy", "simulate", "--gain", "30")
    assert (impossible.returncode, "30 % discordant" in impossible.stderr) == (2, True)
    start().ready()
    explained = assay("policy", "explain", "candidate")
    assert explained.returncode == 0, explained.stderr
    assert "no rule of [promotion] applies, so the candidate is held" in explained.stdout
    assert "to 1 after 1 night" in explained.stdout
    backtested = assay("policy", "backtest", "--json")
    assert [row["candidate"] for row in json.loads(backtested.stdout)["rows"]] == [candidate]
    assert "1 hold; 0 differ from recorded decisions" in assay("policy", "backtest").stdout
    budget = assay("policy", "budget")
    assert (budget.returncode, "candidates left" in budget.stdout, candidate[:12] in budget.stdout) == (0, True, True)
