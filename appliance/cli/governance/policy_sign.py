"""`assay policy sign`: an edited policy file takes effect only with persons' signatures."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Annotated, Any

import typer

from appliance.cli.shell.model_options import parameters_of, read_options, with_options
from appliance.cli.shell.options import Data, Json, client_of, data_of
from appliance.cli.shell.person import MoreSignersError, SigningOptions, sent
from appliance.cli.show.printing import show_fields, show_json, show_line
from appliance.client import ApiError, PolicyInForce
from appliance.client.messages import PolicyChange
from appliance.client.signing import policy_edit
from appliance.settings.policy_files import parse_policy
from policies.policy import read_content

SUFFIX = ".signed"
SHOWN = 200
"""Maximum lines of the difference."""


@with_options(parameters_of(SigningOptions))
def sign(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="The edited file (default: policy.toml in the data folder).")
    ] = None,
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Put an edited policy file into force with your signature, and others' if the policy requires them.

    Example: assay policy sign policy.toml
    """
    signs = read_options(SigningOptions, values)
    own = signs.person_key()
    path = file or data_of(context, data) / "policy.toml"
    content, read_name = read_content(path)
    parse_policy(content, read_name)
    digest = hashlib.sha256(content).hexdigest()
    beside = path.with_name(f"{path.name}{SUFFIX}")
    api = client_of(context, data)
    in_force = api.policy()
    if in_force.digest == digest:
        _show_in_force(digest, [f"{path} is already in force"], changed=False, as_json=as_json)
        return
    if not as_json:
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
            f"not in force yet: {error}",
            hint=f"let another person run the same command; the signatures so far are in {beside}",
            exit_code=4,
        ) from error
    said = [
        f"the policy {digest[:12]} is in force; candidates already evaluated keep the previous one",
        "restart the broker, or the daemon, if [sandboxes] changed: the broker reads it at its start",
    ]
    _show_in_force(digest, said, changed=True, as_json=as_json)


def _show_in_force(digest: str, said: list[str], *, changed: bool, as_json: bool) -> None:
    if as_json:
        from appliance.cli.documents.data import PolicyInForceDocument

        show_json(PolicyInForceDocument(digest=digest, changed=changed))
        return
    for line in said:
        show_line(line)


def _show_difference(in_force: PolicyInForce, content: str) -> None:
    lines = difflib.unified_diff(
        in_force.content.splitlines(), content.splitlines(), "in force", "new", n=1, lineterm=""
    )
    for number, line in enumerate(lines):
        if number == SHOWN:
            show_line("… and more: compare the files")
            return
        show_line(line)
