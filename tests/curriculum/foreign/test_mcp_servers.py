"""An owner's MCP server: a real one, over its standard input and output in a sandbox, and the tasks that are given.

They need the SDK for guests: `assay curriculum adapter install mcp`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.rendering.tools import tools_of
from curriculum.adapters import ADAPTERS
from curriculum.catalog import Catalog
from curriculum.certification.certify import certify
from curriculum.certification.worlds import tried_in
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split
from curriculum.environments import ENVIRONMENTS
from curriculum.environments.mcp import MCP
from curriculum.foreign.given import GivenTask, rows_given
from curriculum.foreign.making import LeftOut
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from curriculum.seeds import split_of
from curriculum.worlds.world import World
from runtime.sessions import Sessions
from verifiers.contract.verdict import Outcome
from verifiers.files.verifier import FilesVerifier
from verifiers.registry import decide

ADAPTER = ADAPTERS["mcp"]
PACKAGE = Path(__file__).parents[2] / "fixtures" / "mcp_servers" / "ledger_server"
TASKS = [json.loads(line) for line in (PACKAGE / "tasks.jsonl").read_text().splitlines()]
pytestmark = pytest.mark.skipif(bool(ADAPTER.missing()), reason=ADAPTER.missing())
Made = tuple[list[OwnRow], list[LeftOut]]


def made_of(pool: Sessions, *tasks: dict[str, Any]) -> Made:
    return rows_given(pool, "ledger_server", [GivenTask(f"t:{at}", task) for at, task in enumerate(tasks, 1)])


@pytest.fixture(scope="module")
def rows(pool: Sessions) -> list[OwnRow]:
    rows, left_out = made_of(pool, TASKS[0], *TASKS[12:])
    assert [(one.origin, "never trained on" in one.reason) for one in left_out] == [("t:3", True)]
    return rows


def held(seed: int, *accounts: str) -> int:
    drawn = random.Random(str(seed))
    book = {name: drawn.randrange(100, 1_000) for name in ("rent", "food", "books", "travel")}
    return sum(book[name] for name in accounts)


def balance(world: World, account: str) -> int:
    reply = world.call("balance", {"account": account})
    assert not reply.failed, reply.text
    return int(reply.text)


def test_a_task_has_the_servers_tools_a_check_of_ours_and_no_answer_in_its_world(rows: list[OwnRow]) -> None:
    first, moved = rows
    assert (first.environment, first.tools, first.spec.kind) == ("mcp", ("accounts", "balance"), "answer")
    assert moved.tools == ("accounts", "balance", "move_coins", "standing", "read_file")
    assert first.answer not in json.dumps(dict(first.world))
    declared = {tool.name: tool for tool in MCP.brought(moved.world)}
    assert declared["move_coins"].description == "Moves coins from one account to another."
    assert set(declared["move_coins"].parameters["required"]) == {"source", "target", "coins"}


def test_an_answer_that_was_worked_out_with_the_tools_passes_and_another_does_not(
    pool: Sessions, rows: list[OwnRow]
) -> None:
    with World.open(pool, MCP, rows[0].world) as world:
        assert "travel" in world.call("accounts", {}).text
        found = balance(world, "rent") + balance(world, "travel")
    assert found == held(1, "rent", "travel")
    outcomes = [decide(rows[0].spec, str(answer)).outcome for answer in (found, found + 1, "")]
    assert outcomes == [Outcome.PASS, Outcome.FAIL, Outcome.FAIL]


def test_calls_change_the_state_of_their_own_server_alone(pool: Sessions, rows: list[OwnRow]) -> None:
    setup = rows[1].world
    with World.open(pool, MCP, setup) as world, World.open(pool, MCP, setup) as other:
        world.call("move_coins", {"source": "books", "target": "food", "coins": held(3, "books")})
        assert (balance(world, "food"), balance(other, "food")) == (held(3, "books", "food"), held(3, "food"))
        refused = world.call("move_coins", {"source": "books", "target": "food", "coins": 1})
        assert (refused.failed, refused.reached) == (True, True)
        assert "books holds 0 coins" in refused.text


def test_branches_of_a_world_have_servers_of_their_own(pool: Sessions, rows: list[OwnRow]) -> None:
    with World.open(pool, MCP, rows[1].world) as world:
        world.call("move_coins", {"source": "rent", "target": "food", "coins": 1})
        one, other = world.fork(2)
        with one, other:
            one.call("move_coins", {"source": "rent", "target": "food", "coins": 10})
            more = [balance(branch, "food") - held(3, "food") for branch in (world, one, other)]
    assert more == [1, 11, 1]


def test_arguments_that_do_not_fit_and_tools_that_are_not_offered_never_reach_the_server(
    pool: Sessions, rows: list[OwnRow]
) -> None:
    with World.open(pool, MCP, rows[0].world) as world:
        for tool, arguments in (
            ("balance", {"account": 7}),
            ("balance", {}),
            ("balance", {"account": "rent", "more": 1}),
            ("move_coins", {"source": "rent", "target": "food", "coins": 1}),
        ):
            reply = world.call(tool, arguments)
            assert (reply.failed, reply.reached) == (True, False)
        assert world.call("list_served_tools", {"first": 0}).failed


def test_no_guest_has_the_tasks_not_even_one_whose_tool_reads_files(pool: Sessions, rows: list[OwnRow]) -> None:
    with World.open(pool, MCP, rows[1].world) as world:
        place = world.call("read_file", {"path": "book.json"})
        assert json.loads(place.text)["food"] == held(3, "food")
        for path in ("tasks.jsonl", "/packages/ledger_server/tasks.jsonl", "/proc/self/environ", "/etc/shadow"):
            assert world.call("read_file", {"path": path}).failed


def test_what_the_servers_own_tool_scores_is_a_foreign_reward_and_no_verdict(pool: Sessions) -> None:
    [row], _ = made_of(pool, TASKS[13])
    assert "standing" not in row.tools
    with World.open(pool, MCP, row.world) as world:
        assert not world.call("standing", {}).reached
        for account in ("rent", "books", "travel"):
            coins = {"source": account, "target": "food", "coins": balance(world, account)}
            world.call("move_coins", coins)
        submission = world.submission()
    assert submission is not None
    verdict = FilesVerifier(pool).verify(row.spec, submission)
    assert (verdict.outcome, verdict.foreign_reward) == (Outcome.FAIL, 1.0)


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ({"question": "What?"}, "no final answer"),
        ({"answer": "1"}, "no question"),
        ({**TASKS[0], "tools": ["rm"]}, "the server has no tool 'rm'; it has accounts, balance"),
        ({**TASKS[0], "tools": ["python"]}, "no tool of the server"),
        ({**TASKS[0], "tools": "balance"}, "invalid tools"),
        ({**TASKS[0], "arguments": {"seed": 1}}, "invalid arguments"),
        ({**TASKS[0], "arguments": ["x\0y"]}, "invalid arguments"),
        ({**TASKS[0], "score": "standing"}, "both a check and a server's score"),
        ({"question": "Well?", "score": "standing", "spec": {"kind": "nonsense"}}, "both a check and a server's score"),
        (
            {"question": "Well?", "spec": {"kind": "files", "declared": ["a"], "files": [{"path": "a"}]}},
            "judges a world",
        ),
        ({"question": "Well?", "score": "rm"}, "no tool 'rm'"),
        ({"score": "standing"}, "no question"),
    ],
)
def test_a_task_that_cannot_be_used_is_left_out_with_the_reason(pool: Sessions, task: dict[str, Any], why: str) -> None:
    with pytest.raises(CurriculumError, match="no task was made") as caught:
        made_of(pool, task)
    assert why in str(caught.value)


def test_what_can_be_used_of_a_file_is_and_a_question_comes_once(pool: Sessions) -> None:
    bad = GivenTask("t:3", None, "it is no JSON")
    again = {**TASKS[0], "arguments": [2]}
    given = [GivenTask("t:1", TASKS[0]), GivenTask("t:2", again), bad]
    rows, left_out = rows_given(pool, "ledger_server", given)
    assert (len(rows), [one.origin for one in left_out]) == (1, ["t:2", "t:3"])
    assert "exists already" in left_out[0].reason


def test_python_is_beside_the_tools_where_a_task_asks_for_it(pool: Sessions) -> None:
    [row], _ = made_of(pool, {**TASKS[0], "tools": ["balance", "python"]})
    assert row.tools == ("balance", "python")


@pytest.fixture
def taskset(pool: Sessions) -> OwnTaskset:
    rows, _ = made_of(pool, *TASKS[:10])
    content = OwnContent(name="ledger", added="", rows=with_levels(rows))
    return OwnTaskset(content.model_copy(update={"digest": content.rows_digest()}))


def test_a_taskset_of_it_is_certified_and_its_tasks_offer_its_tools(pool: Sessions, taskset: OwnTaskset) -> None:
    catalog = Catalog({"own": {taskset.name: taskset}})
    seeds = [seed for seed in range(40) if split_of(seed) is Split.TRAIN]
    task = catalog.task("own/ledger", 0, seeds[0], Split.TRAIN)
    assert [tool.name for tool in tools_of(task)] == ["accounts", "balance"]
    judge: Callable[[Any], Any] = lambda asked: [decide(spec, answer) for spec, answer in asked]  # noqa: E731
    report = certify(catalog, "own/ledger", judge, seeds=4, worlds=tried_in(ENVIRONMENTS, pool))
    assert report.faults == ()
    assert report.agents["reference"].rate == 1.0
    assert {name: rate.passed for name, rate in report.agents.items() if name != "reference"} == {
        "null": 0, "empty": 0, "echo": 0, "random": 0, "hack": 0,
    }  # fmt: skip
