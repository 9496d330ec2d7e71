"""An engine here and a model behind an API answer the questions of a plan, and are judged by the same verifiers."""

from __future__ import annotations

from pathlib import Path

import pytest
from short_nights import FIXTURE, SHORT
from test_teachers import served

from appliance.agent.api_conversation import ApiSampling
from appliance.evaluation.plan import AttemptFile, EvaluationPlan, questions
from appliance.evaluation.run import Answerer, ApiAnswerer, EngineAnswerer, EvaluationWork, carry_out
from appliance.inference.engines import make_engine
from appliance.inference.folder import read_model
from appliance.inference.http.local_api import LocalApi
from appliance.records.training import RolloutFilter
from appliance.rendering.formats import load_renderer
from appliance.worker.setup.context import WorkContext
from curriculum.registry import make_draft
from runtime.errors import InfrastructureError

OF_NUMBERS = EvaluationPlan(
    model="m", engine="torch", tasksets=("arithmetic@1",), items=3, seeds=(0,), repeats=2, temperature=1.0,
    max_tokens=100, max_calls=4, max_result_chars=28, assay="0",
)  # fmt: skip
SAMPLING = ApiSampling(temperature=1.0, max_tokens=64, max_calls=4, max_result_chars=200)


def work_of(plan: EvaluationPlan, answerer: Answerer, context: WorkContext) -> EvaluationWork:
    return EvaluationWork(plan, questions(plan), answerer, context.checker, context.policy)


def test_an_engine_answers_each_question_as_often_as_the_plan_says(context: WorkContext, tmp_path: Path) -> None:
    files, budget = read_model(FIXTURE), SHORT.agent
    engine = make_engine("torch", rows=budget.concurrent, slots=budget.max_tokens, device="cpu", dtype="float32")
    engine.push(files, "fixture")
    told: list[int] = []
    with (
        EngineAnswerer(engine, load_renderer(files), context.sessions, budget) as answerer,
        AttemptFile(tmp_path / "run", OF_NUMBERS, resume=False) as file,
    ):
        carry_out(work_of(OF_NUMBERS, answerer, context), file, told.append)
        assert {one.outcome for one in file.found.values()} <= {"right", "wrong"}
        assert len(file.found) == 6
        carry_out(work_of(OF_NUMBERS, answerer, context), file, told.append)  # nothing is left to ask
    assert told == [0, 6, 6]
    assert context.ledger.rollouts(RolloutFilter(), limit=10) == []


def test_a_model_behind_an_api_is_asked_and_what_is_lost_is_asked_again(context: WorkContext, tmp_path: Path) -> None:
    asked = questions(OF_NUMBERS)
    with AttemptFile(tmp_path / "run", OF_NUMBERS, resume=False) as file:
        nobody = ApiAnswerer(LocalApi("http://127.0.0.1:9/v1", "m"), context.sessions, SAMPLING)
        with nobody, pytest.raises(InfrastructureError, match="attempts were lost"):
            carry_out(work_of(OF_NUMBERS, nobody, context), file, print)
        assert {one.outcome for one in file.found.values()} == {"lost"}
        with served() as (url, api), ApiAnswerer(LocalApi(url, "m"), context.sessions, SAMPLING) as answerer:
            for one in asked:
                draft = make_draft(one.task.taskset, one.task.level, one.task.seed)
                api.answers[one.task.question] = draft.answer
            carry_out(work_of(OF_NUMBERS, answerer, context), file, print)
            seeds = {body["seed"] for body in api.asked}
        # The API is right where the seed that it is given is odd.
        right = sum(one.outcome == "right" for one in file.found.values())
        assert right == sum(seed % 2 for seed in seeds)
        assert {one.outcome for one in file.found.values()} <= {"right", "wrong"}
        assert all(one.calls == 1 for one in file.found.values())
