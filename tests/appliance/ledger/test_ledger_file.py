"""The ledger's file: its durability, its migrations, and what happens to files that are no ledger."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import ledger_records as made
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from forked_commands import ForkedCommand
from sqlalchemy import create_engine

from appliance.ledger import schema
from appliance.ledger.database import Database
from appliance.ledger.ledger import LedgerError
from appliance.ledger.read_only import ReadOnlyLedger
from appliance.ledger.sqlite import SqliteLedger
from appliance.ledger.tables import METADATA
from appliance.records.cycles import Event

HERE = Path(__file__).parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


def pragma(database: Database, name: str) -> object:
    with database.writing() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()


def test_the_writer_syncs_every_commit_and_holds_to_foreign_keys(path: Path) -> None:
    database = Database(path)
    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2
    assert pragma(database, "foreign_keys") == 1
    assert pragma(database, "busy_timeout") > 0
    database.close()


def test_a_reader_can_write_nothing(path: Path) -> None:
    database = Database(path)
    with pytest.raises(LedgerError), database.reading() as connection:
        connection.exec_driver_sql("DELETE FROM rollouts")
    database.close()


def test_only_its_owner_may_read_the_file(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.put_cycle(made.cycle())
        assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


# migrations
def test_the_migrations_make_exactly_the_tables_that_the_code_uses(path: Path) -> None:
    SqliteLedger(path).close()
    with create_engine(f"sqlite:///{path}").connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_the_newest_revision_is_the_head_of_the_packaged_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.SCRIPTS))
    assert ScriptDirectory.from_config(config).get_current_head() == schema.NEWEST


def test_opening_a_file_of_this_version_loads_no_alembic(path: Path) -> None:
    SqliteLedger(path).close()
    program = "import sys; from pathlib import Path; from appliance.ledger.sqlite import SqliteLedger\n"
    program += (
        "SqliteLedger(Path(sys.argv[1])).close(); print(sorted({'alembic', 'torch', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def later_scripts(tmp_path: Path) -> Path:
    """The packaged migrations and one more, as a later version would have it."""
    scripts = tmp_path / "later"
    shutil.copytree(schema.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    text = f"from alembic import op\nimport sqlalchemy as sa\nrevision = '9999'\ndown_revision = '{schema.NEWEST}'\n"
    text += "def upgrade():\n    op.add_column('events', sa.Column('source', sa.String()))\n"
    (scripts / "versions" / "r9999_source.py").write_text(text)
    return scripts


def columns(path: Path, table: str) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def test_an_older_ledger_is_backed_up_and_then_migrated(path: Path, later_scripts: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.put_cycle(made.cycle())
    Database(path, later_scripts).close()
    assert "source" in columns(path, "events")
    [backup] = path.parent.glob(f"ledger.sqlite3.before-migration-from-{schema.NEWEST}-*T*")
    assert "source" not in columns(backup, "events")
    assert backup.stat().st_mode & 0o777 == 0o600
    with SqliteLedger(backup) as old:
        assert old.cycles() == [made.cycle()]


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(path: Path, later_scripts: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.put_cycle(made.cycle())
    script = later_scripts / "versions" / "r9999_source.py"
    script.write_text(script.read_text() + "    op.execute('DROP TABLE cycles')\n    op.execute('not SQL')\n")
    for _ in range(3):  # as a service manager tries it
        with pytest.raises(LedgerError, match="could not be migrated") as caught:
            Database(path, later_scripts)
        assert "it is unchanged" in caught.value.hint
        assert "sqlalche.me" not in str(caught.value)
    assert list(path.parent.glob("*.before-migration-*")) == [], "copies of what is unchanged would fill the disk"
    assert "source" not in columns(path, "events")
    with SqliteLedger(path) as ledger:
        assert ledger.cycles() == [made.cycle()]


def test_after_kills_in_the_middle_one_copy_lies_there_and_the_next_start_migrates(
    path: Path, later_scripts: Path
) -> None:
    with SqliteLedger(path) as ledger:
        ledger.put_cycle(made.cycle())
    program = "import sys; from pathlib import Path; from appliance.ledger.database import Database\n"
    program += "Database(Path(sys.argv[1]), Path(sys.argv[2])).close()"
    script = later_scripts / "versions" / "r9999_source.py"
    whole = script.read_text()
    script.write_text(f"{whole}    op.execute('DELETE FROM cycles')\n    import os\n    os.kill(os.getpid(), 9)\n")
    path.with_name(f"{path.name}.before-migration-from-1000-20260101T000000.partial-journal").write_text("half")
    for _ in range(2):
        assert run(program, path, later_scripts).returncode == -9
        time.sleep(1.1)  # names have seconds
    assert len(list(path.parent.glob("*.before-migration-*"))) == 1
    with SqliteLedger(path) as ledger:
        assert ledger.cycles() == [made.cycle()]
    script.write_text(whole)
    Database(path, later_scripts).close()
    assert "source" in columns(path, "events")
    assert len(list(path.parent.glob("*.before-migration-*"))) == 1


def test_a_copy_that_cannot_be_written_is_not_left_half(path: Path, later_scripts: Path) -> None:
    SqliteLedger(path).close()
    before = path.read_bytes()
    program = "import resource, signal, sys; from pathlib import Path; from appliance.ledger.database import Database\n"
    program += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    program += "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
    program += "Database(Path(sys.argv[1]), Path(sys.argv[2]))"
    done = run(program, path, later_scripts)
    assert "nothing of this record was written" in done.stderr.splitlines()[-1]
    assert path.read_bytes() == before
    assert list(path.parent.glob("*.before-migration-*")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_migration_without_room_is_refused_before_anything_is_written(
    path: Path, later_scripts: Path, small_disk: Path
) -> None:
    SqliteLedger(path).close()
    small = small_disk / path.name
    shutil.copy2(path, small)
    before = small.read_bytes()
    with pytest.raises(LedgerError, match=r"from schema 1000 to 9999 needs \d+ MiB, and \d are free") as caught:
        Database(small, later_scripts)
    assert "free some space" in caught.value.hint
    assert (small.read_bytes(), [one.name for one in small_disk.iterdir()]) == (before, [small.name])


def test_a_ledger_from_before_schema_1_is_refused_and_left_alone(path: Path) -> None:
    SqliteLedger(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num='0006'")
        connection.commit()
    before = path.read_bytes()
    for opened in (SqliteLedger, ReadOnlyLedger):
        with pytest.raises(LedgerError) as caught:
            opened(path)
        assert "start fresh with another data folder" in caught.value.hint
    assert path.read_bytes() == before


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(path: Path, later_scripts: Path) -> None:
    SqliteLedger(path).close()
    Database(path, later_scripts).close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="newer version") as caught:
        SqliteLedger(path)
    assert "newer version" in caught.value.hint
    assert path.read_bytes() == before


# files that are no ledger
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("a shopping list, and long enough to be no header of SQLite's\n" * 20)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger") as caught:
        SqliteLedger(path)
    assert "move the file away" in caught.value.hint
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cycles (wheels INTEGER)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="another program"):
        SqliteLedger(path)
    assert path.read_bytes() == before


def test_a_damaged_ledger_is_reported_with_what_to_do(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.commit_step(made.step_record(rollouts=64, tokens=60))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"damaged|cannot be read") as caught, SqliteLedger(path) as ledger:
        ledger.rollouts()
    assert "backup" in caught.value.hint


def test_one_damaged_page_is_found_when_the_ledger_is_opened(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        for step in range(4):
            ledger.commit_step(made.step_record(step, rollouts=16, tokens=60))
    whole = path.read_bytes()
    for page in range(2, len(whole) // 4096, 7):
        path.write_bytes(whole[: page * 4096] + b"\xff" * 64 + whole[page * 4096 + 64 :])
        with pytest.raises(LedgerError, match="damaged") as caught:
            SqliteLedger(path)
        assert "backup" in caught.value.hint
    path.write_bytes(whole)
    SqliteLedger(path).close()


def test_a_record_that_somebody_edited_into_nonsense_is_reported(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.put_cycle(made.cycle())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE cycles SET payload = '{}'")
        connection.commit()
    with SqliteLedger(path) as ledger, pytest.raises(LedgerError, match=r"a Cycle in .* cannot be read"):
        ledger.cycles()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be used") as caught:
        SqliteLedger(tmp_path / "file" / "ledger.sqlite3")
    assert "writable" in caught.value.hint


def test_a_ledger_that_another_program_holds_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("appliance.ledger.database.BUSY_MILLISECONDS", 50)
    with SqliteLedger(path) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked by another program"):
            ledger.put_cycle(made.cycle())
        other.execute("ROLLBACK")
        ledger.put_cycle(made.cycle())
        assert ledger.cycles() == [made.cycle()]


# a full disk, and sudden death
FILL = """
import resource, sys
from pathlib import Path
import ledger_records as made
from appliance.ledger.ledger import LedgerError
from appliance.ledger.read_only import ReadOnlyLedger
from appliance.ledger.sqlite import SqliteLedger
from appliance.ledger.tables import METADATA

