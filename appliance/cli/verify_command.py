"""`assay verify BUNDLE`: checks a bundle again, offline, and says what it found.

Exit codes: 0 when everything holds, 1 when a byte or the verdict does not, 2 when there is no bundle to read or the
expected digest is none, 5 when this machine could not decide (no worker could be run).
"""

from __future__ import annotations

import re
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from appliance.cli.show import show_json
from appliance.client.printable import printable
from appliance.jobs.check import BundleReport, check_bundle
from appliance.jobs.format import BundleError
from appliance.jobs.reading import FileState

OK, FAILED, USAGE, INFRASTRUCTURE = 0, 1, 2, 5
DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
SHOWN = 400
"""Characters of a question or an answer."""


def verify(
    path: Path, json_out: bool, expect: str | None = None, *, key: Path | None = None, html: Path | None = None
) -> int:
    """Prints a report about the bundle at `path` and gives the exit code. `expect` is its manifest's digest, `key` a
    public key whose seal must lie beside it; the report is also written to `html` as a page."""
    try:
        if expect is not None and not DIGEST.fullmatch(expect):
            raise BundleError(
                "the expected digest is not a SHA-256", hint="It has 64 hexadecimal digits, as `assay verify` prints."
            )
        report = check_bundle(path, expect=expect)
        report = _with_seal(report, path, key)
        _write_page(report, html)
    except BundleError as error:
        if json_out:
            show_json({"ok": False, "error": str(error), "hint": error.hint})
        else:
            Console(stderr=True).print(Text(printable(f"assay: {error}\n  {error.hint}", lines=True)), soft_wrap=True)
        return USAGE
    if json_out:
        show_json(report)
    else:
        show(report, Console())
    if report.ok:
        return OK
    return INFRASTRUCTURE if report.undecided else FAILED


def _with_seal(report: BundleReport, path: Path, key: Path | None) -> BundleReport:
    """The report, with what is wrong with the seal among its reasons. Raises BundleError for a key that is none."""
    if key is None:
        return report
    from appliance.jobs.seal import check_seal
    from policies.envelopes import PublicKey

    try:
        public = PublicKey.read(key.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BundleError(f"{key} is no public key: {reason}", hint="Name keys/trainer.pub of who made it.") from error
    try:
        check_seal(path, public)
    except BundleError as error:
        return report.model_copy(update={"ok": False, "reasons": (*report.reasons, str(error))})
    return report


def _write_page(report: BundleReport, html: Path | None) -> None:
    from appliance.jobs.page import page

    try:
        if html is not None:
            html.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise BundleError(f"{html} cannot be written: {error.strerror}", hint="Choose another file.") from error


def show(report: BundleReport, console: Console) -> None:
    """A short report for a person. Everything from the bundle is printed as plain text without control characters."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for file in report.files:
        style = "green" if file.state is FileState.INTACT else "red"
        name, detail = printable(file.name, limit=80), printable(file.detail, limit=SHOWN)
        table.add_row(Text(file.state.value, style=style), Text(f"{name} {detail}".rstrip()))
    console.print(table)
    for name, text in (("question", report.question), ("answer", report.answer)):
        if text is not None:
            console.print(Text(f"{name}: {printable(text, limit=SHOWN)}"), soft_wrap=True)
    for when, verdict in (("then", report.verdict_then), ("now", report.verdict_now)):
        if verdict is not None:
            line = f"verdict {when}: {verdict.outcome.value}, {verdict.reason} ({verdict.verifier} {verdict.version})"
            console.print(Text(printable(line, limit=SHOWN)), soft_wrap=True)
    if report.manifest:
        console.print(Text(f"manifest: {report.manifest}"), soft_wrap=True)
    of_files = tuple(f"{file.name}: " for file in report.files)
    for reason in report.reasons:
        if of_files and reason.startswith(of_files):
            continue  # The list above says it.
        console.print(Text(printable(reason, limit=SHOWN), style="red"), soft_wrap=True)
    if report.ok:
        console.print(Text("verified: the files are intact and the answer fulfils the spec", style="bold green"))
    else:
        console.print(Text("not verified", style="bold red"))
