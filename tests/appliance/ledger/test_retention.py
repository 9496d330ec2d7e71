"""Old training rollouts lose their tokens and nothing else; lists are read from indexes, however long they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import ledger_records as made
import pytest
from sqlalchemy import event

from appliance.ledger import database
from appliance.ledger.ledger import LedgerError
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import UNSOLVABLE_RUN, Message, Purpose, RolloutEnd, ToolCall, ToolStatus
from appliance.records.training import RolloutFilter
from verifiers.contract.verdict import Outcome


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        for night in ("old", "new"):
            rollouts = [
                made.judged(f"{night}.{purpose.value}.{n}", in_cycle=night, purpose=purpose)
                for purpose in (Purpose.TRAIN, Purpose.VALIDATION, Purpose.EVALUATION)
                for n in range(3)
            ]
            opened.put_rollouts(rollouts)
        opened.put_rollouts([made.judged("job-1.0", in_cycle="job-1", purpose=Purpose.JOB)])
        yield opened


def bytes_of(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return sum(len(text.encode()) for (text,) in connection.execute("SELECT payload FROM rollouts"))


def without_words(node: Message) -> Message:
    call = node.call and node.call.model_copy(update={"code": "", "arguments": {}, "output": "", "error": ""})
    return node.model_copy(update={"ids": (), "logprobs": (), "call": call, "routes": b""})


def test_what_was_counted_of_a_night_is_counted_again_when_its_tokens_are_gone(tmp_path: Path) -> None:
    odd = ToolCall(code="?", status=ToolStatus.PARSE_ERROR)
    world = ToolCall(tool="dig", arguments={"where": "here"}, status=ToolStatus.OK)
    said: list[dict[str, object]] = [
        {"call": odd, "ended": RolloutEnd.TURNS},
        {"call": world, "ended": RolloutEnd.TOKENS},
        {"call": world, "ended": RolloutEnd.TOKENS},
        {"nodes": 1, "ended": RolloutEnd.TOKENS},
    ]
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        judged = []
        for number, how in enumerate(said):
            one = made.judged(f"r{number}", purpose=Purpose.VALIDATION)
            *first, last = one.rollout.nodes
            nodes = (*first, last.model_copy(update={"call": how.get("call")}))[: how.get("nodes", 3)]
            rollout = one.rollout.model_copy(update={"nodes": nodes, "ended": how["ended"]})
            judged.append(one.model_copy(update={"rollout": rollout, "verdict": made.verdict(passed=False)}))
        ledger.put_rollouts(judged)
        before = ledger.pass_counts("night-1")
        assert [(one.cut, one.no_room, one.malformed, one.asked_world) for one in before] == [(2, 1, 1, 2)]
        assert ledger.drop_tokens(["night-1"]).rollouts == len(said)
        assert ledger.pass_counts("night-1") == before
        assert ledger.drop_tokens(["night-1"]).rollouts == 0


def test_only_training_s_tokens_of_the_cycles_that_are_named_are_dropped(tmp_path: Path, ledger: SqliteLedger) -> None:
    path = tmp_path / "ledger.sqlite3"
    first = ledger.rollout("old.train.0").rollout
    nodes = tuple(node.model_copy(update={"routes": b"\xff\x00" * len(node.ids)}) for node in first.nodes)
    answer = first.model_copy(update={"id": "old.train.3", "answer": "größer ∞", "nodes": nodes})
    ledger.put_rollouts([ledger.rollout("old.train.0").model_copy(update={"rollout": answer})])
    before = {one.rollout.id: one for one in ledger.rollouts(limit=100)}
    would = ledger.drop_tokens(["old"], dry_run=True)
    assert {one.rollout.id: one for one in ledger.rollouts(limit=100)} == before
    size = bytes_of(path)
    assert would == ledger.drop_tokens(["old"]) == (7, size - bytes_of(path))
    after = {one.rollout.id: one for one in ledger.rollouts(limit=100)}
    for name, one in before.items():
        if name.startswith(("old.train", "old.validation")):
            nodes = tuple(map(without_words, one.rollout.nodes))
            assert after[name] == one.model_copy(update={"rollout": one.rollout.model_copy(update={"nodes": nodes})})
            assert after[name].rollout.weights == one.rollout.weights
        else:
            assert after[name] == one
    assert ledger.drop_tokens(["old"]) == (0, 0)


def test_what_fails_by_design_is_left_out_where_it_is_not_asked_for(ledger: SqliteLedger) -> None:
    shown = [one.rollout.id for one in ledger.rollouts(limit=100)]
    one = made.judged("new.evaluation.9", in_cycle="new", purpose=Purpose.EVALUATION)
    for purpose in (Purpose.EVALUATION, Purpose.TRAIN):
        changed = {"id": f"probe.{purpose.value}", "purpose": purpose, "step": UNSOLVABLE_RUN}
        ledger.put_rollouts([one.model_copy(update={"rollout": one.rollout.model_copy(update=changed)})])
    shown.insert(0, "probe.train")
    assert [one.rollout.id for one in ledger.rollouts(RolloutFilter(probes=False), limit=100)] == shown
    assert [one.rollout.is_probe for one in ledger.rollouts(limit=2)] == [False, True]


@pytest.mark.parametrize(
    "where",
    [
        RolloutFilter(),
        RolloutFilter(cycle="old"),
        RolloutFilter(job="job-1"),
        RolloutFilter(family="linear"),
        RolloutFilter(outcome=Outcome.PASS),
        RolloutFilter(purpose=Purpose.TRAIN),
        RolloutFilter(purpose=Purpose.TRAIN, outcome=Outcome.INFRA_ERROR),
        RolloutFilter(cycle="old", family="linear", outcome=Outcome.FAIL, purpose=Purpose.TRAIN, step=0),
        RolloutFilter(family="linear", outcome=Outcome.FAIL, before="new.train.0"),
        RolloutFilter(outcome=Outcome.FAIL, probes=False),
    ],
)
def test_a_page_of_rollouts_is_found_in_an_index(ledger: SqliteLedger, where: RolloutFilter) -> None:
    asked: list[tuple[str, object]] = []

    def note(connection, cursor, statement, parameters, context, many) -> None:
        asked.append((statement, parameters))

    readers = ledger._database._readers
    event.listen(readers, "before_cursor_execute", note)
    ledger.rollouts(where)
    event.remove(readers, "before_cursor_execute", note)
    [(statement, parameters)] = [one for one in asked if "rollouts" in one[0]]
    with readers.connect() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    # Newest first without a condition is the table's own order, which ends with the page; the page itself is sorted.
    page = [line for line in plan if "PRIMARY KEY" not in line and not line.startswith(("LIST", "SCALAR"))]
    if where == RolloutFilter():
        assert page == ["SCAN rollouts"], plan
    else:
        assert all(line.startswith("SEARCH rollouts USING") for line in page), plan
        assert any("USING COVERING INDEX rollouts_newest_by_" in line for line in page), plan
        # Of the columns that are asked for, the one of which a value is in the fewest rollouts.
        rarest = next(name for name in ("cycle", "family", "outcome", "purpose") if getattr(where, name) or where.job)
        assert f"rollouts_newest_by_{rarest} ({rarest}=?" in "\n".join(page), plan


def test_a_large_ledger_is_opened_without_reading_its_rollouts_and_the_other_tables_are_checked(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.close()
    path = tmp_path / "ledger.sqlite3"
    monkeypatch.setattr(database, "WHOLE_BYTES", 0)
    SqliteLedger(path).close()
    with sqlite3.connect(path) as connection:
        [(root,), (size,)] = [
            connection.execute(asked).fetchone()
            for asked in ("SELECT rootpage FROM sqlite_master WHERE name = 'cycles'", "PRAGMA page_size")
        ]
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 64)
    with pytest.raises(LedgerError, match="is damaged"):
        SqliteLedger(path)
