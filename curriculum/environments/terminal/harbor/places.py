"""Moves the folders of a task's image below a terminal's /work, in paths and in texts. Pure.

Invariants: one path has one place, and all texts of a task are moved alike. Folders of the system stay where they are,
except those into which the image puts files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from curriculum.environments.terminal.harbor.dockerfile import Image

TESTS, LOGS, SOLUTION, ELSEWHERE = "harbor-tests", "harbor-logs", "harbor/solution", "harbor"
SYSTEM = ("usr", "bin", "sbin", "lib", "lib64", "proc", "sys", "dev", "etc", "run", "boot")
USUAL = ("app", "workspace", "work", "data", "output", "outputs", "results", "solution", "home", "root", "opt", "var",
         "srv", "mnt", "media", "tmp", "oracle")  # fmt: skip
"""Folders below / that tasks name without making them."""
PATH = re.compile(r"(?<![\w./~-])/([A-Za-z0-9_][\w.-]*)")


def places_of(image: Image, workdir: str, texts: Iterable[str]) -> Mapping[str, str]:
    """Returns the new place of every folder that a task's image, test or words name, by its old path."""
    moved = {"/tests": f"/work/{TESTS}", "/logs": f"/work/{LOGS}"}
    if workdir not in ("/", "/work"):
        moved[workdir] = "/work"
    moved.setdefault("/solution", f"/work/{SOLUTION}")
    targets = [copied.target for copied in image.copies]
    put = [path.rstrip("/") if path.endswith("/") else posixpath.dirname(path) for path in targets]
    named = {f"/{name}" for text in texts for name in PATH.findall(text) if name in USUAL}
    for path in (*put, *image.folders, *sorted(named)):
        parts = path.strip("/").split("/")
        if not parts[0] or parts[0] in ("tests", "logs") or f"/{parts[0]}" == workdir:
            continue
        if parts[0] == "work" and workdir == "/work":
            continue
        old = path.rstrip("/") if parts[0] in SYSTEM else f"/{parts[0]}"
        if old.strip("/") not in SYSTEM and old not in ("/usr/bin", "/usr/lib", "/usr/share", "/usr/sbin"):
            moved.setdefault(old, f"/work/{ELSEWHERE}{old}")
    for copied in image.copies:  # a single file in a folder of the system
        above = posixpath.dirname(copied.target)
        if not copied.target.endswith("/") and place(above, moved) is None and above != "/":
            moved.setdefault(copied.target, f"/work/{ELSEWHERE}{copied.target}")
    return moved


def place(path: str, moved: Mapping[str, str]) -> str | None:
    """Returns a path's place relative to /work; None if it is not below /work."""
    path = posixpath.normpath(path)
    for old in sorted(moved, key=len, reverse=True):
        if path == old or path.startswith(f"{old}/"):
            path = moved[old] + path[len(old) :]
            break
    if path == "/work":
        return "."
    return path.removeprefix("/work/") if path.startswith("/work/") else None


def move(text: str, moved: Mapping[str, str]) -> str:
    """Replaces folder paths in a text by those that they are moved to, all simultaneously."""
    names = "|".join(re.escape(name) for name in sorted(moved, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])({names})(?![\w-])(?!\.\w)", lambda hit: moved[hit.group(1)], text)
