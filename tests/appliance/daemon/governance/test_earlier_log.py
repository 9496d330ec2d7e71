"""The folder of the version before, whose log names no records: taken as it is, once, where its log does not object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from data_attacks import Used, used_folder

from appliance.audit.machine_keys import load_key
from policies import audit
from policies.in_force import ADOPTED
from runtime.errors import HintedError
from verifiers.answers.spec import AnswerSpec


# the folder of an earlier version
def as_earlier(used: Used) -> None:
    """The log as the version before wrote it: it names no rows, and has no head outside."""
    key, lines, previous = load_key(used.data, "daemon"), [], audit.START
    for line in used.lines():
        entry = audit.read(line)
        if entry.kind in ("checkpoint", "evaluation", "canary", "cycle", "artifact", ADOPTED):
            continue
        what = {name: value for name, value in entry.what.items() if name not in ("row", "adopted")}
        entry = entry.model_copy(update={"number": len(lines), "previous": previous, "what": what})
        lines.append(audit.write(entry, key))
        previous = audit.digest_of(lines[-1])
    (used.data / "audit" / "log.jsonl").write_bytes(b"".join(lines))
    with used.sql() as sql:
        sql.execute("UPDATE audit_head SET line = ?", (lines[-1].decode(),))
    used.head.unlink()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Used:
    return used_folder(tmp_path_factory.mktemp("used"))


@pytest.fixture
def earlier(template: Used, tmp_path: Path) -> Used:
    used = template.copied(tmp_path / "copy")
    as_earlier(used)
    return used


def test_an_earlier_versions_folder_is_taken_as_it_is_once_and_says_so(earlier: Used) -> None:
    with earlier.core() as core:
        (entry,) = [entry for entry in core.ledger.audit.entries() if entry.kind == ADOPTED]
        assert entry.what["aliases"]["champion"] == earlier.champion  # type: ignore[index, call-overload]
        assert any("as it was found" in event.text for _, event in core.ledger.events())
        assert core.ledger.mismatches(None) == []
        assert len(core.ledger.decisions(candidate=earlier.taken_back)) == 3
    with earlier.core() as core:
        assert [entry.kind for entry in core.ledger.audit.entries()].count(ADOPTED) == 1
        assert earlier.in_service(core) == {earlier.champion}
    assert earlier.head.stat().st_size == audit.HEAD_BYTES


def test_a_job_that_an_earlier_version_ended_is_taken_as_it_stands_there(earlier: Used) -> None:
    """It called the validation otherwise, and did not know every field."""
    spec = {"kind": "integer", "expected": "6"}
    job = {
        "id": "job-1",
        "question": "q",
        "spec": spec,
        "state": "unsolved",
        "meaning": None,
        "created": "",
        "updated": "",
    }
    with earlier.sql() as sql:
        sql.execute("INSERT INTO jobs (payload, key, state) VALUES (?, 'job-1', 'unsolved')", (json.dumps(job),))
    with earlier.core() as core:
        assert core.ledger.mismatches(None) == []
        assert [one.spec for one in core.ledger.ended_jobs()] == [AnswerSpec(expected="6", notation="digits")]


def test_a_champion_that_was_evaluated_is_nothing_to_be_said_of(earlier: Used) -> None:
    with earlier.core() as core:
        assert not any("no evaluation of it is on record" in event.text for _, event in core.ledger.events())


def test_the_start_says_that_an_earlier_version_left_a_champion_that_was_never_evaluated(earlier: Used) -> None:
    with earlier.sql() as sql:
        sql.execute("DELETE FROM evaluations")
        sql.execute("DELETE FROM decisions")
        sql.execute("DELETE FROM approvals")
    with earlier.core() as core:
        (said,) = [event.text for _, event in core.ledger.events() if "no evaluation of it is on record" in event.text]
        assert earlier.champion[:12] in said
        assert earlier.in_service(core) == {earlier.champion}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("UPDATE aliases SET manifest = (SELECT manifest FROM aliases WHERE name = 'candidate')", "alias"),
        ("UPDATE decisions SET payload = replace(payload, 'reject', 'promote')", "decisions has another"),
        (
            "INSERT INTO decisions SELECT 99, replace(payload, 'T03', 'T05'), 'forged', 'x' FROM decisions LIMIT 1",
            "decisions has 'forged'",
        ),
        ("UPDATE approvals SET payload = replace(payload, 'approve', 'reject')", "approvals"),
    ],
)
def test_what_an_earlier_log_carries_is_not_taken_over_otherwise(earlier: Used, text: str, named: str) -> None:
    with earlier.sql() as sql:
        sql.execute(text)
    with pytest.raises(HintedError, match=named) as met, earlier.core():
        pass
    assert "assay audit renew" in met.value.hint


def test_a_decision_that_a_kill_kept_from_an_earlier_ledger_is_taken_from_its_log(earlier: Used) -> None:
    with earlier.sql() as sql:
        (payload,) = sql.execute("SELECT payload FROM decisions ORDER BY sequence DESC").fetchone()
        sql.execute("DELETE FROM decisions WHERE key = ?", (json.loads(payload)["id"],))
    with earlier.core() as core:
        assert core.ledger.decisions(limit=1)[0].model_dump_json() == payload
