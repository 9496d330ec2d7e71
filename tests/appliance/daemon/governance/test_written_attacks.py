"""Written attacks on a data folder, by somebody who can write every file in it and has neither the daemon's key nor a
person's: nothing is put into service without a valid word, and each attack is named.

Every attack is tried on a folder whose daemon has stopped, and beside a daemon that runs.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import test_daemon_governance as built
from data_attacks import NOW, Used, used_folder
from people import approval_envelope, newest

from appliance.audit.machine_keys import MACHINES, attestation_file, key_file, load_or_make, public_file
from appliance.cli.audit.read import verified
from appliance.cli.audit.renew import accept, begin_anew
from appliance.daemon.api.read_models import status_of
from appliance.daemon.contract import RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.errors import AssayError
from appliance.ledger.ledger import LedgerError
from appliance.settings.policy_files import in_force_file
from common.errors import HintedError
from policies import audit
from policies.policy import load

Attack = Callable[[Used], object]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Used:
    return used_folder(tmp_path_factory.mktemp("used"))


@pytest.fixture
def used(template: Used, tmp_path: Path) -> Used:
    return template.copied(tmp_path / "copy")


def query(text: str, *names: str) -> Attack:
    """One statement of SQL; names of fields of `Used` go in as parameters."""

    def attack(used: Used) -> None:
        with used.sql() as sql:
            sql.execute(text, [getattr(used, name) for name in names])

    return attack


def canary(state: str, candidate: str = "evil") -> Attack:
    def attack(used: Used) -> None:
        rules = load().service.model_dump(mode="json")
        with used.sql() as sql:
            record = {
                "id": "canary-1",
                "candidate": getattr(used, candidate),
                "champion": used.champion,
                "decision": used.decision(used.evil),
                "rules": rules,
                "state": state,
                "started": NOW,
                "ended": NOW if state in ("passed", "taken_back") else "",
            }
            sql.execute("INSERT INTO canaries (key, payload) VALUES ('canary-1', ?)", (json.dumps(record),))

    return attack


def forged_decision(used: Used) -> None:
    """A decision that promotes the one that was refused, as the newest, and its alias."""
    with used.sql() as sql:
        row = sql.execute("SELECT payload FROM decisions WHERE candidate = ?", (used.evil,)).fetchone()
        value = json.loads(row[0]) | {"id": "decision-forged", "outcome": "promote", "reason": "all gates passed"}
        insert = "INSERT INTO decisions (key, payload, candidate) VALUES ('decision-forged', ?, ?)"
        sql.execute(insert, (json.dumps(value), used.evil))
        sql.execute("UPDATE aliases SET manifest = ? WHERE name = 'candidate'", (used.evil,))


def all_passed(value: dict) -> None:  # type: ignore[type-arg]
    for item in value["candidate"]["items"]:
        item["passed"] = True


def figures(value: dict) -> None:  # type: ignore[type-arg]
    for finding in value["findings"]:
        finding |= {"outcome": "passed", "figure": 99.0, "reason": "99 points better"}


def swapped(table: str) -> Attack:
    """Two rows have each other's text."""

    def attack(used: Used) -> None:
        with used.sql() as sql:
            (one, first), (two, second) = sql.execute(
                f"SELECT key, payload FROM {table} ORDER BY key LIMIT 2"
            ).fetchall()
            sql.execute(f"UPDATE {table} SET payload = ? WHERE key = ?", (second, one))
            sql.execute(f"UPDATE {table} SET payload = ? WHERE key = ?", (first, two))

    return attack


def forged_evaluation(used: Used) -> None:
    with used.sql() as sql:
        row = sql.execute("SELECT payload FROM evaluations WHERE candidate = ?", (used.waiting,)).fetchone()
        text = row[0].replace(used.waiting, used.evil).replace(f"evaluation-{used.waiting[:6]}", "evaluation-forged")
        insert = "INSERT INTO evaluations (key, payload, candidate) VALUES ('evaluation-forged', ?, ?)"
        sql.execute(insert, (text, used.evil))


