"""A person's own Ed25519 key: created, stored encrypted, and unlocked with its passphrase to sign once.

Invariants: a private key is written only encrypted (OpenSSH's format: bcrypt and AES-256, readable by `ssh-keygen -y`
and `ssh-add`), with mode 0600, and never over another file. It lies in the person's configuration folder, outside the
data folder, so the daemon and its children need no access. A key file that is unencrypted or readable by others is not
used.

Not promised: while unlocked, the key is in this process's memory. Anyone who can act as this user can also capture the
passphrase; a key in an agent on another machine (`ssh -A`) is safer.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, load_ssh_private_key

from appliance.system.durable_file import write_private
from common.errors import HintedError, reading
from policies.contract.decision import NAME
from policies.envelopes import PublicKey, Signer


def login_name() -> str:
    """Returns the login name of the user that owns this process."""
    user = os.getuid()
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"


KDF_ROUNDS = 32
"""Bcrypt rounds: about a third of a second for each passphrase tried."""
SHORTEST = 8
"""Minimum characters of a passphrase."""


class KeyFileError(HintedError):
    """A person's key cannot be made or used; the exit code is that of usage errors."""

    exit_code = 2


class WrongPassphraseError(KeyFileError):
    """The passphrase does not open the person's key; another one may."""


@dataclass(frozen=True)
class PersonKey:
    """A person's signing key on disk, still locked."""

    path: Path
    """File of the private key; `<path>.pub` is the public one."""
    public: PublicKey
    person: str
    """Owner named in the file; the daemon's register is decisive."""


def keys_folder(environ: Mapping[str, str]) -> Path:
    """Returns the folder of a person's keys: `$XDG_CONFIG_HOME/assay/keys`, or the same below `~/.config`."""
    named = environ.get("XDG_CONFIG_HOME", "")
    config = Path(named) if Path(named).is_absolute() else Path(environ.get("HOME") or Path.home()) / ".config"
    return config / "assay" / "keys"


def make_key(folder: Path, person: str, passphrase: str) -> PersonKey:
    """Creates a person's key, encrypted with the passphrase, as a new file. Raises KeyFileError for an invalid name, a
    short passphrase or an existing file."""
    if not re.fullmatch(NAME, person):
        raise KeyFileError(
            f"invalid name {person!r}", hint="give --as NAME with at most 64 letters, digits and . _ @ -"
        )
    if len(passphrase) < SHORTEST:
        raise KeyFileError(
            f"the passphrase has fewer than {SHORTEST} characters", hint="use a few words that are hard to guess"
        )
    made = Ed25519PrivateKey.generate()
    public = PublicKey.of(made.public_key())
    builder = PrivateFormat.OpenSSH.encryption_builder().kdf_rounds(KDF_ROUNDS)
    content = made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, builder.build(passphrase.encode()))
    path = folder / person
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, content)
        public_path(path).write_text(f"{public.line} {person}\n")
    except FileExistsError as error:
        raise KeyFileError(
            f"{path} already exists; keys are never overwritten",
            hint="use that key, choose another name with --as, or move the file",
        ) from error
    except OSError as error:
        raise KeyFileError(
            f"{path} cannot be written: {error.strerror}", hint="check the folder's permissions"
        ) from error
    return PersonKey(path, public, person)


def own_keys(folder: Path) -> list[PersonKey]:
    """Returns the persons' keys in a folder, sorted by name, still locked."""
    found = sorted(folder.glob("*.pub")) if folder.is_dir() else []
    return [key_at(path.with_suffix("")) for path in found]


def key_at(path: Path) -> PersonKey:
    """Returns a person's key, still locked, by the path of its private or public file. Raises KeyFileError."""
    private = path.with_suffix("") if path.suffix == ".pub" else path
    try:
        text = public_path(private).read_text(encoding="utf-8").strip()
        public = PublicKey.read(text)
    except (OSError, ValueError) as error:
        raise KeyFileError(
            f"{public_path(private)}: invalid public key: {getattr(error, 'strerror', None) or error}",
            hint="make a key with `assay key new`, or write its public half with `ssh-keygen -y`",
        ) from error
    comment = text.split(maxsplit=2)[2:]
    return PersonKey(private, public, comment[0].strip() if comment else "")


def find_key(folder: Path, named: Path | None, person: str | None) -> PersonKey:
    """Returns the key to sign with: the named file's, the person's, or the only one in the folder. Raises
    KeyFileError."""
    if named is not None:
        return key_at(named)
    if person is not None:
        return key_at(folder / person)
    own = own_keys(folder)
    if len(own) == 1:
        return own[0]
    if not own:
        raise KeyFileError(f"no key in {folder}", hint="make one with `assay key new`")
    raise KeyFileError(
        f"several keys in {folder}: {', '.join(key.path.name for key in own)}",
        hint="name the person with --as NAME, or the file with --key FILE",
    )


def unlock(key: PersonKey, passphrase: str) -> Signer:
    """Decrypts a person's private key, and returns a signer that uses it. Raises KeyFileError for a wrong passphrase,
    or a file that is unencrypted or readable by others."""
    with reading(key.path, KeyFileError, "name the file of your key with --key"):
        content = key.path.read_bytes()
        mode = key.path.stat().st_mode
    if stat.S_IMODE(mode) & 0o077 and key.path.stat().st_uid == os.geteuid():
        raise KeyFileError(
            f"{key.path} is readable by others", hint=f"run `chmod 600 {key.path}`, and consider a new key"
        )
    try:
        load_ssh_private_key(content, password=None)
    except TypeError:
        pass  # it is encrypted, as it has to be
    except ValueError as error:
        raise KeyFileError(f"{key.path}: invalid OpenSSH private key", hint="make one with `assay key new`") from error
    else:
        raise KeyFileError(f"{key.path} is not encrypted", hint=f"set a passphrase with `ssh-keygen -p -f {key.path}`")
    try:
        opened = load_ssh_private_key(content, password=passphrase.encode())
    except ValueError as error:
        raise WrongPassphraseError(
            f"the passphrase does not open {key.path}", hint="try again: nothing was signed"
        ) from error
    if not isinstance(opened, Ed25519PrivateKey):
        raise KeyFileError(f"{key.path} is not an Ed25519 key", hint="make one with `assay key new`")
    signer = Signer.of(opened)
    if signer.public != key.public:
        raise KeyFileError(
            f"{key.path} and {public_path(key.path)} are not the two halves of one key",
            hint=f"write the right public half with `ssh-keygen -y -f {key.path}`",
        )
    return signer


def public_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")
