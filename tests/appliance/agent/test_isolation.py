"""The policy's rules arrive at the sessions: each purpose has one, and jobs go before training."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.agent.assignment import priority_of, tier_of
from appliance.config.configuration import Settings
from appliance.config.places import broker_folder, broker_settings, broker_socket, runtime_settings
from appliance.records.rollouts import Purpose
from appliance.settings.policy_files import load_policy
from policies.errors import PolicyError
from policies.policy import load
from runtime.profile import BackendName
from runtime.sandbox import Limits, Priority, Tier

PACKAGED = Path(load.__code__.co_filename).with_name("default_policy.toml").read_text()


def write(data: Path, *changes: tuple[str, str]) -> None:
    text = PACKAGED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    data.mkdir(parents=True, exist_ok=True)
    (data / "policy.toml").write_text(text)


def settings(data: Path, **flags: object) -> Settings:
    return Settings.load({"data": data, **flags}, environ={"HOME": str(data)}, etc_dir=data)


def test_every_purpose_has_a_rule_and_what_the_family_asks_for_still_counts(tmp_path: Path) -> None:
    write(tmp_path, ('training = "shared"', 'training = "process"'), ('jobs = "shared"', 'jobs = "sandbox"'))
    policy = load_policy(tmp_path)
    assert {purpose: tier_of(policy, purpose, "digits") for purpose in Purpose} == {
        Purpose.TRAIN: Tier.PROCESS,
        Purpose.VALIDATION: Tier.PROCESS,
        Purpose.EVALUATION: Tier.SHARED,
        Purpose.JOB: Tier.SANDBOX,
    }


def test_only_jobs_go_first() -> None:
    assert [purpose for purpose in Purpose if priority_of(purpose) is Priority.JOB] == [Purpose.JOB]


def test_a_rule_about_a_family_that_does_not_exist_is_refused_with_the_file_s_name(tmp_path: Path) -> None:
    write(tmp_path, ("[sandboxes.tiers.families]", '[sandboxes.tiers.families]\nsudoku = "sandbox"'))
    with pytest.raises(PolicyError, match=r"policy\.toml: sandboxes\.tiers\.families: unknown family 'sudoku'"):
        load_policy(tmp_path)


def test_model_code_runs_where_the_policy_says_and_no_other_backend_is_used(tmp_path: Path) -> None:
    packaged = runtime_settings(settings(tmp_path), tmp_path)
    assert packaged.backend is BackendName.GVISOR
    assert packaged.own.backends == (BackendName.GVISOR, BackendName.NSJAIL)
    write(tmp_path, ('model_code = "gvisor"', 'model_code = "nsjail"'))
    made = runtime_settings(settings(tmp_path), tmp_path)
    assert made.backend is BackendName.NSJAIL
    assert made.own.backends == (BackendName.NSJAIL,)


def test_limits_and_the_broker_s_share_come_from_the_configuration(tmp_path: Path) -> None:
    given = settings(
        tmp_path, **{"sandbox.cpu_seconds": 7, "sandbox.calls": 3, "sandbox.ready": 2, "sandbox.snapshots_mib": 100}
    )
    made = runtime_settings(given, tmp_path)
    assert made.limits == Limits(cpu_seconds=7, calls=3)
    assert (made.own.ready, made.own.snapshots_mib, made.broker) == (2, 100, None)


def test_a_broker_of_another_user_keeps_nothing_in_the_data_folder(tmp_path: Path) -> None:
    own, apart = settings(tmp_path), settings(tmp_path, **{"service.user": "nobody"})
    assert broker_socket(own, tmp_path) == tmp_path / "run" / "broker.sock"
    made = broker_settings(apart, tmp_path, load())
    for place in (broker_socket(apart, tmp_path), made.state_dir, made.root_dir, made.snapshot_dir):
        assert place is not None
        assert not place.is_relative_to(tmp_path)
        assert place.is_relative_to(broker_folder(apart, tmp_path))
    other = tmp_path / "other"
    assert broker_folder(apart, other) != broker_folder(apart, tmp_path)


def test_a_broker_that_is_configured_is_the_one_that_is_used(tmp_path: Path) -> None:
    given = settings(tmp_path, **{"sandbox.broker": "/run/assay-broker/broker.sock"})
    assert runtime_settings(given, tmp_path).broker == broker_socket(given, tmp_path) == given.sandbox.broker
