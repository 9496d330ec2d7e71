"""Commands of `assay key` that make a key or sign for one: new, admit, revoke."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.audit.log import AuditError
from appliance.audit.machine_keys import load_key
from appliance.cli.governance.keys import Whose, admitters, named
from appliance.cli.shell.options import api_client, read_settings
from appliance.cli.shell.person import MoreSignersError, PassphraseFile, SigningOptions, passphrase, sent
from appliance.cli.show.printing import Output, for_people, prints, show_fields
from appliance.client import ApiClient, ApiError, DaemonNotRunning, DaemonSilent
from appliance.client.messages import SignedStatement
from appliance.client.person_keys import SHORTEST, KeyFileError, keys_folder, login_name, make_key, unlock
from appliance.client.signing import admission, revocation
from policies.contract.decision import KeyStatement
from policies.envelopes import PublicKey, Signer, add_signature, open_envelope, payload_of
from policies.errors import StatementRefused
from policies.register import KEY_TYPE
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from policies.contract.decision import KnownKey

SUFFIX = ".admission"


class OfferedKey(FrozenModel):
    person: str
    fingerprint: str
    file: str
    """The key, or the admission that others must sign."""
    known: bool
    """True if the daemon knows the key now."""
    waits_for: str
    """Step that is missing before the key is known; empty if none is."""


@prints
def new(
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Owner of the key (default: your login name).")
    ] = None,
    passphrase_file: PassphraseFile = None,
) -> Output[OfferedKey]:
    """Make your own key, encrypted, and ask the daemon to admit it.

    Example: assay key new --as ada
    """
    person = name or login_name()
    phrase = passphrase(
        f"A passphrase for the key of {person}, {SHORTEST} characters or more", passphrase_file, twice=True
    )
    made = make_key(keys_folder(os.environ), person, phrase)
    if for_people():
        show_fields([("key", made.path), ("fingerprint", made.public.fingerprint), ("person", person)])
    signer = unlock(made, phrase)
    offered = OfferedKey(
        person=person, fingerprint=made.public.fingerprint, file=str(made.path), known=False, waits_for=""
    )
    try:
        return _offer(api_client(), offered, admission(person, signer), made.path.with_name(f"{person}{SUFFIX}"))
    except (DaemonNotRunning, DaemonSilent):
        return _waiting(offered, "the daemon is not running: start it, then run `assay key admit`")


@prints
def admit(
    signs: SigningOptions,
    file: Annotated[
        Path | None, typer.Argument(help="File written by `assay key new` for another person (default: your own key).")
    ] = None,
    owner: Annotated[
        bool,
        typer.Option(
            "--owner",
            help="Sign as the machine's owner, with the daemon's key: this is another person than those known.",
        ),
    ] = False,
) -> Output[OfferedKey]:
    """Admit a key: your own, or another person's with your signature.

    Example: assay key admit ben.admission
    """
    api = api_client()
    if owner:
        return _as_owner(api, signs, file)
    own = signs.person_key()
    if file is None:
        signer = signs.signer(own)
        offered = OfferedKey(
            person=own.person, fingerprint=own.public.fingerprint, file=str(own.path), known=False, waits_for=""
        )
        return _offer(api, offered, admission(own.person, signer), own.path.with_name(f"{own.path.name}{SUFFIX}"))
    envelope, offered = _shown(file, signs, "vouch for this key")
    return _offer(api, offered, add_signature(envelope, signs.signer(own)), file)


def _as_owner(api: ApiClient, signs: SigningOptions, file: Path | None) -> Output[OfferedKey]:
    """Signs another person's admission with the daemon's key, which only the machine's owner can read."""
    if file is None:
        raise KeyFileError("--owner needs a file", hint="name the file that a known person signed before")
    try:
        signer = Signer.of(load_key(read_settings().data, "daemon"))
    except AuditError as error:
        raise KeyFileError(f"{error}", hint="run it as the daemon's user, or as root") from error
    envelope, offered = _shown(file, signs, "vouch as the machine's owner for this key")
    return _offer(api, offered, add_signature(envelope, signer), file)


def _shown(file: Path, signs: SigningOptions, what: str) -> tuple[bytes, OfferedKey]:
    """Shows another person's admission and has it confirmed. Returns its envelope and the offered key."""
    envelope, statement, fingerprint = _admission_in(file)
    if for_people():
        show_fields([("person", statement.person), ("fingerprint", fingerprint), ("key", statement.key)])
    signs.confirmed(f"{what} of {statement.person}", fingerprint.removeprefix("SHA256:"))
    return envelope, OfferedKey(
        person=statement.person, fingerprint=fingerprint, file=str(file), known=False, waits_for=""
    )


@prints
def revoke(
    whose: Whose,
    signs: SigningOptions,
    reason: Annotated[str, typer.Option("--reason", help="Recorded in the audit log.")] = "",
) -> Output[KnownKey]:
    """Revoke a key permanently; any person with a valid key can.

    Example: assay key revoke ben
    """
    own = signs.person_key()
    api = api_client()
    found = [one for one in named(api, whose) if one.valid]
    if len(found) != 1:
        raise ApiError(
            f"{len(found)} valid keys match {whose!r}",
            hint="give the first characters of one fingerprint; `assay key ls` shows them",
            exit_code=2,
        )
    gone = found[0]
    if for_people():
        show_fields([("person", gone.person), ("fingerprint", gone.fingerprint)])
    signs.confirmed(f"revoke this key of {gone.person} permanently", gone.fingerprint.removeprefix("SHA256:"))
    signer = signs.signer(own)
    changed = api.change_key(SignedStatement.of(revocation(gone.person, PublicKey(gone.key), reason, signer)))
    return Output(changed, f"{changed.fingerprint} of {changed.person} is revoked")


def _offer(api: ApiClient, offered: OfferedKey, envelope: bytes, file: Path) -> Output[OfferedKey]:
    """Sends a key's signed admission to the daemon. If more people must sign, writes it to the file for them."""
    try:
        admitted = sent(lambda signed: api.change_key(SignedStatement.of(signed)), envelope, file)
    except MoreSignersError as error:
        lines = f"not known yet: {error}; {error.hint}", f"another person runs: assay key admit {file}"
        return _waiting(offered.model_copy(update={"file": str(file)}), *lines)
    by = admitters(admitted)
    how = f"admitted by {by}" if by else "the first key, trusted on first use: nobody vouched for it"
    known = offered.model_copy(update={"known": True})
    return Output(known, f"{admitted.fingerprint} of {admitted.person} is known: {how}")


def _waiting(offered: OfferedKey, *lines: str) -> Output[OfferedKey]:
    return Output(offered.model_copy(update={"waits_for": "; ".join(lines)}), lines)


def _admission_in(file: Path) -> tuple[bytes, KeyStatement, str]:
    """Reads a key's admission from a file. Returns its envelope, its statement and the new key's fingerprint. Raises
    KeyFileError if it is unreadable."""
    try:
        envelope = file.read_bytes()
        statement = KeyStatement.model_validate(payload_of(open_envelope(envelope, KEY_TYPE)))
        return envelope, statement, PublicKey.read(statement.key).fingerprint
    except (OSError, ValueError, StatementRefused) as error:
        raise KeyFileError(
            f"{file}: invalid key admission: {getattr(error, 'strerror', None) or error}",
            hint="name the file that `assay key new` wrote for the other person",
        ) from error