def planted_model(used: Used) -> None:
    """Its folder and its row, and it is the champion."""
    digest = built.write_by_digest(used.data / "models", {"model.safetensors": b"planted", "config.json": b"{}"})
    with used.sql() as sql:
        (payload,) = sql.execute("SELECT payload FROM checkpoints WHERE key = ?", (used.champion,)).fetchone()
        insert = "INSERT INTO checkpoints (key, payload, cycle) VALUES (?, ?, 'c')"
        sql.execute(insert, (digest, payload.replace(used.champion, digest)))
        sql.execute("UPDATE aliases SET manifest = ? WHERE name = 'champion'", (digest,))


def emptied_log(used: Used) -> None:
    (used.data / "audit" / "log.jsonl").write_bytes(b"")
    with used.sql() as sql:
        sql.execute("DELETE FROM audit_head")


def everything_gone(used: Used) -> None:
    """So that a stranger is the first person."""
    for entry in used.data.iterdir():
        if entry.name in ("audit", "keys"):
            shutil.rmtree(entry)
        elif entry.name.startswith("ledger"):
            entry.unlink()


def new_keys(used: Used) -> None:
    for name in MACHINES:
        key_file(used.data, name).unlink()
        load_or_make(used.data, name)


def another_key(used: Used) -> None:
    """The whole log again, signed with a key of the attacker's own, and a champion of the attacker's choice in it."""
    new_keys(used)
    key = load_or_make(used.data, "daemon")
    lines, previous = [], audit.START
    for line in used.lines():
        entry = audit.read(line)
        what = {**entry.what}
        for name in MACHINES:
            if name in what:
                what[name] = public_file(used.data, name).read_text().rsplit(" ", 1)[0]
        if entry.kind == "aliases" and "champion" in what["after"]:
            what["after"] = {"champion": used.evil}
        lines.append(audit.write(entry.model_copy(update={"previous": previous, "what": what}), key))
        previous = audit.digest_of(lines[-1])
    (used.data / "audit" / "log.jsonl").write_bytes(b"".join(lines))
    with used.sql() as sql:
        sql.execute("UPDATE audit_head SET line = ?", (lines[-1].decode(),))
        sql.execute("UPDATE aliases SET manifest = ? WHERE name = 'champion'", (used.evil,))


def trainers_key(used: Used) -> None:
    key_file(used.data, "trainer").unlink()
    load_or_make(used.data, "trainer")


def old_ledger(used: Used) -> None:
    for name in ("ledger.sqlite3-wal", "ledger.sqlite3-shm"):
        (used.data / name).unlink(missing_ok=True)
    shutil.copy(used.before / "ledger.sqlite3", used.data / "ledger.sqlite3")


def old_folder(used: Used) -> None:
    shutil.rmtree(used.data)
    shutil.copytree(used.before, used.data)


def cut_before_the_revocation(used: Used) -> None:
    [number] = [n for n, line in enumerate(used.lines()) if audit.read(line).kind == "key.revoked"]
    used.cut(number)


def lenient_policy(used: Used) -> None:
    path = in_force_file(used.data)
    path.write_bytes(path.read_bytes().replace(b"required = true", b"required = false"))


def exchanged_weights(used: Used) -> None:
    shutil.rmtree(used.data / "models" / used.waiting)
    shutil.copytree(used.data / "models" / used.evil, used.data / "models" / used.waiting)


def another_attestation(used: Used) -> None:
    shutil.copy(attestation_file(used.data, used.taken_back), attestation_file(used.data, used.waiting))


def log_is_a_link(used: Used) -> None:
    path = used.data / "audit" / "log.jsonl"
    path.rename(used.data / "elsewhere.jsonl")
    path.symlink_to(used.data / "elsewhere.jsonl")


def another_file(used: Used) -> None:
    """The same bytes, in a file of the attacker's."""
    path = used.data / "audit" / "log.jsonl"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content + content.splitlines(keepends=True)[-1])


def trigger(used: Used) -> None:
    """Whoever moves an alias moves it elsewhere."""
    with used.sql() as sql:
        text = f"UPDATE aliases SET manifest = '{used.evil}' WHERE name = 'candidate'"
        sql.execute(f"CREATE TRIGGER t AFTER INSERT ON events BEGIN {text}; END")
        sql.execute(text)


def a_view(used: Used) -> None:
    with used.sql() as sql:
        sql.execute("ALTER TABLE aliases RENAME TO aliases_before")
        sql.execute(f"CREATE VIEW aliases AS SELECT name, '{used.evil}' AS manifest FROM aliases_before")


