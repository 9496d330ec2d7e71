"""What a person reads when something fails, and what a log line can never do."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from appliance.client import ApiError, DaemonNotRunning
from appliance.config.configuration import Settings
from appliance.errors import AssayError, ExitCode, exit_code, explain
from appliance.inference.engine import ModelError
from appliance.learning.errors import CheckpointError
from appliance.ledger.ledger import LedgerError
from appliance.promotion.evidence import PromotionError
from appliance.settings import logs
from appliance.settings.config_layers import ConfigError
from curriculum.contract.errors import UnknownTasksetError
from runtime.errors import BadRequestError, InfrastructureError, RefusedError
from verifiers.contract.errors import SpecError


@table(
    ("error", "code"),
    [
        (ConfigError("m", hint="h"), ExitCode.USAGE),
        (BadRequestError("m", hint="h"), ExitCode.USAGE),
        (UnknownTasksetError("m", hint="h"), ExitCode.USAGE),
        (SpecError("m", hint="h"), ExitCode.USAGE),
        (DaemonNotRunning(Path("/s")), ExitCode.NOT_RUNNING),
        (ApiError("m", hint="h", exit_code=4), ExitCode.REFUSED),
        (PromotionError("m", hint="h"), ExitCode.REFUSED),
        (RefusedError("m", hint="h"), ExitCode.INFRASTRUCTURE),
        (InfrastructureError("m", hint="h"), ExitCode.INFRASTRUCTURE),
        (ModelError("m", hint="h"), ExitCode.INFRASTRUCTURE),
        (CheckpointError("m", hint="h"), ExitCode.INFRASTRUCTURE),
        (LedgerError("m", hint="h"), ExitCode.INFRASTRUCTURE),
    ],
)
def test_every_typed_error_keeps_its_words_and_gets_its_exit_code(error: Exception, code: ExitCode) -> None:
    explained = explain(error)
    assert (explained.message, explained.code) == (str(error), code)
    assert explained.hint == error.hint  # type: ignore[attr-defined]
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "free some space"), (errno.EACCES, "access"), (errno.EROFS, "--data")]
)
def test_what_the_system_says_comes_with_what_to_do(number: int, hint: str) -> None:
    explained = explain(OSError(number, "as the system says it", "/some/file"))
    assert explained.message == "/some/file: as the system says it"
    assert hint in explained.hint
    assert explained.code == ExitCode.INFRASTRUCTURE


def test_an_error_that_nobody_foresaw_says_so() -> None:
    explained = explain(KeyError("x"))
    assert "unexpected KeyError" in explained.message
    assert "report" in explained.hint


def test_explaining_twice_changes_nothing() -> None:
    error = AssayError("m", "h", ExitCode.REFUSED)
    assert explain(error) is error
    assert exit_code(error) == 4


def test_errors_are_explained_without_loading_anything_heavy() -> None:
    program = (
        "import sys, appliance.errors; print(sorted({'torch', 'sympy', 'transformers', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# the log
def logged(form: str, **values: object) -> str:
    stream = io.StringIO()
    logs.configure("info", form, stream)  # type: ignore[arg-type]
    structlog.get_logger("assay").info("event", **values)
    return stream.getvalue()


@settings(max_examples=FROM_STRANGERS)
@given(st.text(), st.text())
def test_no_value_can_begin_a_line_or_move_the_cursor(text: str, inner: str) -> None:
    for form in ("console", "json"):
        line = logged(form, text=text, deep={"a": [inner]})
        assert line.endswith("\n")
        assert not {unicodedata.category(character) for character in line[:-1]} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_json_lines_can_be_read_by_a_program() -> None:
    entry = json.loads(logged("json", step=3, success=0.5, nothing=None, text="\x1b[31m"))
    assert entry["step"] == 3
    assert entry["success"] == 0.5
    assert entry["nothing"] is None
    assert entry["text"] == "\\x1b[31m"
    assert entry["level"] == "info"


def test_a_traceback_stays_behind_its_event_whatever_its_message_says() -> None:
    stream = io.StringIO()
    logs.configure("info", "console", stream)
    try:
        raise ValueError("broken\n2026-01-01 [info] forged\x1b[2J")
    except ValueError:
        structlog.get_logger("assay").exception("failed")
    first, *rest = stream.getvalue().rstrip("\n").split("\n")
    assert "failed" in first
    assert any("ValueError: broken" in line for line in rest)
    assert all(line.startswith("  ") for line in rest)
    assert "\x1b" not in stream.getvalue()


def test_what_is_below_the_level_is_not_said() -> None:
    stream = io.StringIO()
    logs.configure("warning", "json", stream)
    log = structlog.get_logger("assay")
    log.info("quiet")
    log.warning("loud")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


@pytest.fixture
def _logging_as_it_was() -> Iterator[None]:
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in logs.PACKAGES}
    before = root.handlers[:]
    yield
    root.handlers = before
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("_logging_as_it_was")
def test_what_our_packages_log_obeys_the_level_and_of_others_only_warnings_are_shown() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    logging.getLogger("runtime.broker").info("a sandbox\x1b[2J began")
    logging.getLogger("runtime.broker").debug("not asked for")
    logging.getLogger("somebody.else").info("noise")
    logging.getLogger("somebody.else").warning("trouble")
    first, second = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (first["event"], first["level"], first["logger"]) == ("a sandbox\\x1b[2J began", "info", "runtime.broker")
    assert (second["event"], second["level"]) == ("trouble", "warning")


@pytest.mark.parametrize(("settings", "line"), [({"ASSAY_LOG__LEVEL": "error"}, ""), ({}, "trouble\\x1b")])
def test_what_a_command_logs_obeys_the_configuration_and_loads_structlog_only_then(
    tmp_path: Path, settings: dict[str, str], line: str
) -> None:
    program = (
        "import logging, sys, typer\n"
        "from appliance.cli.shell.options import read_settings\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def ask() -> None:\n"
        "    read_settings()\n"
        "    print('structlog' in sys.modules)\n"
        "    logging.getLogger('runtime.sessions').warning('trouble\\x1b')\n"
        "    print('structlog' in sys.modules)\n"
        "app()\n"
    )
    environment = {**os.environ, "ASSAY_DATA": str(tmp_path), **settings}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", str(bool(line))], found.stderr
    assert found.stderr.count("\n") == bool(line)
    assert line in found.stderr


@pytest.mark.parametrize(("level", "number"), [("debug", 10), ("error", 40)])
def test_the_worker_obeys_the_level_of_the_configuration(tmp_path: Path, level: str, number: int) -> None:
    settings = Settings.load({"data": tmp_path, "log.level": level}, {}, tmp_path, tmp_path)
    (tmp_path / "settings.json").write_text(settings.model_dump_json())
    program = "import logging, sys\nfrom appliance.worker.__main__ import main\nmain(sys.argv[1:])\n"
    program += "print(logging.getLogger('runtime').level)\n"
    arguments = ["jobs", "--ledger-fd", "-1", "--data", str(tmp_path), "--settings", str(tmp_path / "settings.json")]
    result = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert result.stdout.split() == [str(number)], result.stderr


@pytest.mark.usefixtures("_logging_as_it_was")
def test_a_line_whose_reader_is_gone_is_lost_and_what_was_being_done_goes_on() -> None:
    stream = io.StringIO()
    logs.configure("info", "console", stream)
    stream.close()
    logging.getLogger("uvicorn.error").warning("nobody reads this")
    structlog.get_logger("core").warning("nor this")
    structlog.reset_defaults()


@pytest.mark.usefixtures("_logging_as_it_was")
def test_a_pipe_that_nobody_reads_any_more_stops_nothing() -> None:
    reads, writes = os.pipe()
    with os.fdopen(writes, "w", encoding="utf-8") as stream:
        logs.configure("info", "console", stream)
        os.close(reads)
        structlog.get_logger("core").warning("nobody reads this")
        structlog.get_logger("core").warning("nor this")
        with pytest.raises(BrokenPipeError):
            stream.flush()
        with suppress(BrokenPipeError):
            stream.close()
    structlog.reset_defaults()
