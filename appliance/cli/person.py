"""How a person signs at the command line: which key, its passphrase, and what is typed to confirm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from appliance.client.person_keys import PersonKey
    from policies.envelopes import Signer

Signs = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Whose key signs; otherwise the only one here.")
]
KeyFile = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="The key that signs, wherever it lies.")]
PassphraseFile = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", help="Read the passphrase there, - for standard input."),
]
Agent = Annotated[bool, typer.Option("--agent", help="Sign with the key that a running ssh-agent holds.")]
Confirm = Annotated[
    str | None, typer.Option("--confirm", metavar="TEXT", help="What would be typed to confirm, for a script.")
]
DIGITS = 8


def person_key(name: str | None, file: Path | None) -> PersonKey:
    """The key that the options name. Raises KeyFileError."""
    import os

    from appliance.client.person_keys import find_key, keys_folder

    return find_key(keys_folder(os.environ), file, name)


def open_key(key: PersonKey, passphrase_file: Path | None, *, agent: bool) -> Signer:
    """Asks for the passphrase where it is not in a file. Raises KeyFileError."""
    import os

    from appliance.client.person_keys import unlock
    from appliance.client.ssh_agent import agent_signer

    if agent:
        return agent_signer(key.public, os.environ)
    return unlock(key, passphrase(f"Passphrase of {key.path}", passphrase_file))


def passphrase(prompt: str, file: Path | None, *, twice: bool = False) -> str:
    """From the file's first line, or typed unseen. Raises KeyFileError."""
    import getpass
    import sys

    from appliance.client.person_keys import KeyFileError

    if file is not None:
        try:
            text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise KeyFileError(f"{file}: {reason}", hint="name a file with the passphrase in its first line") from error
        return text.split("\n", 1)[0].removesuffix("\r")
    if not sys.stdin.isatty():
        raise KeyFileError(
            "there is no terminal to type the passphrase at", hint="use --passphrase-file FILE, or --agent"
        )
    typed = getpass.getpass(f"{prompt}: ")
    if twice and getpass.getpass("Once more: ") != typed:
        raise KeyFileError("the two were not the same", hint="try again: nothing was written")
    return typed


def confirm(what: str, expected: str, given: str | None) -> None:
    """Raises KeyFileError unless at least the first `DIGITS` characters of `expected` were typed, or given."""
    import sys

    from appliance.client.person_keys import KeyFileError
    from appliance.client.printable import printable

    wanted = expected[:DIGITS]
    if given is None:
        if not sys.stdin.isatty():
            raise KeyFileError(
                f"nobody is there to confirm: {what}", hint=f"a script says --confirm {printable(wanted)}"
            )
        given = input(f"Type {printable(wanted)} to {printable(what)}: ")
    typed = given.strip()
    if len(typed) < len(wanted) or not expected.startswith(typed):
        raise KeyFileError(f"that is not {printable(wanted)}: nothing was done", hint="look again at what is shown")
