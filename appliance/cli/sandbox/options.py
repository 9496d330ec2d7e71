"""Sandbox options of the command line, with the limits and files they select."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field, ValidationError

from appliance.cli.shell.inputs import text_of
from appliance.config import places
from runtime.model import FrozenModel
from runtime.sandbox import Limits

if TYPE_CHECKING:
    from appliance.cli.shell.broker_target import BrokerTarget
    from policies.contract.rules import ResourceRules
    from runtime.sandbox import Sandbox

File = Annotated[Path | None, typer.Argument(help="Python file, `-` for standard input.")]
Code = Annotated[str | None, typer.Option("-c", "--code", metavar="CODE", help="Python, instead of a file.")]
Backend = Annotated[
    str | None,
    typer.Option("--backend", help="gvisor or nsjail, if the policy allows it (default: the one for model code)."),
]
AT_A_PROMPT = {
    "call_seconds": 60.0,
    "cpu_seconds": 3_600.0,
    "life_seconds": 86_400.0,
    "calls": 100_000,
    "snapshots": 100_000,
}
MAX_CODE_BYTES = 1 << 20
MAX_FILE_BYTES = 64 << 20
ENDLESS = ("inf", "+inf", "infinity", "+infinity")
GUEST_FOLDERS = ("/work/", "/tmp/")  # noqa: S108 - the guest's


def for_hours(known: Limits, rules: ResourceRules) -> Limits:
    """Widens sandbox limits, within the policy, for a person at a prompt. There each line is a call and a snapshot, and
    the person can stop slow ones."""
    most = places.most_of(rules)
    wider = {name: max(getattr(known, name), min(least, most.get(name, least))) for name, least in AT_A_PROMPT.items()}
    return known.model_copy(update=wider)


class SandboxRun(FrozenModel):
    """Initial contents and limits of a sandbox; `model_options` derives the commands' options from it."""

    snapshot: str | None = Field(
        None,
        description="Start from this snapshot instead of an empty sandbox.",
        json_schema_extra={"flag": "--from", "metavar": "SNAPSHOT"},
    )
    files: tuple[str, ...] = Field(
        (),
        description="Copy a file or folder to a place below /work or /tmp (repeatable).",
        json_schema_extra={"flag": "--file", "metavar": "HOST:GUEST"},
    )
    seconds: float | None = Field(
        None, description="Time limit per call, in seconds (default: 60).", json_schema_extra={"metavar": "S"}
    )
    memory: int | None = Field(
        None, description="Memory limit of the sandbox, in MiB.", json_schema_extra={"metavar": "MIB"}
    )
    others: tuple[str, ...] = Field(
        (),
        description="Another limit, such as pids=64 (repeatable).",
        json_schema_extra={"flag": "--set", "metavar": "LIMIT=VALUE"},
    )

    def pairs(self) -> list[tuple[Path, str]]:
        """Returns host and guest paths of the files to copy into a sandbox. Raises BadParameter for a missing source or
        an invalid target."""
        return [_pair_of(text) for text in self.files]

    def limits(self, target: BrokerTarget, known: Limits | None = None) -> Limits:
        """Returns a sandbox's limits: the configured ones, or `known`, with those of the command line. Raises
        BadParameter, and AssayError (4) beyond the policy's bounds."""
        known = known or target.settings.limits
        values: dict[str, Any] = known.model_dump()
        asked: dict[str, tuple[str, Any]] = {}
        if self.seconds is not None:
            asked["call_seconds"] = ("--seconds", self.seconds)
        if self.memory is not None:
            asked["memory_mib"] = ("--memory", self.memory)
        for text in self.others:
            name, found, value = text.partition("=")
            if not found or name not in values:
                raise typer.BadParameter(
                    f"{text!r} is not LIMIT=VALUE; the limits are {', '.join(values)}", param_hint="--set"
                )
            asked[name] = (f"--set {name}", value)
        endless = next((option for option, value in asked.values() if str(value).lower() in ENDLESS), None)
        if endless is not None:
            raise typer.BadParameter("a limit must be finite", param_hint=endless)
        try:
            limits = Limits.model_validate(values | {name: value for name, (_, value) in asked.items()})
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            option = asked.get(str(fault["loc"][0]), ("", None))[0]
            raise typer.BadParameter(fault["msg"], param_hint=option) from error
        target.require_within(limits, {name: option for name, (option, _) in asked.items()})
        return limits


def source_of(file: Path | None, code: str | None) -> str:
    """Returns the Python code to run: `code` itself, or the file's text. Raises BadParameter unless exactly one source
    was given, UsageError if unreadable."""
    if (file is None) == (code is None):
        raise typer.BadParameter("give exactly one of a file, `-` for standard input, and -c CODE")
    return code if code is not None else text_of(str(file), "FILE", MAX_CODE_BYTES)


def _pair_of(text: str) -> tuple[Path, str]:
    host, found, guest = text.rpartition(":")
    if not found or not host or not guest.startswith(GUEST_FOLDERS):
        raise typer.BadParameter(f"{text!r} is not HOST:GUEST, with GUEST below /work or /tmp", param_hint="--file")
    if not Path(host).exists():
        raise typer.BadParameter(f"{host} does not exist", param_hint="--file")
    return Path(host), guest


def copy_in(box: Sandbox, host: Path, guest: str) -> int:
    """Copies a file, or a folder of plain files, into a sandbox and returns their number. Raises BadRequestError for
    unsupported files."""
    from runtime.errors import BadRequestError

    if host.is_dir():
        return box.upload(host, guest)
    if not host.is_file():
        raise BadRequestError(f"{host} is not a regular file", hint="Copy only files and folders.")
    size = host.stat().st_size
    if size > MAX_FILE_BYTES:
        raise BadRequestError(f"{host} is longer than {MAX_FILE_BYTES >> 20} MiB", hint="Split it.")
    box.write(guest, host.read_bytes())
    return 1
