"""Which model is in service is read from the signed log, and from nothing that whoever has no key can write."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from checkpoint_records import checkpoint_record

from appliance.audit.kept_heads import head_files
from appliance.audit.log import AuditBroken, log_file
from appliance.audit.logged_aliases import LoggedAliases
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.settings.client_config import ClientSettings

AT = "2026-01-02T03:04:05.000+00:00"
ONE, TWO = "1" * 64, "2" * 64


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def put(core: Core, digest: str) -> None:
    core.ledger.put_checkpoint(checkpoint_record(digest, created=AT))
    core.ledger.set_aliases({"champion": digest}, "a test", AT)


def test_it_is_what_the_log_says_whatever_the_table_of_aliases_has(data: Path) -> None:
    followed = LoggedAliases(data)
    assert followed.alias("champion") is None
    with Core(Settings(data=data)) as core:
        put(core, ONE)
        assert followed.alias("champion") == ONE
        with closing(sqlite3.connect(data / "ledger.sqlite3")) as sql, sql:
            sql.execute("UPDATE aliases SET manifest = ? WHERE name = 'champion'", (TWO,))
        assert followed.alias("champion") == ONE
        assert followed.alias("canary") is None


def test_what_came_since_the_last_question_counts_and_an_end_that_is_being_written_does_not(data: Path) -> None:
    followed = LoggedAliases(data)
    with Core(Settings(data=data)) as core:
        put(core, ONE)
        assert followed.alias("champion") == ONE
        put(core, TWO)
        assert followed.alias("champion") == TWO
    with log_file(data).open("ab") as out:
        out.write(b'{"entry":')
    assert followed.alias("champion") == TWO


def test_a_log_that_was_changed_says_nothing(data: Path) -> None:
    followed = LoggedAliases(data)
    with Core(Settings(data=data)) as core:
        put(core, ONE)
    path = log_file(data)
    path.write_bytes(path.read_bytes().replace(ONE.encode(), TWO.encode()))
    with pytest.raises(AuditBroken, match="does not hold"):
        followed.alias("champion")


def test_an_entry_that_the_daemon_did_not_sign_says_nothing(data: Path) -> None:
    followed = LoggedAliases(data)
    with Core(Settings(data=data)) as core:
        put(core, ONE)
    assert followed.alias("champion") == ONE
    path = log_file(data)
    last = path.read_bytes().splitlines(keepends=True)[-1]
    with path.open("ab") as out:
        out.write(last)
    with pytest.raises(AuditBroken, match="deleted, inserted or moved"):
        followed.alias("champion")


def test_an_older_log_is_known_by_the_head_outside(data: Path, tmp_path: Path) -> None:
    kept = head_files(ClientSettings(data=data), data)
    with Core(Settings(data=data)) as core:
        put(core, ONE)
    shutil.copy(log_file(data), tmp_path / "older")
    with Core(Settings(data=data)) as core:
        put(core, TWO)
    assert LoggedAliases(data, kept).alias("champion") == TWO
    shutil.copy(tmp_path / "older", log_file(data))
    with pytest.raises(AuditBroken, match="its end was cut off"):
        LoggedAliases(data, kept).alias("champion")