def replayed_word(used: Used) -> None:
    """The approvals are gone, and with them that the word was used; and so is the decision that took the model back."""
    with used.sql() as sql:
        sql.execute("DELETE FROM approvals")
        sql.execute("DELETE FROM decisions WHERE candidate = ? AND payload LIKE '%rude%'", (used.taken_back,))


def forged_cycle(used: Used) -> None:
    """A cycle that is to go on from the attacker's model."""
    record = {
        "id": "night-1",
        "kind": "night",
        "seed": 1,
        "plan": {"recipe": {}, "start": used.evil},
        "phase": "prepare",
    }
    record |= {"state": "running", "created": NOW, "updated": NOW}
    with used.sql() as sql:
        sql.execute("INSERT INTO cycles (key, payload) VALUES ('night-1', ?)", (json.dumps(record),))


ATTACKS: dict[str, tuple[Attack, str]] = {
    "the champion's alias moved": (
        query("UPDATE aliases SET manifest = ? WHERE name = 'champion'", "evil"),
        "alias champ",
    ),
    "the candidate's alias moved": (
        query("UPDATE aliases SET manifest = ? WHERE name = 'candidate'", "evil"),
        "alias cand",
    ),
    "an alias previous made": (
        query("INSERT OR REPLACE INTO aliases VALUES ('previous', ?)", "evil"),
        "alias previous",
    ),
    "an alias canary made": (query("INSERT OR REPLACE INTO aliases VALUES ('canary', ?)", "evil"), "alias canary"),
    "an alias of another name made": (query("INSERT INTO aliases VALUES ('champion ', ?)", "evil"), "alias champion "),
    "the champion set to nothing": (
        query("UPDATE aliases SET manifest = NULL WHERE name = 'champion'"),
        "alias champion",
    ),
    "the champion's alias removed": (query("DELETE FROM aliases WHERE name = 'champion'"), "alias champion is nothing"),
    "all aliases removed": (query("DELETE FROM aliases"), "alias champion is nothing"),
    "a canary that works earlier jobs": (canary("replay"), "canaries has 'canary-1'"),
    "a canary that has a share": (canary("share"), "canaries has 'canary-1'"),
    "a canary that passed": (canary("passed"), "canaries has 'canary-1'"),
    "a canary that took the champion back": (canary("taken_back", "champion"), "canaries has 'canary-1'"),
    "a decision to promote": (forged_decision, "decision-forged"),
    "a decision turned to promote": (
        lambda used: used.change("decisions", used.decision(used.evil), lambda one: one.update(outcome="promote")),
        "decisions",
    ),
    "figures that a person is shown": (
        lambda used: used.change("decisions", used.decision(used.waiting), figures),
        "decisions",
    ),
    "a decision removed": (query("DELETE FROM decisions WHERE candidate = ?", "evil"), "decisions lacks"),
    "a decision put under another model": (
        query("UPDATE decisions SET candidate = ?, key = 'decision-x' WHERE candidate = ?", "evil", "waiting"),
        "decisions",
    ),
    "decisions swapped": (swapped("decisions"), "decisions.* (another|changed)"),
    "the decision that took a model back removed": (
        query("DELETE FROM decisions WHERE candidate = ? AND payload LIKE '%rude%'", "taken_back"),
        "decisions lacks",
    ),
    "answers of an evaluation turned right": (
        lambda used: used.change("evaluations", f"evaluation-{used.evil[:6]}", all_passed),
        "evaluations",
    ),
    "an evaluation of another model": (forged_evaluation, "evaluation-forged"),
    "an evaluation removed": (query("DELETE FROM evaluations WHERE candidate = ?", "evil"), "evaluations lacks"),
    "all evaluations removed": (query("DELETE FROM evaluations"), "evaluations lacks"),
    "evaluations swapped": (swapped("evaluations"), "evaluations.* (another|changed)"),
    "a used word forgotten, and said again": (replayed_word, "approvals lacks"),
    "an approval turned into a rejection": (
        lambda used: used.change("approvals", used.first("approvals"), lambda one: one.update(verdict="reject")),
        "approvals",
    ),
    "an approval put under another model": (
        query("UPDATE approvals SET key = 'x', candidate = ?", "evil"),
        "approvals",
    ),
    "where a model lies": (
        lambda used: used.change("checkpoints", used.champion, lambda one: one.update(folder=f"models/{used.evil}")),
        "checkpoints",
    ),
    "the figures of a model": (
        lambda used: used.change("checkpoints", used.waiting, lambda one: one.update(metrics={"success": 1.0})),
        "checkpoints",
    ),
    "a planted model": (planted_model, "alias champion"),
    "a model's row removed": (query("DELETE FROM checkpoints WHERE key = ?", "champion"), "checkpoints lacks"),
    "the log's end cut off": (lambda used: used.cut(len(used.lines()) - 1), "cut off|bytes instead"),
    "the log cut back to before a revocation": (cut_before_the_revocation, "cut off|bytes instead"),
    "the log cut back to its first line": (lambda used: used.cut(1), "cut off|bytes instead"),
    "the log emptied": (emptied_log, "ends here|bytes instead"),
    "the log emptied, without its file": (
        lambda used: (emptied_log(used), (used.data / "audit" / "log.jsonl").unlink()),
        "ends here|cannot be found",
    ),
    "log, ledger and keys gone": (everything_gone, "ends here|cannot be found|head in|disk"),
    "an old ledger beside the new log": (
        old_ledger,
        "does not know of it|lacks|alias|another|damaged|not a ledger|disk",
    ),
    "an old copy of the whole folder": (old_folder, "cut off|another file|cannot be found|disk"),
    "another key, and a log that it signed": (another_key, "head in .* key was replaced|bytes instead"),
    "the machine's keys exchanged": (new_keys, "signature|head in"),
    "the trainer's key exchanged": (trainers_key, "begun with other keys|attestation"),
    "the policy in force exchanged": (lenient_policy, "differed from the signed policy"),
    "the ledger's newest line of the log exchanged": (
        query("UPDATE audit_head SET line = replace(line, '2026', '2025')"),
        "newest line|known from elsewhere",
    ),
    "weights exchanged after the evaluation": (exchanged_weights, "holds the model"),
    "an attestation removed": (lambda used: attestation_file(used.data, used.waiting).unlink(), "attestation"),
    "another model's attestation": (another_attestation, "attestation"),
    "the log in a file of somebody else's": (another_file, "number|another file"),
    "the log behind a link": (log_is_a_link, "cannot be used|another file|link|levels"),
    "a trigger on the aliases": (trigger, "alias candidate"),
    "a view in the place of the aliases": (a_view, "alias champion|failed"),
    "a cycle that nobody began": (forged_cycle, "night-1"),
}
AT_A_START = {"the policy in force exchanged", "the machine's keys exchanged", "the trainer's key exchanged"}
"""These have no effect on a daemon that runs: it has read them, and reads them no more before the next start."""


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_a_stopped_daemons_folder_has_no_effect_and_is_named(used: Used, name: str) -> None:
    attack, named = ATTACKS[name]
    attack(used)
    used.audit()
    started = used.started()
    approve_if(used, started, name)
    require_named(used, named)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_beside_a_running_daemon_has_no_effect_and_is_named(used: Used, name: str) -> None:
    attack, named = ATTACKS[name]
    with suppress(HintedError), used.core() as core:
        attack(used)
        used.use(core)
        used.trying(lambda: core.governance.approve(used.waiting, word_on(used, core)))
        used.trying(lambda: core.governance.rollback("mallory"))
        assert core.ledger.alias("champion") in (used.champion, used.waiting)
        assert core.ledger.alias("champion") == used.champion or name in AT_A_START, used.said
        if name in AT_A_START:
            return
    require_named(used, named)


