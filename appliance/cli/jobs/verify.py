"""`assay verify BUNDLE`: verifies a bundle again, offline, and reports findings and unchecked parts.

Exit codes: 0 if everything holds; 1 if a byte, the seal, the statement or the verdict does not; 2 without a readable
bundle or key, or for an invalid digest; 5 if this machine could not decide (no worker, or no Lean for a proof).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console
from rich.text import Text

from appliance.cli.show.printing import Output
from appliance.errors import ExitCode
from appliance.jobs.check import check_bundle
from appliance.jobs.layout import LARGEST_MEANING, BundleError
from appliance.jobs.reading import FileState
from appliance.jobs.report import BundleReport, facts, parts, result
from appliance.text.printable import printable
from common.errors import reading
from policies.envelopes import PublicKey
from runtime.model import FrozenModel
from verifiers.checker import Checker

DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
SHOWN = 400
"""Characters of a question or an answer."""
MOST_KEY = 1 << 16
IN_A_PROCESS = "process"
"""Isolation of a verdict reached without a broker."""


class _PipeConsole(Console):
    """Console that raises on a broken pipe, so that the command line handles it."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - it is called where the error is handled


class UnreadableBundle(FrozenModel):
    """Report that a bundle, or the key to verify it with, is not readable (exit code 2)."""

    ok: Literal[False]
    error: str
    hint: str


def verify(
    path: Path,
    expect: str | None = None,
    *,
    key: Path | None = None,
    own: Path | None = None,
    people: Sequence[Path] = (),
    html: Path | None = None,
    lean: Path | None = None,
) -> Output[BundleReport | UnreadableBundle]:
    """Returns a report on the bundle at `path`, and writes it to `html`.

    `expect` is its manifest's digest, `key` the public key that must have sealed it, `own` this machine's key file,
    `people` the key files of possible signers, `lean` a toolchain.
    """
    try:
        if expect is not None and not DIGEST.fullmatch(expect):
            raise BundleError(
                "the expected digest is not a SHA-256", hint="Give 64 hexadecimal digits, as `assay verify` prints."
            )
        public = _public(key, "keys/trainer.pub of who made it") if key is not None else None
        persons = [_public(person, "the person's own NAME.pub") for person in people]
        with _warnings() as notes, Checker(lean=lean) as checker:
            report = check_bundle(
                path,
                expect=expect,
                checker=checker,
                key=public,
                own=_own(own),
                people=persons,
                later=_validation_beside(path),
            )
        if report.verdict_now is not None and report.verdict_now.isolation == IN_A_PROCESS:
            notes.append("the answer was read in a self-confined process; run as root to read it in a jail")
        report = report.model_copy(update={"notes": tuple(dict.fromkeys(notes))})
        _write_page(report, html)
    except BundleError as error:
        unreadable = UnreadableBundle(ok=False, error=str(error), hint=error.hint)
        said = printable(f"assay: {error}\n  {error.hint}", lines=True)
        return Output(unreadable, lambda: typer.echo(said, err=True), ExitCode.USAGE)
    failed = ExitCode.INFRASTRUCTURE if report.undecided else ExitCode.FAILED_VERDICT
    return Output(report, lambda: show(report, _PipeConsole()), ExitCode.OK if report.ok else failed)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collects the log warnings of verifiers and runtime within the block, for a bundle's report instead of the
    screen."""
    notes: list[str] = []

    class VerifyListener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            notes.append(record.getMessage())

    listener = VerifyListener(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("verifiers", "runtime")]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(listener)
        logger.propagate = False
    try:
        yield notes
    finally:
        for logger, propagated in zip(loggers, before, strict=True):
            logger.removeHandler(listener)
            logger.propagate = propagated


def _public(key: Path, usual: str) -> PublicKey:
    try:
        with key.open("rb") as source:
            return PublicKey.read(source.read(MOST_KEY).decode())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BundleError(f"{key}: invalid public key: {reason}", hint=f"Name {usual}.") from error


def _own(key: Path | None) -> PublicKey | None:
    """Returns the public key in this machine's key file; None if this user cannot read one."""
    try:
        return _public(key, "keys/trainer.pub") if key is not None else None
    except BundleError:
        return None


def _validation_beside(path: Path) -> bytes | None:
    """Reads a person's signature on a bundle's check made after the bundle: NAME.meaning.json beside NAME or NAME.zip.
    None if it does not exist."""
    whole = path.resolve()  # `.` has no name
    beside = whole.parent / f"{whole.name.removesuffix('.zip')}.meaning.json"
    with reading(beside, BundleError, "Move it away, or make it readable."):
        if not beside.is_file():
            return None
        with beside.open("rb") as source:
            return source.read(LARGEST_MEANING + 1)


def _write_page(report: BundleReport, html: Path | None) -> None:
    from appliance.jobs.report import page

    try:
        if html is not None:
            html.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise BundleError(f"{html} cannot be written: {error.strerror}", hint="Choose another file.") from error


def show(report: BundleReport, console: Console) -> None:
    """Prints a short report on a verified bundle for a person. Bundle text is printed as plain text without control
    characters."""

    def line(text: str, style: str = "") -> None:
        console.print(Text(printable(text), style=style), soft_wrap=True)

    line(result(report), "bold green" if report.ok else "bold red")
    odd = [file for file in report.files if file.state is not FileState.INTACT]
    of_files = tuple(f"{file.name}: " for file in odd)
    for reason in report.reasons:
        if not (of_files and reason.startswith(of_files)):  # the list below says those
            line(printable(reason, limit=SHOWN), "red")
    for file in odd:
        line(
            f"{file.state.value} {printable(file.name, limit=80)} {printable(file.detail, limit=SHOWN)}".rstrip(), "red"
        )
    for name, text in (("question", report.question), ("answer", report.answer)):
        if text is not None:
            line(f"{name}: {printable(text, limit=SHOWN)}")
    for name, text in facts(report):
        line(f"{name}: {printable(text, limit=SHOWN)}")
    if report.statement_now:
        line("its statements, with their support:")
    for part in parts(report):
        line(f"  {part.now}{f' (it says: {part.then})' if part.differs else ''}: {part.part}")
        if part.by:
            line(f"      {part.how}", "dim")
    if report.not_checked:
        line("not checked here:")
    for one in report.not_checked:
        line(f"  {printable(one.what, limit=SHOWN)}: {printable(one.why, limit=SHOWN)}")
    for note in report.notes:
        line(f"note: {printable(note, limit=SHOWN)}")
