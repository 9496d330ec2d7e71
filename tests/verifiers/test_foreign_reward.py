"""The score of a program that is not ours: it is in the evidence, and nothing passes by it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import FOREIGN_REWARD, Ground, Judgement, Outcome
from verifiers.files.spec import FileCondition, FilesSpec, ForeignTest
from verifiers.files.verifier import FilesVerifier, check

SCORED = FilesSpec(declared=("reward.json",), foreign=ForeignTest(rewards=("reward.json",)))


class NoSandboxes:
    """A pool that nobody may ask for a sandbox."""


def judged(reward: Any, spec: FilesSpec = SCORED) -> Any:
    text = reward if isinstance(reward, str) else json.dumps({"reward": reward})
    submission = json.dumps({"reward.json": {"text": text, "mode": "644"}})
    return FilesVerifier(NoSandboxes()).verify(spec, submission)  # type: ignore[arg-type]


@pytest.mark.parametrize("reward", [1.0, 0.5, 0.0, 1])
def test_a_score_of_the_world_is_a_foreign_reward_and_no_pass(reward: float) -> None:
    verdict = judged(reward)
    assert (verdict.outcome, verdict.ground, verdict.score) == (Outcome.FAIL, Ground.UNKNOWN, 0.0)
    assert verdict.foreign_reward == reward


@table("reward", [1.5, -1, None, True, "NaN", "Infinity", "[]", "x", '{"reward": "1"}', "[" * 9_000])
def test_what_is_no_score_from_0_to_1_is_none(reward: object) -> None:
    verdict = judged(reward)
    assert (verdict.outcome, verdict.foreign_reward) == (Outcome.FAIL, None)


def test_a_foreign_score_has_to_be_in_a_declared_file_or_written_by_a_command() -> None:
    with pytest.raises(SpecError, match="no declared file"):
        check(FilesSpec(declared=("other.txt",), foreign=ForeignTest(rewards=("reward.json",))))


def test_a_check_of_ours_beside_it_decides_alone() -> None:
    both = FilesSpec(
        declared=("reward.json",),
        files=(FileCondition(path="reward.json", equals="right"),),
        foreign=ForeignTest(rewards=("reward.json",)),
    )
    assert not both.only_foreign
    assert judged("right", both).passed
    assert not judged("1", both).passed


@pytest.mark.parametrize("found", ["1", True, float("nan"), 7, None, [1]])
def test_evidence_that_is_no_score_is_no_foreign_reward(found: object) -> None:
    verdict = Judgement(Ground.UNKNOWN, "it says", {FOREIGN_REWARD: found}).verdict("files", "1")
    assert verdict.foreign_reward is None