def word_on(used: Used, core: Core) -> bytes:
    """What ada would sign on what she is shown."""
    return approval_envelope(core, newest(core, used.waiting), nonce="7" * 32)


def approve_if(used: Used, started: bool, name: str) -> None:
    """What lies on disk beside the ledger is looked at when somebody approves."""
    if started and ("weights" in name or "attestation" in name):
        with used.core() as core:
            used.trying(lambda: core.governance.approve(used.waiting, word_on(used, core)))
            used.require_nothing_new(core)


def require_named(used: Used, named: str) -> None:
    assert any(re.search(named, text) for text in used.said), used.said


# the log and its head
def test_a_champion_that_was_set_to_nothing_lets_no_worker_name_the_first(used: Used) -> None:
    from appliance.ledger.grants import training
    from appliance.ledger.remote import _answer

    with used.core() as core:
        query("UPDATE aliases SET manifest = NULL WHERE name = 'champion'")(used)
        trained = core.ledger.checkpoint(used.evil)
        assert trained is not None
        for alias in ("champion", "candidate"):
            call = {"call": "set_aliases", "aliases": {alias: used.evil}, "reason": "the first", "at": NOW}
            frame = json.dumps(call, separators=(",", ":")).encode()
            refused = json.loads(_answer(core.ledger, frame, training(trained.cycle)))["refused"]
            assert "alias champion is nothing" in refused["message"] or "may not write this" in refused["message"]
        assert "alias champion is nothing" in status_of(core).tampered
        assert core.readiness.blocked() is not None


