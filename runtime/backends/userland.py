"""Adds a userland to a guest's root: the distribution's shell and small programs, and a user table.

Invariants: only the programs named here are copied, from the distribution's own folders, without set-id bits, under the
requested name; nothing of the host's /etc is. `adduser` and `userdel` are our own, because the distribution's need PAM,
Perl and their own tables.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from runtime.errors import RefusedError

FOLDERS = "/usr/bin:/bin:/usr/sbin:/sbin"
NAMES = """
    sh bash dash
    [ arch base32 base64 basename cat chgrp chmod chown cksum comm cp csplit cut date dd df dirname du echo env expand
    expr factor false fmt fold groups head hostid id install join link ln logname ls md5sum mkdir mkfifo mktemp mv nice
    nl nohup nproc numfmt od paste pathchk pr printenv printf ptx pwd readlink realpath rm rmdir seq sha1sum sha224sum
    sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch
    tr true truncate tsort tty uname unexpand uniq unlink wc who whoami yes
    awk cmp diff diff3 egrep fgrep find getent grep gunzip gzip hostname kill patch pgrep pkill ps sdiff sed setsid tar
    which xargs zcat
"""
REQUIRED = ("sh", "cat", "ls", "rm", "mkdir", "env")
ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nguest:x:1000:1000:guest:/work:/bin/sh\n",
    "group": "root:x:0:\nguest:x:1000:\n",
}
HEAD = """#!/usr/bin/python3 -ISB
import os, shutil, sys
arguments = sys.argv[1:]
names = [word for word in arguments if not word.startswith("-")]
def rows(table):
    with open(f"/etc/{table}", encoding="utf-8") as file: return file.read().splitlines()
def write(table, rows):
    with open(f"/etc/{table}.new", "w", encoding="utf-8") as file: file.write("".join(f"{row}\\n" for row in rows))
    os.rename(f"/etc/{table}.new", f"/etc/{table}")
def taken(table): return {row.split(":")[0] for row in rows(table)}
"""
ADDUSER = """
if "--help" in arguments: sys.exit(print("adduser [--comment TEXT] [--disabled-password] NAME") or 0)
comment = arguments[arguments.index("--comment") + 1] if "--comment" in arguments[:-1] else ""
names = names[1:] if comment and names[:1] == [comment] else names
if len(names) != 1 or not names[0].replace("-", "a").replace("_", "a").isalnum() or len(names[0]) > 32:
    sys.exit("adduser: one plain name is needed")
if ":" in comment or "\\n" in comment: sys.exit("adduser: a comment has no colon")
[name] = names
if name in taken("passwd") | taken("group"): sys.exit(f"adduser: {name} is there already")
try:
    number = 1 + max([1000, *(int(row.split(":")[2]) for row in rows("passwd"))])
    write("passwd", [*rows("passwd"), f"{name}:x:{number}:{number}:{comment}:/home/{name}:/bin/sh"])
    write("group", [*rows("group"), f"{name}:x:{number}:"])
    os.mkdir(f"/home/{name}")
    os.chown(f"/home/{name}", number, number)
except OSError as error:
    sys.exit(f"adduser: {error}")
"""
USERDEL = """
if len(names) != 1 or names[0] not in taken("passwd") or names[0] in ("root", "guest"):
    sys.exit("userdel: one user that was added is needed")
try:
    for table in ("passwd", "group"): write(table, [row for row in rows(table) if row.split(":")[0] != names[0]])
    if "-r" in arguments: shutil.rmtree(f"/home/{names[0]}")
except OSError as error:
    sys.exit(f"userdel: {error}")
"""


def find() -> Mapping[str, Path]:
    """Returns this host's shell and small programs for guests, by name. Raises RefusedError without a shell."""
    found = {name: Path(path).resolve() for name in NAMES.split() if (path := shutil.which(name, path=FOLDERS))}
    if missing := [name for name in REQUIRED if name not in found]:
        raise RefusedError(
            f"this host has no {', '.join(missing)} in {FOLDERS} for a sandbox with programs",
            hint="Install them (coreutils and a shell), or ask for a sandbox without programs.",
        )
    return found


def digest(programs: Mapping[str, Path]) -> bytes:
    """Returns a digest of the programs copied for guests, from their paths, sizes and times, and of the user tables."""
    state = hashlib.sha256((HEAD + ADDUSER + USERDEL + repr(ACCOUNTS)).encode())
    for name, path in sorted(programs.items()):
        found = path.stat()
        state.update(f"{name}|{path}|{found.st_size}|{found.st_mtime_ns}|".encode())
    return state.digest()


def build(root: Path, programs: Mapping[str, Path]) -> None:
    """Copies the host's shell and small programs into a guest root, without their shared libraries."""
    for folder in ("home", "root", "opt/etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for link in ("bin", "sbin"):
        (root / link).symlink_to("usr/bin")
    own = {"adduser": HEAD + ADDUSER, "userdel": HEAD + USERDEL}
    for name in [*programs, *own]:
        target = root / "usr/bin" / name
        if name in own:
            target.write_text(own[name])
        elif not target.exists():
            shutil.copyfile(programs[name], target)
        target.chmod(0o755)


def write_accounts(root: Path) -> None:
    """Writes a guest root's user tables, in /etc and in a template for a writable /etc."""
    for folder in ("etc", "opt/etc"):
        for name, text in ACCOUNTS.items():
            (root / folder / name).write_text(text)
