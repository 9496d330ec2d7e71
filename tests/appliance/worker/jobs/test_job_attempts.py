"""Jobs with files and texts, by the policy model's attempts: verified, and in bundles that can be checked."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from checkpoint_records import checkpoint_record
from scripted_engine import ScriptedEngine
from short_nights import AT, FIXTURE

from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent
from appliance.inference.folder import read_model
from appliance.jobs.check import check_bundle
from appliance.jobs.lifecycle import GAVE_WAY, WAITS, WAITS_FOR_MODEL, gives_way
from appliance.jobs.solve import POLICY_MODEL, JobSolver, attempts
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobFile, JobState, JobStep
from appliance.records.rollouts import Message
from appliance.records.training import RolloutFilter
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import Renderer
from appliance.worker.setup.context import WorkContext
from appliance.worker.work_on_jobs import first_attempt
from curriculum.seeds import derive
from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.spec import ChecklistSpec, CountItem
from verifiers.registry.spec import Spec

BUDGET = AgentBudget(max_tokens=1_200, max_calls=4, max_result_chars=60)
TABLE = b"name,amount\na,12\nb,30\n"


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return load_renderer(read_model(FIXTURE))


def queued(spec: Spec, tries: int, data: Path, **files: bytes) -> Job:
    given = []
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        (data / "files").mkdir(exist_ok=True)
        (data / "files" / digest).write_bytes(content)
        given.append(JobFile(name=name, sha256=digest, bytes=len(content)))
    return Job(
        id="j1",
        question="What is it?",
        spec=spec,
        files=tuple(given),
        attempts=tries,
        state=JobState.QUEUED,
        solvers_done=True,
        created=AT,
        updated=AT,
    )


def solve(
    context: WorkContext,
    renderer: Renderer,
    job: Job,
    scripts: dict[int, list[tuple[int, ...]]],
    gives_way: Callable[[], bool] = lambda: False,
    keep: Callable[[Sequence[JobStep]], None] = lambda steps: None,
) -> Job:
    agent = Agent(ScriptedEngine(scripts), context.sessions, renderer, BUDGET, time.monotonic)
    solver = JobSolver(
        agent, renderer, context.checker, context.ledger, context.data, {}, lambda: AT,
        sessions=context.sessions, branches=1,
    )  # fmt: skip
    first = first_attempt(job, context.ledger)
    made = attempts(job, temperature=1.0, derive=derive, policy=context.policy, first=first)
    return solver.solve(job, made, gives_way=gives_way, keep=keep)


def test_a_data_job_is_solved_on_a_branch_that_went_on_from_before_a_failure(
    context: WorkContext, ledger: SqliteLedger, renderer: Renderer
) -> None:
    job = queued(AnswerSpec(expected="42"), 1, context.data, table=TABLE)
    read = "import csv\nrows = list(csv.DictReader(open('table')))\nprint(len(rows))"
    total = "print(sum(int(row['amount']) for row in rows))"
    ended = solve(
        context,
        renderer,
        job,
        {
            0: [renderer.call(read), renderer.call("rows = rows.sum()"), renderer.answer("\\boxed{0}")],
            1: [renderer.call(total), renderer.answer("\\boxed{42}")],
        },
    )
    assert (ended.state, ended.solved_by) == (JobState.SOLVED, POLICY_MODEL)
    assert ended.reason.startswith("verified on a branch, try ")
    artifact = ledger.artifact("j1")
    assert artifact is not None
    folder = context.data / artifact.folder
    assert check_bundle(folder, expect=artifact.manifest, checker=context.checker).ok
    transcript = json.loads((folder / "transcript.json").read_text())
    assert "table (22 bytes)" in transcript[0]["text"]
    assert "rows.sum" not in json.dumps(transcript)
    left = {one.rollout.id: one.rollout.branch_of for one in ledger.rollouts(RolloutFilter(cycle="j1"))}
    assert left["j1.0+1"] == "j1.0"


def test_a_text_is_judged_as_the_whole_last_turn(
    context: WorkContext, ledger: SqliteLedger, renderer: Renderer
) -> None:
    spec = ChecklistSpec(items=(CountItem(name="list", of="list_items", least=2, most=2),))
    text = "Two things matter.\n\n- One is this.\n- The other is that."
    turn = (*renderer.plain(text), renderer.stop)
    ended = solve(context, renderer, queued(spec, 2, context.data), {0: [renderer.answer("\\boxed{- a}")], 1: [turn]})
    assert ended.state is JobState.SOLVED
    artifact = ledger.artifact("j1")
    assert artifact is not None
    assert artifact.answer == text


def test_a_job_that_nobody_solved_says_how_many_branches_were_tried(context: WorkContext, renderer: Renderer) -> None:
    wrong = renderer.answer("\\boxed{0}")
    job = queued(AnswerSpec(expected="42"), 1, context.data)
    ended = solve(context, renderer, job, {0: [renderer.call("print(1)"), renderer.call("1 / 0"), wrong], 1: [wrong]})
    assert (ended.state, ended.reason) == (JobState.UNSOLVED, "none of 1 attempt and 1 branch was verified")
    assert ended.tries_done == 2


def test_a_job_that_gave_way_after_an_attempt_goes_on_with_those_that_it_had_not_made(
    context: WorkContext, ledger: SqliteLedger, renderer: Renderer
) -> None:
    job = queued(AnswerSpec(expected="42"), 3, context.data).model_copy(update={"weights": ScriptedEngine({}).version})
    ledger.put_job(job)
    wrong, right = renderer.answer("\\boxed{0}"), renderer.answer("\\boxed{42}")
    way = solve(context, renderer, job, {0: [wrong], 1: [wrong], 2: [wrong]}, gives_way=lambda: True)
    assert (way.state, way.reason, way.tries_done) == (JobState.QUEUED, GAVE_WAY, 1)
    [made] = ledger.rollouts(RolloutFilter(job="j1"))
    ended = solve(context, renderer, ledger.put_job(way), {0: [wrong], 1: [right]})
    assert (ended.state, ended.reason) == (JobState.SOLVED, "verified on attempt 3 of 3")
    both = {one.rollout.id for one in ledger.rollouts(RolloutFilter(job="j1"))}
    assert made.rollout.id in both
    assert len(both) == 3


def test_attempts_are_made_in_steps_and_each_step_says_what_was_expected_and_what_came_of_it(
    context: WorkContext, renderer: Renderer
) -> None:
    wrong = renderer.answer("\\boxed{0}")
    ended = solve(context, renderer, queued(AnswerSpec(expected="42"), 5, context.data), {n: [wrong] for n in range(5)})
    assert ended.reason == "none of 5 attempts was verified"
    assert [(step.attempts, step.failed, step.ended) for step in ended.steps] == [
        (2, 2, True),
        (2, 2, True),
        (1, 1, True),
    ]
    expected = [step.expected / step.attempts for step in ended.steps]
    assert expected == sorted(expected, reverse=True)
    assert [step.tokens for step in ended.steps] == [2 * len(wrong), 2 * len(wrong), len(wrong)]
    assert [step.cost for step in ended.steps] == [0.0, len(wrong), len(wrong)]


def test_a_step_cut_by_a_more_urgent_job_is_finished_before_another_is_chosen(
    context: WorkContext, ledger: SqliteLedger, renderer: Renderer
) -> None:
    job = queued(AnswerSpec(expected="42"), 3, context.data).model_copy(update={"weights": ScriptedEngine({}).version})
    wrong = renderer.answer("\\boxed{0}")
    way = solve(context, renderer, ledger.put_job(job), {n: [wrong] for n in range(3)}, gives_way=lambda: True)
    assert [(step.attempts, step.ended) for step in way.steps] == [(2, False)]
    ended = solve(context, renderer, ledger.put_job(way), {n: [wrong] for n in range(2)})
    assert [(step.attempts, step.failed) for step in ended.steps] == [(2, 2), (1, 1)]
    assert ended.steps[0].expected == way.steps[0].expected


def test_a_budget_of_tokens_ends_the_work_and_drops_what_is_under_way(context: WorkContext, renderer: Renderer) -> None:
    job = queued(AnswerSpec(expected="42"), 8, context.data).model_copy(update={"budget_tokens": 1})
    wrong = renderer.answer("\\boxed{0}")
    ended = solve(context, renderer, job, {n: [wrong] for n in range(8)})
    assert ended.reason == "none of 1 attempt was verified; its budget of tokens is used up"
    [step] = ended.steps
    assert (step.failed, step.tokens, step.ended) == (1, len(wrong), True)


def test_where_tests_decide_a_job_has_no_more_attempts_than_luck_allows(
    context: WorkContext, renderer: Renderer
) -> None:
    spec = ChecklistSpec(items=(CountItem(name="list", of="list_items", least=2, most=2),))
    turn = (*renderer.plain("one line"), renderer.stop)
    ended = solve(context, renderer, queued(spec, 20, context.data), {n: [turn] for n in range(20)})
    assert ended.reason == "none of 16 attempts was verified; where tests decide, 16 attempts are the most"


def test_a_kill_between_a_pass_and_its_bundle_has_the_attempt_made_and_verified_again(
    context: WorkContext, ledger: SqliteLedger, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queued(AnswerSpec(expected="42"), 2, context.data).model_copy(update={"weights": ScriptedEngine({}).version})
    wrong, right = renderer.answer("\\boxed{0}"), renderer.answer("\\boxed{42}")
    kept: list[JobStep] = []

    def killed(*_: object) -> Job:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(JobSolver, "_solved", killed)
        with pytest.raises(KeyboardInterrupt):
            solve(
                context, renderer, ledger.put_job(job), {0: [wrong], 1: [right]}, keep=lambda steps: _set(kept, steps)
            )
    begun = ledger.put_job(job.model_copy(update={"steps": tuple(kept)}))
    ended = solve(context, renderer, begun, {0: [right], 1: [right]})
    assert (ended.state, len(ended.steps)) == (JobState.SOLVED, 1)


def _set(kept: list[JobStep], steps: Sequence[JobStep]) -> None:
    kept[:] = steps


def test_weights_that_come_back_begin_behind_those_of_others_and_the_tokens_of_all_are_counted(
    context: WorkContext, ledger: SqliteLedger, renderer: Renderer
) -> None:
    wrong, version = renderer.answer("\\boxed{0}"), ScriptedEngine({}).version
    old = queued(AnswerSpec(expected="42"), 2, context.data).model_copy(update={"weights": version})
    ended = solve(context, renderer, ledger.put_job(old), {0: [wrong], 1: [wrong]})
    (made,) = ended.steps
    other = [made.model_copy(update={"weights": "other", "first": 2, "attempts": 1})]
    third = ledger.rollouts(RolloutFilter(job="j1"))[0]

    def by_others(node: Message) -> Message:
        spans = tuple(span.model_copy(update={"version": "other"}) for span in node.weights)
        return node.model_copy(update={"weights": spans})

    changed = {"id": "j1.2", "sample": 2, "nodes": tuple(map(by_others, third.rollout.nodes))}
    ledger.put_rollouts([third.model_copy(update={"rollout": third.rollout.model_copy(update=changed)})])
    again = old.model_copy(update={"steps": (made, *other), "budget_tokens": 5 * len(wrong)})
    kept: list[JobStep] = []
    solve(context, renderer, again, {0: [wrong], 1: [wrong]}, keep=lambda steps: _set(kept, steps))
    assert [(step.weights, step.first, step.attempts) for step in kept] == [
        (version, 0, 2), ("other", 2, 1), (version, 3, 2),
    ]  # fmt: skip
    assert kept[-1].failed == 2
    fewer = again.model_copy(update={"budget_tokens": 3 * len(wrong)})
    kept.clear()
    solve(context, renderer, fewer, {0: [wrong], 1: [wrong]}, keep=lambda steps: _set(kept, steps))
    assert kept == []


def test_a_job_that_waits_for_a_model_is_put_on_record_by_who_asked_and_once(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    job = ledger.put_job(queued(AnswerSpec(expected="42"), 1, context.data))
    solver = JobSolver(None, None, context.checker, ledger, context.data, {}, lambda: AT, sessions=context.sessions)
    left = solver.solve(job, [])
    assert (left.state, left.reason) == (JobState.QUEUED, WAITS)
    ledger.put_checkpoint(checkpoint_record("a" * 64, created=AT))
    ledger.set_aliases({"champion": "a" * 64}, "first", AT)
    assert solver.solve(job, []).reason == WAITS_FOR_MODEL
    assert ledger.job(job.id) == job


@pytest.mark.parametrize(
    ("mine", "other", "gives"),
    [
        ({"priority": 5}, {"priority": 6}, True),
        ({"priority": 5}, {"priority": 5}, False),
        ({"priority": 5}, {"priority": 9, "replay_of": "j0"}, False),
        ({"priority": 5, "replay_of": "j0"}, {"priority": 0}, True),
    ],
)
def test_a_job_gives_way_to_a_more_urgent_one_and_a_replay_to_anybody_s(tmp_path, mine, other, gives) -> None:
    job = queued(AnswerSpec(expected="42"), 1, tmp_path)
    one, two = job.model_copy(update=mine), job.model_copy(update={**other, "id": "j2"})
    assert gives_way(one, two) is gives
    assert not gives_way(one, None)
    assert not gives_way(one, one.model_copy(update={"priority": 9}))
