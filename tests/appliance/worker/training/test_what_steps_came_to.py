"""What later steps and stages read of a recorded step: pass rates of levels, and the tasks that are not solved yet."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd
from appliance.records.training import Judged, StepRecord
from appliance.worker.setup.context import WorkContext
from appliance.worker.stages import unsolved
from appliance.worker.training.proposer import StepProposal, remembered, verdict_of
from appliance.worker.training.rl_loop import mean_length
from appliance.worker.training.step_sampling import seen_of
from curriculum.contract.task import Split, Task
from curriculum.difficulty import Place, Seen
from curriculum.proposing.execution import Executor
from curriculum.proposing.kind import Provers, prompt
from curriculum.proposing.labels import PROPOSED, provenance
from curriculum.proposing.registry import KINDS
from curriculum.sealed import draw_task
from verifiers.contract.verdict import Outcome, Verdict


def generated(number: int) -> Task:
    task, _ = draw_task(Split.TRAIN, Random(number), set())
    return task


def judged(task: Task, sample: int, outcome: Outcome, branch_of: str | None = None) -> Judged:
    lost = outcome is Outcome.INFRA_ERROR
    rollout = Rollout(
        id=f"r{sample}" if branch_of is None else f"{branch_of}+{sample}",
        cycle="c",
        step=0,
        task=task.id,
        sample=sample,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        nodes=(Message(parent=None, role=Role.USER, ids=(1,), sampled=False),),
        ended=RolloutEnd.INFRA_ERROR if lost else RolloutEnd.ANSWERED,
        answer=None,
        answers=0,
        seconds=0.0,
        branch_of=branch_of,
        branch_at=1 if branch_of else 0,
    )
    verdict = Verdict(
        outcome=outcome, score=float(outcome is Outcome.PASS), reason="as made", verifier="t", version="1", seconds=0.0
    )
    return Judged(rollout=rollout, verdict=verdict, family=task.taskset)


def record(step: int, tasks: list[Task], rollouts: Sequence[Judged] = ()) -> StepRecord:
    written = tuple(task.record() for task in tasks)
    groups = make_groups(rollouts, TrainingRecipe(reward="score"), 0)
    return StepRecord(cycle="c", step=step, tasks=written, judged=tuple(rollouts), groups=groups, metrics={})


def test_branches_say_nothing_of_how_hard_a_level_is() -> None:
    task, other = generated(0), generated(1)
    rollouts = [
        judged(task, 0, Outcome.PASS),
        judged(task, 1, Outcome.FAIL),
        judged(task, 2, Outcome.FAIL, "r1"),
        judged(task, 3, Outcome.FAIL, "r1"),
        judged(other, 4, Outcome.INFRA_ERROR),
        judged(other, 5, Outcome.PASS, "r4"),
    ]
    places = [Place(one.taskset, one.level, one.topic) for one in (task, other)]
    assert seen_of([task, other], rollouts) == [Seen(places[0], 1, 2), Seen(places[1], 0, 0)]


def test_what_the_infrastructure_lost_makes_no_step_look_shorter() -> None:
    """An outage would look like a collapse of lengths."""
    whole = judged(generated(0), 0, Outcome.PASS)
    said = Message(parent=0, role=Role.ASSISTANT, ids=(1, 2, 3), sampled=True, logprobs=(0.0, 0.0, 0.0))
    rollout = whole.rollout.model_copy(update={"nodes": (*whole.rollout.nodes, said)})
    lost = judged(generated(0), 1, Outcome.INFRA_ERROR)
    assert mean_length([whole.model_copy(update={"rollout": rollout}), lost, lost]) == 3
    assert mean_length([lost]) == 0


def test_what_the_model_proposed_is_not_asked_again_by_a_later_stage() -> None:
    task, solved = generated(0), generated(1)
    asked = prompt("calculation", "Propose one.", Random(0))
    proposed = generated(2).model_copy(update={"taskset": PROPOSED})
    tasks = [task, solved, proposed, asked]
    right, wrong = (
        [judged(one, sample, end) for one in tasks] for sample, end in enumerate((Outcome.PASS, Outcome.FAIL))
    )
    first = record(0, tasks, [*right, *wrong])
    second = record(1, [solved], [judged(solved, sample, Outcome.PASS) for sample in range(2)])
    assert unsolved([first]) == [task, solved]
    assert unsolved([first, second]) == [task]


def test_a_task_is_solved_where_all_its_attempts_passed_whatever_their_scores_and_branches() -> None:
    task, other = generated(0), generated(1)
    good = judged(task, 0, Outcome.PASS)
    rollouts = [
        good.model_copy(update={"verdict": good.verdict.model_copy(update={"score": 0.9})}),
        judged(task, 1, Outcome.PASS),
        judged(task, 2, Outcome.FAIL, "r1"),
        judged(task, 3, Outcome.INFRA_ERROR),
        judged(other, 4, Outcome.INFRA_ERROR),
    ]
    assert unsolved([record(0, [task, other], rollouts)]) == []
    assert unsolved([record(0, [other], [judged(other, 0, Outcome.FAIL)]), record(1, [other], rollouts)]) == [other]


def test_a_proposer_remembers_what_was_proposed_before_and_reads_no_other_task(context: WorkContext) -> None:
    first, second = (
        generated(step).model_copy(update={"taskset": PROPOSED, "provenance": provenance("c", step)}) for step in (0, 1)
    )
    others = {"tasks": ({"taskset": "of a night long ago"}, first.record())}
    context.ledger.commit_step(record(0, []).model_copy(update=others))
    context.ledger.commit_step(record(1, [second]))
    for step, keys in enumerate((set(), {first.key}, {first.key, second.key})):
        memory = remembered(context.ledger, "c", step)
        assert (len(memory), {key for key in (first.key, second.key) if key in memory}) == (len(keys), keys)


def test_a_proposal_earns_by_the_attempts_at_its_task_and_nothing_good_or_bad_where_most_were_lost(
    context: WorkContext,
) -> None:
    provers = Provers(Executor(context.sessions, "t"), context.checker, provenance("c", 0))
    made = KINDS["calculation"].make("print(84+36)", provers)
    asked = prompt("calculation", "Propose one.", Random(0))
    one = StepProposal(asked, judged(asked, 0, Outcome.PASS).rollout, made)
    attempts = [judged(made.task, 1, Outcome.PASS), judged(made.task, 2, Outcome.FAIL)]
    branches = [judged(made.task, sample, Outcome.FAIL, "r2") for sample in (3, 4)]
    assert verdict_of(one, [*attempts, *branches], "azr").score == 0.5
    lost = [judged(made.task, sample, Outcome.INFRA_ERROR) for sample in (1, 2)]
    assert verdict_of(one, lost, "azr").outcome is Outcome.INFRA_ERROR
    assert verdict_of(one, [attempts[0], *lost], "azr").outcome is Outcome.INFRA_ERROR, "as its solvers' group"
    assert verdict_of(one, [*attempts, *lost], "azr").score == 0.5
    assert verdict_of(one, [], "azr").outcome is Outcome.PASS, "nobody has tried it yet"
