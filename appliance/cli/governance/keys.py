"""Commands of `assay key` that list and show known keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, prints, show_fields, show_table
from appliance.client.api_client import ApiClient
from appliance.client.failures import ApiError
from policies.contract.decision import KnownKey

if TYPE_CHECKING:
    from appliance.client.messages import Keys

Whose = Annotated[str, typer.Argument(help="A person, or the first characters of a fingerprint.")]


@prints
def ls() -> Output[Keys]:
    """List the keys known to the daemon, and which are yours."""
    known = api_client().keys()
    return Output(known, lambda: _show_keys(known))


def _show_keys(known: Keys) -> None:
    from appliance.client.person_keys import keys_folder, own_keys

    mine = {key.public.fingerprint for key in own_keys(keys_folder(os.environ))}
    show_table(
        ("person", "fingerprint", "yours", "since", "admitted by", "state"),
        [
            (
                key.person,
                key.fingerprint,
                "yes" if key.fingerprint in mine else "",
                key.admitted_at[:19],
                admitters(key) or "nobody: trusted on first use",
                "valid" if key.valid else f"revoked {key.revoked_at[:19]} by {key.revoked_by}",
            )
            for key in known.keys
        ],
        empty="no key is known: make the first one with `assay key new`",
    )
    show_fields([(f"the {name}'s own", f"{print_}, signs no decision") for print_, name in known.machines.items()])


@prints
def show(key: Whose) -> Output[list[KnownKey]]:
    """Show all that is known about a person's keys.

    Example: assay key show ada
    """
    found = named(api_client(), key)
    return Output(found, lambda: _show_each(found))


def _show_each(found: list[KnownKey]) -> None:
    for one in found:
        show_fields(
            [
                ("person", one.person),
                ("key", one.key),
                ("fingerprint", one.fingerprint),
                ("admitted", one.admitted_at),
                ("by", admitters(one) or "nobody: it was trusted on first use"),
                ("revoked", one.revoked_at),
                ("revoked by", one.revoked_by),
                ("reason", one.reason),
            ]
        )


def admitters(key: KnownKey) -> str:
    """Returns who admitted a key; empty for the first one."""
    return ", ".join((*key.admitted_by, *["the machine's owner"] * key.vouched))


def named(api: ApiClient, whose: str) -> list[KnownKey]:
    """Returns the known keys of a person, or those with that fingerprint prefix. Raises ApiError if there are none."""
    known = api.keys().keys
    bare = whose.removeprefix("SHA256:")
    found = [key for key in known if key.person == whose]
    found = found or [key for key in known if bare and key.fingerprint.removeprefix("SHA256:").startswith(bare)]
    if not found:
        raise ApiError(f"unknown key {whose!r}", hint="list known keys with `assay key ls`", exit_code=2)
    return found
