"""Options that several sandbox commands share, and the limits and files that they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from runtime.sandbox import Limits, Sandbox

File = Annotated[Path | None, typer.Argument(help="A file of Python, `-` for standard input.")]
Code = Annotated[str | None, typer.Option("-c", "--code", metavar="CODE", help="Python, instead of a file.")]
Backend = Annotated[
    str | None,
    typer.Option("--backend", help="gvisor or nsjail, as far as the policy allows; its word for model code if unsaid."),
]
From = Annotated[
    str | None, typer.Option("--from", metavar="SNAPSHOT", help="Begin there, instead of with an empty sandbox.")
]
Files = Annotated[
    list[str] | None,
    typer.Option("--file", metavar="HOST:GUEST", help="Copy a file or folder in, below /work or /tmp; repeatable."),
]
Seconds = Annotated[float | None, typer.Option("--seconds", metavar="S", help="Wall clock of a call.")]
Memory = Annotated[int | None, typer.Option("--memory", metavar="MIB", help="Memory of the sandbox.")]
Others = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="LIMIT=VALUE", help="Another limit by its name, such as pids=64; repeatable."),
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


def for_hours(known: Limits) -> Limits:
    """For a person at a prompt, whose every line is a call and a snapshot, and who can stop what takes too long."""
    return known.model_copy(update={name: max(getattr(known, name), least) for name, least in AT_A_PROMPT.items()})


def limits_with(known: Limits, seconds: float | None, memory: int | None, others: list[str] | None) -> Limits:
    """Those of the configuration, with what was given on the command line in their place. Raises BadParameter."""
    from pydantic import ValidationError

    values: dict[str, Any] = known.model_dump()
    asked: dict[str, tuple[str, Any]] = {}
    if seconds is not None:
        asked["call_seconds"] = ("--seconds", seconds)
    if memory is not None:
        asked["memory_mib"] = ("--memory", memory)
    for text in others or ():
        name, found, value = text.partition("=")
        if not found or name not in values:
            raise typer.BadParameter(
                f"{text!r} is not LIMIT=VALUE; the limits are {', '.join(values)}", param_hint="--set"
            )
        asked[name] = (f"--set {name}", value)
    endless = next((option for option, value in asked.values() if str(value).lower() in ENDLESS), None)
    if endless is not None:
        raise typer.BadParameter("a limit has an end", param_hint=endless)
    try:
        return type(known).model_validate(values | {name: value for name, (_, value) in asked.items()})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        option = asked.get(str(fault["loc"][0]), ("", None))[0]
        raise typer.BadParameter(fault["msg"], param_hint=option) from error


def source_of(file: Path | None, code: str | None) -> str:
    """The Python to run. Raises BadParameter unless exactly one was given, and can be read."""
    import sys

    if (file is None) == (code is None):
        raise typer.BadParameter("give a file, `-` for standard input, or -c CODE: one of them")
    if code is not None:
        return code
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(MAX_CODE_BYTES + 1)
        else:
            assert file is not None
            with file.open("rb") as stream:
                content = stream.read(MAX_CODE_BYTES + 1)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from error
    if len(content) > MAX_CODE_BYTES:
        raise typer.BadParameter(f"{file} is longer than {MAX_CODE_BYTES >> 20} MiB", param_hint="FILE")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8 at byte {error.start}", param_hint="FILE") from error


def pairs_of(files: list[str] | None) -> list[tuple[Path, str]]:
    """What to copy where. Raises BadParameter for what is no file or folder here, or no place of the guest."""
    return [pair_of(text) for text in files or ()]


def pair_of(text: str) -> tuple[Path, str]:
    host, found, guest = text.rpartition(":")
    if not found or not host or not guest.startswith(GUEST_FOLDERS):
        raise typer.BadParameter(f"{text!r} is not HOST:GUEST, with GUEST below /work or /tmp", param_hint="--file")
    if not Path(host).exists():
        raise typer.BadParameter(f"{host} does not exist", param_hint="--file")
    return Path(host), guest


def copy_in(box: Sandbox, host: Path, guest: str) -> int:
    """A file, or a folder of plain files; how many. Raises BadRequestError for what the runtime does not take."""
    from runtime.errors import BadRequestError

    if host.is_dir():
        return box.upload(host, guest)
    if not host.is_file():
        raise BadRequestError(f"{host} is no plain file", hint="Copy files and folders only.")
    size = host.stat().st_size
    if size > MAX_FILE_BYTES:
        raise BadRequestError(f"{host} is longer than {MAX_FILE_BYTES >> 20} MiB", hint="Split it.")
    box.write(guest, host.read_bytes())
    return 1
