"""Reads commits of a git repository by plumbing commands, which run no hook, filter or program that it configures.

Invariants: nothing is checked out, and neither index nor working tree is looked at. Sizes and numbers are bounded.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from curriculum.contract.errors import CurriculumError

SECONDS = 120
MOST_COMMITS = 2_000
MOST_BYTES = 400_000


class CommitChange(NamedTuple):
    commit: str
    before: dict[str, str]
    """Earlier texts of the files that a commit changed, by path."""
    after: dict[str, str]


def is_git(place: Path) -> bool:
    """True if a folder is the top of a git repository."""
    return (place / ".git").exists() or ((place / "HEAD").is_file() and (place / "objects").is_dir())


def head_files(place: Path, most: int) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of each regular file of the last commit, too many by one of `most` at most."""
    listed = _git(place, "ls-tree", "-r", "-l", "-z", "HEAD").split(b"\0")
    wanted: list[tuple[str, bytes, int]] = []
    for line in listed[: most + 1]:
        about, _, name = line.partition(b"\t")
        parts = about.split()
        if len(parts) == 4 and parts[0] in (b"100644", b"100755") and parts[1] == b"blob":
            wanted.append((name.decode(errors="replace"), parts[2], int(parts[3])))
    contents = _blobs(place, [sha for _, sha, size in wanted if size <= MOST_BYTES])
    for path, sha, _size in wanted:
        yield path, contents.get(sha, b"\0")


def changes(place: Path, paths: set[str]) -> Iterator[CommitChange]:
    """Yields the newest commits first that changed up to four of the `paths`, with the texts before and after."""
    commits = _git(place, "rev-list", f"--max-count={MOST_COMMITS}", "--first-parent", "--no-merges", "HEAD").split()
    raw = _git(
        place, "diff-tree", "--stdin", "-r", "--no-renames", "--diff-filter=M", stdin=b"\n".join(commits) + b"\n"
    )
    commit = ""
    entries: list[tuple[str, bytes, bytes]] = []
    for line in [*raw.decode(errors="replace").splitlines(), "end"]:
        if line.startswith(":"):
            about, _, path = line.partition("\t")
            if path in paths:
                _old, _new, before, after, _status = about[1:].split()
                entries.append((path, before.encode(), after.encode()))
            continue
        if commit and 0 < len(entries) <= 4:
            found = _blobs(place, [sha for _, *both in entries for sha in both])
            texts = {sha: data.decode(errors="replace") for sha, data in found.items()}
            older = {path: texts[sha] for path, sha, _ in entries if sha in texts}
            newer = {path: texts[sha] for path, _, sha in entries if sha in texts}
            yield CommitChange(commit, older, newer)
        commit, entries = line.strip(), []


def _blobs(place: Path, names: list[bytes]) -> dict[bytes, bytes]:
    said = _git(place, "cat-file", "--batch", stdin=b"\n".join(names) + b"\n") if names else b""
    found: dict[bytes, bytes] = {}
    while said:
        head, _, rest = said.partition(b"\n")
        parts = head.split()
        if len(parts) != 3:
            said = rest
            continue
        size = int(parts[2])
        found[parts[0]], said = rest[:size], rest[size + 1 :]
    return found


def _git(place: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    settings = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    safe = [
        "-c",
        f"safe.directory={place.resolve()}",
        "-c",
        "core.fsmonitor=false",
        "-c",
        f"core.hooksPath={os.devnull}",
    ]
    environment = {"PATH": os.environ.get("PATH", os.defpath)} | settings
    try:
        done = subprocess.run(
            ["git", *safe, "-C", str(place), "--no-replace-objects", *arguments],
            input=stdin, capture_output=True, timeout=SECONDS, check=False, env=environment,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise CurriculumError(f"{place} is a git repository, and git is not installed", hint="install git") from error
    except subprocess.TimeoutExpired as error:
        raise CurriculumError(f"git took more than {SECONDS} s in {place}", hint="name a smaller repository") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise CurriculumError(
            f"git cannot read {place}: {said[-1][:200]}", hint="`git fsck` says what is wrong with it"
        )
    return done.stdout
