"""A taskset that nobody knew is one object and one row: a whole night asks it, with the others."""

from __future__ import annotations

from random import Random

import pytest
from short_nights import SHORT, run_night

from appliance.ledger.sqlite import SqliteLedger
from appliance.places import parse_policy
from appliance.records.training import RolloutFilter
from appliance.worker.context import WorkContext
from appliance.worker.measurements import unsolvable
from curriculum.certification.certificate import made_by, shipped
from curriculum.contract.task import asked
from curriculum.contract.taskset import TaskDraft
from curriculum.demonstrations import demonstrable
from curriculum.registry import BUILT_IN, TASKSETS
from policies.policy import read_content
from verifiers.contract.verdict import Outcome
from verifiers.exact.spec import ExactSpec


class Toy:
    """Asks for a word."""

    name, version, level_count = "toy", 1, 2
    topics = ("word",)
    null_answers = ("",)

    def draft(self, level: int, rng: Random) -> TaskDraft:
        word = "".join(rng.choices("abc", k=level + 6))
        question = asked(f"say {word}")
        spec = ExactSpec(expected=word)
        return TaskDraft(topic="word", key=f"toy:{word}", messages=question, spec=spec, answer=word)

    def unsolvable(self, draft: TaskDraft, number: int) -> ExactSpec:
        return ExactSpec(expected=f"not {draft.answer} but {number}")

    def missing(self) -> str:
        return ""


def test_another_taskset_is_one_object_and_one_row(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKSETS, "toy", Toy())
    monkeypatch.setitem(shipped(), "toy", made_by(BUILT_IN, "toy"))
    packaged = read_content()[0].replace(b"max_share = 40.0", b"max_share = 60.0")
    context.policy = parse_policy(packaged, "p")
    run_night(context, "n", recipe=SHORT.model_copy(update={"tasksets": ("toy", "digits")}))
    assert {task["taskset"] for task in ledger.step_tasks("n")} == {"toy", "digits"}
    judged = [one for one in ledger.rollouts(RolloutFilter(cycle="n"), limit=10_000) if one.family == "toy"]
    assert {one.verdict.outcome for one in judged} <= {Outcome.PASS, Outcome.FAIL}
    (evaluation,) = ledger.evaluations()
    assert {item.family for item in evaluation.candidate.items} == {"toy", "digits"}
    assert evaluation.measurements.contamination is not None
    assert evaluation.measurements.contamination.found == 0
    assert {task.taskset for task in unsolvable(6, 0, ("digits", "toy"))} == {"toy", "digits"}
    assert demonstrable(("digits", "toy")) == ["digits"], "without demonstrations it has no part in the warm start"