def test_what_was_put_right_is_in_force_at_the_next_start_and_in_the_log(used: Used) -> None:
    planted_model(used)
    with pytest.raises(HintedError, match=r"repaired|restored"), used.core():
        pass
    with used.core() as core:
        assert used.in_service(core) == {used.champion}
        assert core.governance.approve(used.waiting, word_on(used, core)).aliases["champion"] == used.waiting
    checked = verified(used.data, None, None, [], [used.head])
    assert checked.holds, (checked.found, checked.differs)


def test_a_folder_that_was_moved_is_refused_until_a_person_accepts_its_head(used: Used, tmp_path: Path) -> None:
    used.head.unlink()
    with pytest.raises(HintedError, match="has a head outside") as met, used.core():
        pass
    assert "assay audit accept" in met.value.hint
    assert accept(used.data, [used.head]) == verified(used.data, None, None, [], [used.head]).found.head
    with used.core() as core:
        assert used.in_service(core) == {used.champion}


def test_a_log_that_does_not_hold_is_not_accepted(used: Used) -> None:
    query("UPDATE aliases SET manifest = ? WHERE name = 'champion'", "evil")(used)
    with pytest.raises(AssayError, match="alias champion"):
        accept(used.data, [used.head])


def test_a_witness_knows_what_the_head_beside_it_was_made_to_forget(used: Used, tmp_path: Path) -> None:
    """An old copy of everything, the state folder with it."""
    witness = tmp_path / "second-machine" / "head"
    settings = used.settings.model_copy(update={"audit": used.settings.audit.model_copy(update={"witness": witness})})
    old = used.copied(tmp_path / "old")
    with Core(settings, now=lambda: NOW) as core:
        core.trust.change_key(built.people.admission("eve", "ada"))
    shutil.rmtree(used.data)
    shutil.copytree(old.data, used.data)
    shutil.copy(old.head, used.head)
    with pytest.raises(HintedError, match=r"second-machine.* cut off"), Core(settings, now=lambda: NOW):
        pass


def test_a_head_that_lags_behind_after_a_power_cut_is_no_fault(used: Used) -> None:
    before = used.head.read_bytes()
    with used.core():
        pass
    used.head.write_bytes(before)
    with used.core() as core:
        assert used.in_service(core) == {used.champion}


def test_a_head_that_cannot_be_kept_lets_nothing_more_happen(used: Used, tmp_path: Path) -> None:
    broken = used.settings.model_copy(
        update={"audit": used.settings.audit.model_copy(update={"witness": tmp_path / "copy" / "head" / "below"})}
    )
    with pytest.raises(HintedError, match="head of the log cannot be written"), Core(broken, now=lambda: NOW):
        pass


def test_an_empty_log_beside_a_used_ledger_is_refused_without_any_head_and_renewal_says_what_it_takes(
    used: Used,
) -> None:
    emptied_log(used)
    used.head.unlink()
    with pytest.raises(LedgerError, match="is empty, but the ledger has records") as met, used.core():
        pass
    assert "assay audit renew" in met.value.hint
    begin_anew(used.data, "lost", [used.head])
    newest_entry = audit.read(used.lines()[-1])
    assert newest_entry.what["aliases"] == {"candidate": used.waiting, "champion": used.champion, "previous": None}
    with used.core() as core:
        assert core.trust.register.persons == ()
        with pytest.raises(RefusedByPolicyError, match="unknown key"):
            core.governance.approve(used.waiting, word_on(used, core))


