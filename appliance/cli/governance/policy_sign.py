"""`assay policy sign`: an edited policy file takes effect only with persons' signatures."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.shell.options import api_client, data_folder
from appliance.cli.shell.person import MoreSignersError, SigningOptions, sent
from appliance.cli.show.printing import Output, for_people, prints, show_fields, show_line
from appliance.client import ApiError, PolicyInForce
from appliance.client.messages import PolicyChange
from appliance.client.signing import policy_edit
from appliance.settings.policy_files import parse_policy
from policies.policy import read_content
from runtime.model import FrozenModel

SUFFIX = ".signed"
SHOWN = 200
"""Maximum lines of the difference."""


class PolicyInForceDocument(FrozenModel):
    digest: str
    changed: bool
    """False if the policy was in force already."""


@prints
def sign(
    signs: SigningOptions,
    file: Annotated[
        Path | None, typer.Argument(help="The edited file (default: policy.toml in the data folder).")
    ] = None,
) -> Output[PolicyInForceDocument]:
    """Put an edited policy file into force with your signature, and others' if the policy requires them.

    Example: assay policy sign policy.toml
    """
    own = signs.person_key()
    path = file or data_folder() / "policy.toml"
    content, read_name = read_content(path)
    parse_policy(content, read_name, outside=False)  # the daemon has the rest loaded, in the form now in force
    digest = hashlib.sha256(content).hexdigest()
    beside = path.with_name(f"{path.name}{SUFFIX}")
    api = api_client()
    in_force = api.policy()
    if in_force.digest == digest:
        return Output(PolicyInForceDocument(digest=digest, changed=False), f"{path} is already in force")
    if for_people():
        _show_difference(in_force, content.decode())
        show_fields([("in force", in_force.digest), ("new", digest), ("people who must sign", in_force.people)])
    signs.confirmed("put this file into force", digest)
    signer = signs.signer(own)
    before = beside.read_bytes() if beside.exists() else None
    envelope = policy_edit(digest, in_force, signer, before)
    try:
        sent(lambda signed: api.change_policy(PolicyChange.of(content, signed)), envelope, beside)
    except MoreSignersError as error:
        raise ApiError(
            f"not in force yet: {error}; {error.hint}",
            hint=f"let another person run the same command; the signatures so far are in {beside}",
            exit_code=4,
        ) from error
    lines = [
        f"the policy {digest[:12]} is in force; candidates already evaluated keep the previous one",
        "restart the broker, or the daemon, if [sandboxes] changed: the broker reads it at its start",
    ]
    return Output(PolicyInForceDocument(digest=digest, changed=True), lines)


def _show_difference(in_force: PolicyInForce, content: str) -> None:
    lines = difflib.unified_diff(
        in_force.content.splitlines(), content.splitlines(), "in force", "new", n=1, lineterm=""
    )
    for number, line in enumerate(lines):
        if number == SHOWN:
            show_line("… and more: compare the files")
            return
        show_line(line)
