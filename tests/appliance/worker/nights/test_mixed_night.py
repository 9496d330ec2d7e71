"""A night over mixed tasksets on a chat-format model: it learns where it can, and says by taskset what it could not.

The engine is a script, so that each taskset ends in a way of its own.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from chat_models import qwen3_folder
from scripted_engine import Ids, ScriptedEngine
from short_nights import SHORT, cycle_of, train_night

from appliance.agent.answers import written
from appliance.agent.budget import AgentBudget
from appliance.agent.conversation import Conversation
from appliance.client.taskset_outcomes import OutcomeState, TasksetOutcome, outcomes_of
from appliance.curriculum.kept_files import kept_questions
from appliance.curriculum.own_files import file_of
from appliance.curriculum.own_tasksets import catalog_in
from appliance.inference.engine import GenerationRequest
from appliance.inference.engines import ENGINES
from appliance.inference.folder import read_model
from appliance.learning.limits.rollout_limits import TurnRecipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import ToolRequest
from appliance.rendering.tools import tools_of
from appliance.settings.policy_files import parse_policy
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup, training_rules
from curriculum.catalog import Catalog
from curriculum.certification.certificate import made_by
from curriculum.contract.task import Task
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent
from curriculum.sealed import sealed_set
from curriculum.seeds import derive
from policies.policy import Policy, read_content
from runtime.settings import RuntimeSettings
from verifiers.answers.spec import AnswerSpec

OWN = "own/sums"
MIX = ("arithmetic", "programs", "knights", "mail_search", "research", OWN, "theorems")
RECIPE = SHORT.model_copy(
    update={
        "tasksets": MIX,
        "training": SHORT.training.model_copy(
            update={
                "steps": 2,
                "tasks_per_step": 10,
                "rollouts_per_task": 4,
                "keep": 2,
                "watch_every": 2,
                "turns": TurnRecipe(first=1, every=1),
            }
        ),
        "agent": AgentBudget(concurrent=64, max_tokens=1600, max_calls=2),
        "evaluation": SHORT.evaluation.model_copy(update={"sealed_items": 7}),
    }
)


def _words(seed: int) -> str:
    """Words of its own for each question: with other numbers alone it would be a copy of a sealed one."""
    return " ".join("".join(Random(seed * 8 + place).choices("abcdeilnorstu", k=7)) for place in range(6))


def own_sums(data: Path) -> Catalog:
    rows = [
        OwnRow(
            question=f"{_words(a)}: {a} and {a + 7}?",
            spec=AnswerSpec(expected=str(2 * a + 7)),
            answer=str(2 * a + 7),
            origin="s",
        )
        for a in range(100, 220)
    ]
    content = OwnContent(name="sums", added="now", rows=with_levels(rows))
    path = file_of(data, "sums")
    path.parent.mkdir()
    path.write_text(content.model_copy(update={"digest": content.rows_digest()}).model_dump_json())
    return catalog_in(data, MIX)


def policy() -> Policy:
    """The packaged one with small shares for all but the owner's, so that each is asked."""
    shares = "arithmetic = 20.0\n" + "".join(
        f"{name} = 10.0\n" for name in ("programs", "knights", "mail_search", "research")
    )
    return parse_policy(read_content()[0].replace(b"[data.shares]", f"[data.shares]\n{shares}".encode()), "p")


