"""Commands of `assay key` that make a key or sign for one: new, admit, revoke."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from appliance.cli.governance.keys import Whose, named
from appliance.cli.shell.model_options import parameters_of, read_options, with_options
from appliance.cli.shell.options import Data, Json, client_of
from appliance.cli.shell.person import MoreSignersError, PassphraseFile, SigningOptions, passphrase, sent
from appliance.cli.show.printing import show_fields, show_json, show_line
from appliance.client import ApiClient, ApiError, DaemonNotRunning, DaemonSilent
from appliance.client.messages import SignedStatement
from appliance.client.person_keys import SHORTEST, KeyFileError, keys_folder, login_name, make_key, unlock
from appliance.client.signing import admission, revocation
from policies.contract.decision import KeyStatement
from policies.envelopes import PublicKey, add_signature, open_envelope, payload_of
from policies.errors import StatementRefused
from policies.register import KEY_TYPE

SUFFIX = ".admission"


def new(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Owner of the key (default: your login name).")
    ] = None,
    passphrase_file: PassphraseFile = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make your own key, encrypted, and ask the daemon to admit it.

    Example: assay key new --as ada
    """
    person = name or login_name()
    phrase = passphrase(
        f"A passphrase for the key of {person}, {SHORTEST} characters or more", passphrase_file, twice=True
    )
    made = make_key(keys_folder(os.environ), person, phrase)
    if not as_json:
        show_fields([("key", made.path), ("fingerprint", made.public.fingerprint), ("person", person)])
    signer = unlock(made, phrase)
    told = _Offer(person, made.public.fingerprint, made.path, as_json)
    try:
        api = client_of(context, data)
        told.make(api, admission(person, signer), made.path.with_name(f"{person}{SUFFIX}"))
    except (DaemonNotRunning, DaemonSilent):
        told.show(["the daemon is not running: start it, then run `assay key admit`"], known=False)


@with_options(parameters_of(SigningOptions))
def admit(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="File written by `assay key new` for another person (default: your own key).")
    ] = None,
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Admit a key: your own, or another person's with your signature.

    Example: assay key admit ben.admission
    """
    signs = read_options(SigningOptions, values)
    own = signs.person_key()
    api = client_of(context, data)
    if file is None:
        signer = signs.signer(own)
        told = _Offer(own.person, own.public.fingerprint, own.path, as_json)
        told.make(api, admission(own.person, signer), own.path.with_name(f"{own.path.name}{SUFFIX}"))
        return
    envelope, statement, fingerprint = _admission_in(file)
    if not as_json:
        show_fields([("person", statement.person), ("fingerprint", fingerprint), ("key", statement.key)])
    signs.confirmed(f"vouch for this key of {statement.person}", fingerprint.removeprefix("SHA256:"))
    told = _Offer(statement.person, fingerprint, file, as_json)
    told.make(api, add_signature(envelope, signs.signer(own)), file)


@with_options(parameters_of(SigningOptions))
def revoke(
    context: typer.Context,
    whose: Whose,
    reason: Annotated[str, typer.Option("--reason", help="Recorded in the audit log.")] = "",
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Revoke a key permanently; any person with a valid key can.

    Example: assay key revoke ben
    """
    signs = read_options(SigningOptions, values)
    own = signs.person_key()
    api = client_of(context, data)
    found = [one for one in named(api, whose) if one.valid]
    if len(found) != 1:
        raise ApiError(
            f"{len(found)} valid keys match {whose!r}",
            hint="give the first characters of one fingerprint; `assay key ls` shows them",
            exit_code=2,
        )
    gone = found[0]
    if not as_json:
        show_fields([("person", gone.person), ("fingerprint", gone.fingerprint)])
    signs.confirmed(f"revoke this key of {gone.person} permanently", gone.fingerprint.removeprefix("SHA256:"))
    signer = signs.signer(own)
    changed = api.change_key(SignedStatement.of(revocation(gone.person, PublicKey(gone.key), reason, signer)))
    show_json(changed) if as_json else show_line(f"{changed.fingerprint} of {changed.person} is revoked")


class _Offer(NamedTuple):
    """A person's key offered to the daemon, and the display of the result."""

    person: str
    fingerprint: str
    path: Path
    as_json: bool

    def make(self, api: ApiClient, envelope: bytes, file: Path) -> None:
        """Sends a key's signed admission to the daemon, and shows the result. If more people must sign, writes it to
        the file for them."""
        try:
            admitted = sent(lambda signed: api.change_key(SignedStatement.of(signed)), envelope, file)
        except MoreSignersError as error:
            said = [f"not known yet: {error}", f"another person runs: assay key admit {file}"]
            self._replace(path=file).show(said, known=False)
            return
        by = ", ".join(admitted.admitted_by)
        how = f"admitted by {by}" if by else "the first key, trusted on first use: nobody vouched for it"
        self.show([f"{admitted.fingerprint} of {admitted.person} is known: {how}"], known=True)

    def show(self, said: list[str], *, known: bool) -> None:
        if self.as_json:
            from appliance.cli.documents.data import OfferedKey

            waits_for = "" if known else "; ".join(said)
            offered = {"person": self.person, "fingerprint": self.fingerprint, "file": str(self.path)}
            show_json(OfferedKey(**offered, known=known, waits_for=waits_for))
            return
        for line in said:
            show_line(line)


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
