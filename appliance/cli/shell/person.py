"""Signing on the command line: key, passphrase and typed confirmation."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from pydantic import Field

from appliance.client.failures import ApiError
from appliance.client.person_keys import KeyFileError, PersonKey, WrongPassphraseError, find_key, keys_folder, unlock
from appliance.client.ssh_agent import agent_signer
from appliance.text.printable import printable
from policies.envelopes import Signer
from policies.errors import Refusal
from runtime.model import FrozenModel

T = TypeVar("T")
DIGITS = 8
TRIES = 3
"""Attempts at a typed passphrase."""
PassphraseFile = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", help="Read the passphrase from this file, - for standard input."),
]


class MoreSignersError(Exception):
    """Other people must sign the statement, too; message and hint are the daemon's."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def sent(send: Callable[[bytes], T], envelope: bytes, file: Path) -> T:
    """Sends a person's signed statement, removes `file` and returns the answer. Raises ApiError, and MoreSignersError
    after saving the statement to `file` for other signers."""
    try:
        answer = send(envelope)
    except ApiError as error:
        if error.refusal is not Refusal.SIGNERS:
            raise
        file.write_bytes(envelope)
        raise MoreSignersError(str(error), error.hint) from error
    file.unlink(missing_ok=True)
    return answer


class KeyOptions(FrozenModel):
    """Options that name the key with which a person signs."""

    name: str | None = Field(
        None,
        description="Person whose key signs (default: the only key here).",
        json_schema_extra={"flag": "--as", "metavar": "NAME"},
    )
    key: Path | None = Field(None, description="File of the signing key.", json_schema_extra={"metavar": "FILE"})
    passphrase_file: Path | None = Field(
        None,
        description="Read the passphrase from this file, - for standard input.",
        json_schema_extra={"metavar": "FILE"},
    )
    agent: bool = Field(False, description="Sign with a key in a running ssh-agent.")

    def person_key(self) -> PersonKey:
        """Returns the person's key that the options name. Raises KeyFileError if it is missing or ambiguous."""
        return find_key(keys_folder(os.environ), self.key, self.name)

    def signer(self, key: PersonKey | None = None) -> Signer:
        """Unlocks a person's key for signing; asks for the passphrase up to three times unless a file has it. With
        --agent, ssh-agent signs. Raises KeyFileError."""
        key = key or self.person_key()
        if self.agent:
            return agent_signer(key.public, os.environ)
        for left in range(TRIES if self.passphrase_file is None else 1, 0, -1):
            try:
                return unlock(key, passphrase(f"Passphrase of {key.path}", self.passphrase_file))
            except WrongPassphraseError as error:
                if left == 1:
                    raise
                typer.echo(printable(f"{error}; try again, or press Ctrl-C"), err=True)
        raise AssertionError("the last try returns or raises")


class SigningOptions(KeyOptions):
    """Options of a command with which a person signs after a typed confirmation."""

    confirm: str | None = Field(
        None, description="Confirmation text, for scripts.", json_schema_extra={"metavar": "TEXT"}
    )

    def confirmed(self, what: str, expected: str) -> None:
        """Asks a person to confirm `what` by typing digits, unless --confirm gives them. Raises KeyFileError if they
        differ."""
        confirm(what, expected, self.confirm)


def passphrase(prompt: str, file: Path | None, *, twice: bool = False) -> str:
    """Reads a passphrase from the file's first line, or typed without echo. Raises KeyFileError."""
    if file is not None:
        try:
            text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise KeyFileError(f"{file}: {reason}", hint="name a file with the passphrase in its first line") from error
        return text.split("\n", 1)[0].removesuffix("\r")
    if not sys.stdin.isatty():
        raise KeyFileError(
            "no terminal to type the passphrase", hint="use --passphrase-file FILE" + ("" if twice else ", or --agent")
        )
    typed = getpass.getpass(f"{prompt}: ")
    if twice and getpass.getpass("Repeat: ") != typed:
        raise KeyFileError("the passphrases differ", hint="try again: nothing was written")
    return typed


def confirm(what: str, expected: str, given: str | None, *, script: str = "") -> None:
    """Asks a person to confirm `what` by typing. Raises KeyFileError unless the first `DIGITS` characters of `expected`
    were typed or given. `script` is the option for scripts if not `--confirm`."""
    wanted = expected[:DIGITS]
    if given is None:
        if not sys.stdin.isatty():
            said = script or f"--confirm {wanted}"
            raise KeyFileError(f"no terminal to confirm: {what}", hint=f"in a script, give {printable(said)}")
        typer.echo(f"Type {printable(wanted)} to {printable(what)}: ", nl=False, err=True)
        given = input()
    typed = given.strip()
    if len(typed) < len(wanted) or not expected.startswith(typed):
        raise KeyFileError(
            f"wrong confirmation, expected {printable(wanted)}: nothing was done", hint="compare with the text shown"
        )
