"""Worlds of servers that others publish, from PyPI and npm, beside ours: what they answer, and what agents make of it.

They need the packages for guests: `assay curriculum adapter install mcp_servers`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from parallel_worlds import asked

from curriculum.contract.errors import CurriculumError
from curriculum.contract.taskset import TaskDraft
from curriculum.environments.orchestration import ORCHESTRATION, PUBLISHED_SERVERS
from curriculum.environments.orchestration.plans import Ask, answer, executed
from curriculum.environments.orchestration.published import (
    ENTITIES,
    PUBLISHED,
    SHARED,
    ZONES,
    Filesystem,
    Memory,
    PublishedServer,
    Time,
)
from curriculum.registry import TASKSETS, make_draft
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError
from runtime.package_sets import set_folder
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide

TASKSET = TASKSETS["published_servers"]
SETUP: dict[str, Any] = {"seed": 5, "day": 9, "servers": ["calendar", *PUBLISHED]}
here = pytest.mark.skipif(bool(PUBLISHED_SERVERS.missing()), reason=PUBLISHED_SERVERS.missing())


@pytest.fixture(scope="module")
def pool(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own)) as sessions:
        yield sessions


@pytest.fixture(scope="module")
def world(pool: Sessions) -> Iterator[World]:
    with World.open(pool, PUBLISHED_SERVERS, SETUP) as world:
        yield world


@pytest.fixture(scope="module")
def drafts() -> list[TaskDraft]:
    found = {}
    for level, seed in product((0, 4), range(9)):
        draft = make_draft(TASKSET.name, level, seed)
        found.setdefault((level, draft.topic), draft)
    assert {topic for _, topic in found} == set(TASKSET.topics)
    return list(found.values())


def out_of_date(ask: Ask) -> Ask:
    """Reads hours, prices and time zones of last year where today's are beside them."""

    def answered(server: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        found = ask(server, tool, arguments)
        if server == "memory":
            text = json.dumps(found).replace("time zone: ", "new: ").replace("in the register of last year: ", ": ")
            return json.loads(text.replace("time zone : ", "time zone: "))
        if server == "filesystem":
            other = found.replace("opens", "new").replace("opened last year", "opens")
            return other.replace("amount", "new").replace("last year", "amount")
        return found

    return answered


@here
def test_an_oracle_comes_to_the_ground_truth_and_an_agent_that_reads_last_years_data_does_not(
    pool: Sessions, drafts: list[TaskDraft]
) -> None:
    for draft in drafts:
        with World.open(pool, PUBLISHED_SERVERS, draft.world) as world:
            called: set[str] = set()

            def ask(server: str, *call: Any, world: World = world, called: set[str] = called) -> Any:
                called.add(server)
                return asked(world, server, *call)

            before = world.digest()
            said = str(answer(draft.world["question"], ask))
            wrong = str(answer(draft.world["question"], out_of_date(ask)))
            assert world.digest() == before
        assert decide(draft.spec, said).outcome is Outcome.PASS
        assert decide(draft.spec, wrong).outcome is Outcome.FAIL
        assert called >= {"memory", "filesystem"} | ({"time"} if "openings" in draft.topic else {"currency"})


def test_no_null_answer_and_no_answer_of_another_day_passes(drafts: list[TaskDraft]) -> None:
    for draft in drafts:
        world = draft.world
        other = executed(world["question"], world["seed"], world["day"] + 1).answer
        for said in (*TASKSET.null_answers, str(other)):
            assert decide(draft.spec, said).outcome is Outcome.FAIL


@here
def test_the_real_servers_answer_as_ground_truth_has_it(world: World) -> None:
    memory, folder, time = (kind(SETUP["seed"], SETUP["day"]) for kind in (Memory, Filesystem, Time))
    for name in ENTITIES:
        assert asked(world, "memory", "open_nodes", {"names": [name]}) == memory.open_nodes([name])
    for path in folder.paths():
        assert asked(world, "filesystem", "read_text_file", {"path": path}) == folder.read_text_file(path)
    for start, end in product(ZONES, ZONES):
        asks = {"source_timezone": start, "time": "07:05", "target_timezone": end}
        found, wanted = (
            one["target"]["datetime"] for one in (asked(world, "time", "convert_time", asks), time.convert_time(**asks))
        )
        assert found.partition("T")[2][:8] == wanted.partition("T")[2]


@here
def test_no_time_zone_of_a_question_ever_changes_its_clocks() -> None:
    packages = PUBLISHED_SERVERS.packages(SETUP)
    assert packages is not None
    for name, minutes in ZONES.items():
        with (set_folder(packages.digest) / "tzdata" / "zoneinfo" / name).open("rb") as file:
            zone = ZoneInfo.from_file(file)
        for week in range(52 * 15):
            day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(weeks=week)
            assert day.astimezone(zone).utcoffset() == timedelta(minutes=minutes)


@here
def test_only_tools_that_change_nothing_are_offered_and_only_in_their_own_folder(world: World) -> None:
    before = world.digest()
    for name, server in PUBLISHED.items():
        listed = world.call("list_tools", {"server": name}).text.splitlines()
        assert [line.partition("(")[0] for line in listed] == list(server.tools)
    for arguments, told in [
        ({"server": "memory", "tool": "delete_entities", "arguments": {"entityNames": ["Galt"]}}, "has no tool"),
        ({"server": "filesystem", "tool": "write_file", "arguments": {"path": "x", "content": ""}}, "has no tool"),
        ({"server": "time", "tool": "get_current_time", "arguments": {"timezone": "UTC"}}, "has no tool"),
        ({"server": "memory", "tool": "open_nodes", "arguments": {"names": 3}}, "arguments refused: "),
        ({"server": "time", "tool": "convert_time", "arguments": {}}, "arguments refused: "),
        ({"server": "filesystem", "tool": "read_text_file", "arguments": {"path": "/work/given.json"}}, "denied"),
        ({"server": "filesystem", "tool": "read_text_file", "arguments": {"path": f"{SHARED}/../x"}}, "denied"),
    ]:
        reply = world.call("call_tool", arguments)
        assert reply.failed
        assert told in reply.text
    assert world.digest() == before


@here
@pytest.mark.parametrize("package", ["this", "nowhere"])
def test_a_published_server_that_ends_breaks_its_world_and_fails_no_model(
    pool: Sessions, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(PUBLISHED, "time", PublishedServer(Time, ("convert_time",), package))
    with (
        World.open(pool, PUBLISHED_SERVERS, SETUP) as world,
        pytest.raises(InfrastructureError, match=r"time ended|Connection closed"),
    ):
        world.begun.result()


def test_without_the_packages_the_taskset_says_what_to_install_and_ours_are_asked_for_no_more(
    pool: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = "a" * 16
    monkeypatch.setattr("curriculum.adapters.set_named", lambda name: present if name == "mcp" else None)
    assert "assay curriculum adapter install mcp_servers" in TASKSET.missing()
    with pytest.raises(CurriculumError, match="install mcp_servers"):
        World.open(pool, PUBLISHED_SERVERS, SETUP)
    assert TASKSETS["orchestration"].missing() == ""
    with pytest.raises(CurriculumError, match="unknown server"):
        ORCHESTRATION.files(SETUP)
