"""`assay policy sign`: an edited policy file takes effect with a person's signature, and in no other way."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.options import Data, client_of, settings_of
from appliance.cli.person import Agent, Confirm, KeyFile, PassphraseFile, Signs, confirm, open_key, person_key

if TYPE_CHECKING:
    from appliance.client import PolicyInForce

SUFFIX = ".signed"
SHOWN = 200
"""Lines of the difference."""


def sign(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="The edited file; policy.toml in the data folder without it.")
    ] = None,
    name: Signs = None,
    key: KeyFile = None,
    passphrase_file: PassphraseFile = None,
    agent: Agent = False,
    confirmed: Confirm = None,
    data: Data = None,
) -> None:
    """Put an edited policy file into force with your signature, and others' where the policy asks for them."""
    import hashlib

    from appliance.cli.show import show_fields, show_line
    from appliance.client import ApiError
    from appliance.client.signing import policy_edit
    from appliance.places import parse_policy
    from policies.policy import read_content
    from policies.refusals import Refusal

    path = file or settings_of(context, data).data / "policy.toml"
    content, told = read_content(path)
    parse_policy(content, told)
    digest = hashlib.sha256(content).hexdigest()
    beside = path.with_name(f"{path.name}{SUFFIX}")
    with client_of(context, data) as api:
        in_force = api.policy()
        if in_force.digest == digest:
            show_line(f"{path} is in force already")
            return
        _show_difference(in_force, content.decode())
        show_fields([("in force", in_force.digest), ("to be", digest), ("people who must sign", in_force.people)])
        confirm("put this file into force", digest, confirmed)
        signer = open_key(person_key(name, key), passphrase_file, agent=agent)
        before = beside.read_bytes() if beside.exists() else None
        envelope = policy_edit(digest, in_force, signer, before)
        try:
            api.change_policy(content, envelope)
        except ApiError as error:
            if not str(error).startswith(Refusal.SIGNERS.value):
                raise
            beside.write_bytes(envelope)
            raise ApiError(
                f"not in force yet: {error}",
                hint=f"another person runs the same command; the signatures so far are in {beside}",
                exit_code=4,
            ) from error
    beside.unlink(missing_ok=True)
    show_line(f"the policy {digest[:12]} is in force; candidates that were evaluated before keep the one before")
    show_line("what runs where is read by the broker when it starts: restart it, or the daemon, where that changed")


def _show_difference(in_force: PolicyInForce, content: str) -> None:
    from appliance.cli.show import show_line

    lines = difflib.unified_diff(
        in_force.content.splitlines(), content.splitlines(), "in force", "to be", n=1, lineterm=""
    )
    for number, line in enumerate(lines):
        if number == SHOWN:
            show_line("… and more: compare the files")
            return
        show_line(line)