class Script:
    """Answers arithmetic rightly now and then, knights always, programs outside of a block; searches mail without an
    end; calls in research what there is not."""

    def __init__(self, model: Path, catalog: Catalog, rules: Policy) -> None:
        self.renderer, self.catalog = load_renderer(read_model(model)), catalog
        usable = tuple(name for name in catalog.tasksets if name in MIX and name != "theorems")
        sealed = sealed_set(RECIPE.evaluation.sealed_items, derive("sealed", 0), tasksets=usable, catalog=catalog)
        setup = CycleSetup("n", 0, RECIPE, usable, sealed, catalog)
        stream = setup.training_tasks(training_rules(rules, _NoCycles(), "n", usable))  # type: ignore[arg-type]
        asked = [*setup.watched, *(task for step in range(2) for task in stream.tasks(step, 10))]
        self.tasks = {Conversation.begin(self.renderer, task).ids: task for task in asked}
        self.engine = ScriptedEngine(self, slots=RECIPE.agent.max_tokens, version="")

    def __call__(self, request: GenerationRequest, known: Ids) -> Ids:
        task = self.tasks[request.prompt]
        tools = tools_of(task)
        if task.taskset == "mail_search":
            return self.renderer.request(ToolRequest(tool="search_inbox", arguments={"keywords": "invoice"}), tools)
        if task.taskset == "research":
            return self.renderer.request(ToolRequest(tool="dig", arguments={}), tools)
        return self.renderer.answer(self._said(task, right=request.seed % 2 == 0))

    def _said(self, task: Task, *, right: bool) -> str:
        answer = self.catalog.draft_of(task).answer
        if task.taskset == "programs":
            return answer
        return written(answer if right or task.taskset == "knights" else "no", task.form)


class _NoCycles:
    def cycles(self, limit: int) -> list[object]:
        return []


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, runtime: RuntimeSettings) -> dict[str, TasksetOutcome]:
    folder = tmp_path_factory.mktemp("mixed")
    with pytest.MonkeyPatch.context() as patched, SqliteLedger(folder / "ledger.sqlite3") as ledger:
        patched.setenv("LEAN_TOOLCHAIN", "/nothing")
        model, catalog = qwen3_folder(folder / "model"), own_sums(folder)
        script = Script(model, catalog, policy())
        patched.setitem(ENGINES, "scripted", lambda rows, slots, threads: script.engine)
        begun = cycle_of("n", 0, RECIPE)
        ledger.put_cycle(begun.model_copy(update={"plan": {**begun.plan, "certified": {OWN: made_by(catalog, OWN)}}}))
        with WorkContext(folder, ledger, runtime, RECIPE.agent, policy(), engine="scripted") as context:
            train_night(context, "n", model=model, recipe=RECIPE)
        cycle = ledger.cycle("n")
        assert cycle is not None
        budgets = [figures["turn_budget"] for figures in ledger.step_metrics("n")]
        assert budgets == [1.0, 2.0], "it grows within a stage"
        made = {
            len(one.rollout.calls) for step in range(2) for one in _judged(ledger, step) if one.family == "mail_search"
        }
        assert made == {1, 2}
        counts = ledger.pass_counts("n", {task.id: task.level for task in kept_questions(folder, "n")})
        assert all(one.level is not None for one in counts if one.purpose is Purpose.VALIDATION)
        return {one.name: one for one in outcomes_of(cycle, counts, [])}


def _judged(ledger: SqliteLedger, step: int) -> tuple[Judged, ...]:
    record = ledger.step("n", step)
    assert record is not None
    return record.judged


def test_every_taskset_of_the_recipe_has_an_outcome(outcomes: dict[str, TasksetOutcome]) -> None:
    assert tuple(outcomes) == MIX
    assert outcomes["theorems"].state is OutcomeState.LEFT_OUT
    assert outcomes["theorems"].reason.startswith("no Lean is installed")


def test_what_was_learned_from_says_from_how_many_groups(outcomes: dict[str, TasksetOutcome]) -> None:
    for name in ("arithmetic", OWN):
        one = outcomes[name]
        assert one.state is OutcomeState.LEARNED
        assert 0 < one.learned <= one.groups
        assert 4 * one.groups == one.rollouts > one.passed > 0
    assert outcomes["knights"].said == "always solved"


def test_what_was_never_solved_says_how_its_rollouts_ended(outcomes: dict[str, TasksetOutcome]) -> None:
    programs, mail, research = (outcomes[name] for name in ("programs", "mail_search", "research"))
    assert {one.state for one in (programs, mail, research)} == {OutcomeState.UNSOLVED}
    assert programs.reason == f"{programs.rollouts} of {programs.rollouts}: no answer in the required form"
    assert mail.reason == f"{mail.rollouts} of {mail.rollouts}: used more than 1 to 2 tool calls"
    assert research.reason.endswith(f"{research.rollouts} with an invalid tool call")
