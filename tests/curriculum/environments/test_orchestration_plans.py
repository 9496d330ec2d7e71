"""Plans of the environment `orchestration`: what they come to, and what goes wrong when they are not followed."""

from __future__ import annotations

from random import Random

import pytest
from tables import table

from curriculum.contract.environment import MadeCall, NamesFailures
from curriculum.contract.errors import CurriculumError
from curriculum.environments.orchestration import ORCHESTRATION
from curriculum.environments.orchestration.failures import MODES, failure_modes
from curriculum.environments.orchestration.plans import CHAINS, PLANS, PlanStep, drawn, executed
from curriculum.environments.orchestration.services import SERVICES, TOOLS
from curriculum.registry import make_draft

SEED, DAY = 11, 42


@pytest.mark.parametrize("plan", PLANS)
def test_plans_take_more_steps_and_servers_with_the_level(plan: str) -> None:
    rng = Random(2)
    levels = 7 if plan in CHAINS else 5
    steps = [len(executed(drawn(plan, level, rng), SEED, DAY).steps) for level in range(levels)]
    assert steps == sorted(steps)
    assert steps[0] == (2 if plan in CHAINS else 4)
    assert steps[-1] >= 20


@pytest.mark.parametrize("plan", PLANS)
def test_what_a_plan_comes_to_drifts_from_day_to_day_and_is_the_same_on_one_day(plan: str) -> None:
    question = drawn(plan, 2, Random(3))
    answers = [executed(question, SEED, day).answer for day in range(30)]
    assert len(set(answers)) > 15
    assert answers == [executed(question, SEED, day).answer for day in range(30)]


def test_servers_that_a_plan_does_not_need_answer_otherwise() -> None:
    inventory, archive = SERVICES["inventory"](SEED, DAY), SERVICES["archive"](SEED, DAY)
    products = ("anvil", "barrel", "chisel", "drill")
    assert [inventory.price(one) for one in products] != [inventory.list_price(one) for one in products]
    assert [inventory.stock(one, "North") for one in products] != [archive.stock(one, "North") for one in products]
    for level in range(7):
        world = make_draft("orchestration", level, 7).world
        needed = {step.server for step in executed(world["question"], world["seed"], world["day"]).steps}
        assert needed < set(world["servers"])


def test_every_tool_is_one_of_its_service_and_says_what_it_does() -> None:
    for name, tools in TOOLS.items():
        for tool in tools:
            assert getattr(SERVICES[name], tool).__doc__.strip()


@pytest.mark.parametrize(
    "setup",
    [{}, {"seed": 1, "day": 1, "servers": []}, {"seed": 1, "day": 1, "servers": ["x"]},
     {"seed": -1, "day": 1, "servers": ["files"]}, {"seed": 1, "day": 1, "servers": ["files"], "more": 1}],
)  # fmt: skip
def test_a_setup_that_is_none_is_refused_with_the_servers_that_there_are(setup: dict[str, object]) -> None:
    with pytest.raises(CurriculumError) as caught:
        ORCHESTRATION.files(setup)
    assert "inventory" in caught.value.hint


STEPS = (
    PlanStep("files", "read_file", {"name": "order-abel.txt"}),
    PlanStep("inventory", "price", {"product": "drill"}),
)


def called(server: str, tool: str, failed: bool = False, text: str = "", **arguments: object) -> MadeCall:
    return MadeCall("call_tool", {"server": server, "tool": tool, "arguments": arguments}, failed, text=text)


BAD = called("inventory", "price", True, "arguments refused: x")
READ, PRICE = called("files", "read_file", name="order-abel.txt"), called("inventory", "price", product="drill")
LIST = MadeCall("list_tools", {})


@table(
    ("calls", "answered", "passed", "expected"),
    [
        ([LIST, READ, PRICE], True, True, {}),
        ([LIST, READ, PRICE], True, False, {"output_parsing_errors": 1}),
        ([READ], True, False, {"ignoring_requirement": 1}),
        ([], True, False, {"overconfident_self_solving": 1}),
        ([LIST, called("trivia", "fact", about="x")], True, False, {"overconfident_self_solving": 1, "wrong_tool": 1}),
        ([READ, PRICE], False, False, {"unproductive_thinking": 1}),
        ([READ, READ, READ, PRICE], True, True, {"unproductive_thinking": 1}),
        ([READ, PRICE, called("archive", "stock", failed=True)], True, True, {"wrong_tool": 1}),
        ([READ, called("inventory", "price", product="hoist")], True, False, {"semantic_errors": 1}),
        ([READ, PRICE, BAD], True, True, {"syntactic_errors": 1}),
        ([READ, PRICE, MadeCall("call_tool", {"x": 1}, True, reached=False)], True, True, {"syntactic_errors": 1}),
    ],
)  # fmt: skip
def test_each_failure_mode_is_decided_from_the_calls(
    calls: list[MadeCall], answered: bool, passed: bool, expected: dict[str, int]
) -> None:
    found = failure_modes(STEPS, calls, answered=answered, passed=passed)
    assert set(found) == set(MODES)
    assert {mode: times for mode, times in found.items() if times} == expected


def test_the_environment_counts_a_rollout_that_followed_the_plan_as_none() -> None:
    world = make_draft("orchestration", 3, 7).world
    steps = executed(world["question"], world["seed"], world["day"]).steps
    calls = [called(step.server, step.tool, **step.arguments) for step in steps]
    assert isinstance(ORCHESTRATION, NamesFailures)
    assert set(ORCHESTRATION.failure_modes(world, calls, answered=True, passed=True).values()) == {0}
    assert ORCHESTRATION.failure_modes(world, [], answered=True, passed=False)["overconfident_self_solving"] == 1
