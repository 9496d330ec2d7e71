"""A taskset that nobody knew is one object and one row, or an owner's file: a night asks them, with the others."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from short_nights import SHORT, cycle_of, run_night

from appliance.curriculum.own_files import file_of
from appliance.curriculum.own_tasksets import catalog_in
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.training import RolloutFilter
from appliance.settings.policy_files import parse_policy
from appliance.worker.evaluation.measurements import unsolvable
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import left_out
from curriculum.certification.certificate import made_by, shipped
from curriculum.contract.task import Split, asked
from curriculum.contract.taskset import TaskDraft
from curriculum.demonstrations import demonstrable
from curriculum.names import PLACES
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from curriculum.registry import BUILT_IN, DOMAINS, LazyDomain
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


TOY = Toy()


def own_words(folder: Path) -> OwnTaskset:
    """An owner's taskset of forty words, in that data folder."""
    words = ["".join(Random(number).choices("xyz", k=8)) for number in range(40)]
    rows = [OwnRow(question=f"say {word}", spec=ExactSpec(expected=word), answer=word, origin="w:1") for word in words]
    content = OwnContent(name="words", added="now", rows=with_levels(rows))
    content = content.model_copy(update={"digest": content.rows_digest()})
    file = file_of(folder, "words")
    file.parent.mkdir(parents=True)
    file.write_text(content.model_dump_json())
    return OwnTaskset(content)


def test_another_taskset_is_one_object_and_one_row_or_an_owner_s_file(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLACES, "toys", {"toy": f"{__name__}:TOY"})
    monkeypatch.setitem(DOMAINS, "toys", LazyDomain(PLACES["toys"]))
    own = own_words(context.data)
    catalog = catalog_in(context.data)
    assert left_out(("digits", "own/words"), {}, catalog=catalog).keys() == {"own/words"}, "nobody certified it"
    monkeypatch.setitem(shipped(), "toy", made_by(BUILT_IN, "toy"))
    packaged = read_content()[0].replace(b"max_share = 40.0", b"max_share = 60.0")
    context.policy = parse_policy(packaged, "p")
    training = SHORT.training.model_copy(update={"steps": 3})
    recipe = SHORT.model_copy(update={"tasksets": ("toy", "digits", "own/words"), "training": training})
    planned = cycle_of("n", 0, recipe)
    certified = {"certified": {"own/words": made_by(catalog, "own/words")}}
    ledger.put_cycle(planned.model_copy(update={"plan": {**planned.plan, **certified}}))
    run_night(context, "n", recipe=recipe)
    trained = ledger.step_tasks("n")
    assert {task["taskset"] for task in trained} == {"toy", "digits", "own/words"}
    splits = {row.key: row.split for row in own.content.rows}
    assert {splits[task["key"]] for task in trained if task["taskset"] == "own/words"} == {Split.TRAIN}
    judged = [one for one in ledger.rollouts(RolloutFilter(cycle="n"), limit=10_000) if one.family == "toy"]
    assert {one.verdict.outcome for one in judged} <= {Outcome.PASS, Outcome.FAIL}
    (evaluation,) = ledger.evaluations()
    assert {item.family for item in evaluation.candidate.items} == {"toy", "digits", "own/words"}
    assert evaluation.measurements.contamination is not None
    assert evaluation.measurements.contamination.found == 0
    asked_for = unsolvable(6, 0, ("digits", "toy", "own/words"), catalog)
    assert {task.taskset for task in asked_for} == {"toy", "digits", "own/words"}
    assert demonstrable(("digits", "toy")) == ["digits"], "without demonstrations it has no part in the warm start"