def test_the_rows_of_a_record_and_its_entry_are_both_there_or_neither(used: Used, monkeypatch) -> None:
    with used.core() as core:
        real = os.write
        monkeypatch.setattr(os, "write", lambda number, content: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(HintedError, match="No space left"):
            core.ledger.set_aliases({"candidate": None}, "x", NOW)
        with pytest.raises(HintedError, match="No space left"):
            core.ledger.put_decision(newest(core, used.waiting).model_copy(update={"id": "another"}))
        monkeypatch.setattr(os, "write", real)
        assert core.ledger.mismatches(None) == []
        assert core.ledger.alias("candidate") == used.waiting


# at random
TABLES = ("aliases", "decisions", "evaluations", "approvals", "checkpoints", "canaries", "cycles", "audit_head")


def exchange(used: Used, draw: random.Random) -> str:
    """One row or file, exchanged for another, removed, copied, cut or damaged; what was done."""
    kind = draw.choice(("row", "row", "row", "file"))
    if kind == "file":
        files = [used.data / "audit" / "log.jsonl", in_force_file(used.data), used.data / "ledger.sqlite3"]
        files += [key_file(used.data, name) for name in MACHINES] + sorted((used.data / "attestations").iterdir())
        path, other = draw.sample(files, 2)
        content = path.read_bytes()
        at = draw.randrange(len(content))
        how = draw.choice(("cut", "bit", "other", "gone", "twice"))
        done = {
            "cut": content[:at],
            "bit": content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :],
            "other": other.read_bytes(),
            "twice": content + content,
        }
        path.unlink() if how == "gone" else path.write_bytes(done[how])
        return f"{how} {path.name}"
    with used.sql() as sql:
        table = draw.choice(TABLES)
        columns = [row[1] for row in sql.execute(f"PRAGMA table_info({table})")]
        rows = sql.execute(f"SELECT rowid, * FROM {table}").fetchall()
        column = draw.choice(columns)
        if not rows:
            sql.execute(f"INSERT INTO {table} (key, payload) VALUES ('x', '{{}}')")
            return f"a row in {table}"
        row = draw.choice(rows)
        how = draw.choice(("delete", "value", "copy"))
        with suppress(sqlite3.IntegrityError):
            if how == "delete":
                sql.execute(f"DELETE FROM {table} WHERE rowid = ?", (row[0],))
            elif how == "value":
                values = [used.evil, used.taken_back, used.champion, "x", draw.choice(rows)[1 + columns.index(column)]]
                sql.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (draw.choice(values), row[0]))
            else:
                values = [
                    draw.choice(("x", value)) if name in ("key", "name") else value
                    for name, value in zip(columns, row[1:], strict=True)
                ]
                values = [
                    None if name in ("sequence", "only") else value for name, value in zip(columns, values, strict=True)
                ]
                sql.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        return f"{how} {column} of {table}"


def content_of(used: Used) -> list[str]:
    """What of the ledger decides about models."""
    found: list[str] = []
    with suppress(sqlite3.Error), used.sql() as sql:
        for table in TABLES:
            columns = {"aliases": "name, manifest", "audit_head": "line"}.get(table, "key, payload")
            found += sorted(map(str, sql.execute(f"SELECT {columns} FROM {table}")))
    return found


def random_exchange(template: Used, folder: Path, seed: int) -> None:
    used, draw = template.copied(folder), random.Random(seed)
    before = content_of(used)
    running = draw.random() < 0.5
    with suppress(HintedError):
        if running:
            with used.core() as core:
                done = exchange(used, draw)
                used.use(core)
                used.trying(lambda: core.governance.rollback("mallory"))
                used.require_nothing_new(core)
        else:
            done = exchange(used, draw)
    changed = content_of(used) != before
    used.audit()
    used.started(3)
    assert any(used.said) or not changed, f"seed {seed}: {done}: {used.said}"
    shutil.rmtree(folder)


@pytest.mark.parametrize("seed", range(8))
def test_a_random_exchange_of_a_row_or_a_file_puts_nothing_into_service(
    template: Used, tmp_path: Path, seed: int
) -> None:
    random_exchange(template, tmp_path / "copy", seed)


@pytest.mark.slow
@pytest.mark.timeout(14_400)
def test_two_hundred_random_exchanges_put_nothing_into_service(template: Used, tmp_path: Path) -> None:
    for seed in range(1_000, 1_200):
        random_exchange(template, tmp_path / f"copy-{seed}", seed)