def fill(ledger):
    for step in range(1000):
        try:
            ledger.commit_step(made.step_record(step, rollouts=64, tokens=60))
        except LedgerError as error:
            print(f"{error} | {error.hint}")
            return step

with SqliteLedger(Path(sys.argv[1])) as ledger:
    if len(sys.argv) > 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    failed = fill(ledger)
    assert ledger.recorded_steps("night-1") == list(range(failed))
    assert ledger.rollout_counts("night-1").get("train", 0) == 64 * failed
    print(failed)
    if len(sys.argv) > 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        ledger.commit_step(made.step_record(failed, rollouts=64, tokens=60))
        assert ledger.step("night-1", failed) == made.step_record(failed, rollouts=64, tokens=60)
"""


def begun(program: str, *arguments: object) -> ForkedCommand:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[2])])}
    return ForkedCommand(tuple(map(str, arguments)), environ, program=program)


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = begun(program, *arguments)
    out, error = command.communicate(120)
    return subprocess.CompletedProcess(command.args, command.wait(), out.decode(), error.decode())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MiB. Mounting needs root; without it the limit on a file's size makes the same writes fail."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(small_disk: Path) -> None:
    limit = () if os.geteuid() == 0 else (2_000_000,)
    done = run(FILL, small_disk / "ledger.sqlite3", *limit)
    assert done.returncode == 0, done.stderr
    output, failed = done.stdout.splitlines()
    assert "full" in output
    assert "| free some space" in output or "| check the disk" in output
    assert int(failed) > 0


def test_a_limit_on_files_is_reported_and_the_ledger_goes_on_when_it_is_lifted(path: Path) -> None:
    done = run(FILL, path, 2_000_000)
    assert done.returncode == 0, done.stderr
    output, failed = done.stdout.splitlines()
    assert "nothing of this record was written" in output
    assert int(failed) > 0


WRITE = """
import sys
import time
from pathlib import Path
import ledger_records as made
from appliance.ledger.sqlite import SqliteLedger
from appliance.ledger.tables import METADATA
ledger = SqliteLedger(Path(sys.argv[1]))
for step in range(10_000):
    ledger.commit_step(made.step_record(step, rollouts=16, tokens=60))
    print(step, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 23])
