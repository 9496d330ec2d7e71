"""What people and open evaluations are shown is divided as nights divide it: by the question, not by its seed alone."""

from __future__ import annotations

import pytest

from appliance.cli.curriculum.catalog import viewable
from appliance.errors import AssayError, ExitCode
from appliance.evaluation.plan import EvaluationPlan, questions, versioned
from curriculum.contract.task import Split
from curriculum.registry import BUILT_IN, make_draft
from curriculum.seeds import seeds, split_of_question
from curriculum.summary import examples, training_drafts


def test_an_open_evaluation_asks_no_question_that_training_or_a_sealed_set_owns() -> None:
    plan = EvaluationPlan(
        model="none", engine="torch", tasksets=versioned(["arithmetic", "modular_arithmetic"]), items=40, seeds=(0, 1),
        repeats=1, temperature=1.0, max_tokens=64, max_calls=1, max_result_chars=64, assay="test",
    )  # fmt: skip
    keys = [make_draft(one.task.taskset, one.task.level, one.task.seed).key for one in questions(plan)]
    assert len(keys) == 160
    assert {split_of_question(key) for key in keys} == {Split.VALIDATION}


@pytest.mark.parametrize("name", ["arithmetic", "knights"])
def test_tasks_for_people_are_those_of_training(name: str) -> None:
    shown = examples(BUILT_IN, name, 0, 20)
    assert {split_of_question(draft.key) for draft in shown} == {Split.TRAIN}
    assert [draft for _, draft in training_drafts(BUILT_IN, name, 0, 20, seeds(Split.TRAIN))] == shown


def test_a_seed_whose_question_is_sealed_is_not_shown() -> None:
    refused = 0
    for seed in range(0, 400, 4):
        owner = split_of_question(make_draft("knights", 0, seed).key)
        if owner is Split.SEALED:
            with pytest.raises(AssayError, match="is sealed") as caught:
                viewable(BUILT_IN, "knights", 0, seed)
            assert caught.value.code is ExitCode.REFUSED
            refused += 1
        else:
            assert split_of_question(viewable(BUILT_IN, "knights", 0, seed).key) is owner
    assert 10 < refused < 40