def test_after_kill_9_every_step_that_was_confirmed_is_there_whole(path: Path, after: int) -> None:
    writer = begun(WRITE, path)
    while writer.written().count("\n") < after and writer.poll() is None:
        time.sleep(0.002)
    confirmed = writer.written().count("\n") - 1
    writer.send_signal(signal.SIGKILL)
    assert writer.wait(120) == -signal.SIGKILL
    with SqliteLedger(path) as ledger:
        steps = ledger.recorded_steps("night-1")
        assert steps == list(range(len(steps)))
        assert len(steps) > confirmed
        assert ledger.rollout_counts("night-1") == {"train": 16 * len(steps)}
        assert all(ledger.step("night-1", step) == made.step_record(step, rollouts=16, tokens=60) for step in steps)


def test_a_first_start_that_was_killed_leaves_a_file_that_the_next_start_completes(path: Path) -> None:
    path.touch()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    with SqliteLedger(path) as ledger:
        ledger.put_event(Event(kind="note", text="here", created=made.AT))
        assert len(ledger.events()) == 1


@pytest.mark.parametrize("name", ["a#b", "50%41", "x?mode=rwc"])
def test_a_ledger_is_read_in_a_folder_with_any_name_and_nothing_is_made_beside_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / "ledger.sqlite3"
    with SqliteLedger(path) as ledger:
        ledger.put_cycle(made.cycle())
    with ReadOnlyLedger(path) as reader:
        assert reader.cycles() == [made.cycle()]
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_who_only_reads_a_ledger_of_a_newer_version_is_told_to_use_that(path: Path, later_scripts: Path) -> None:
    Database(path, later_scripts).close()
    with pytest.raises(LedgerError, match="schema version 9999") as caught:
        ReadOnlyLedger(path)
    assert "use the newer version" in caught.value.hint
