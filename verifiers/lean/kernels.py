"""Versions of Lean's kernel that accept a proof of False: the floor, and the reported holes below it. Pure.

A hole needs terms that are built for it, which screening and the examination of every object make hard to bring in. So
a proof below the floor counts, its evidence says so, and a policy may require the floor.
"""

from __future__ import annotations

import re

FLOOR = (4, 34, 0)
"""First version without a known hole. A release candidate or nightly of a version counts as below it."""
HOLES: tuple[tuple[tuple[int, int, int], str], ...] = (
    ((4, 32, 1), "#14484"),  # a metaprogram in the process of the kernel
    ((4, 32, 2), "#14576"),  # a projection out of another structure
    ((4, 34, 0), "#14613"),  # Sort (imax 1 0), `_nested` and nested inductive types, with the next three
    ((4, 34, 0), "#14616"),
    ((4, 34, 0), "#14621"),
    ((4, 34, 0), "#14632"),
    ((4, 34, 0), "#14806"),  # the cache of definitional equality
    ((4, 34, 0), "#14807"),  # what counts as a proposition
    ((4, 34, 0), "#14838"),  # a reference count that wraps around
)
"""The first version without each hole, and its number in the issues of leanprover/lean4."""


def doubts(version: str) -> str:
    """Returns why a Lean version's kernel is not trusted fully: below the floor with the known holes, or of an unknown
    version; empty for the floor and later versions."""
    found = re.fullmatch(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(-[\w.+-]+)?", version)
    floor = ".".join(map(str, FLOOR))
    if found is None:
        return f"unknown version, the floor is {floor}"
    number = (int(found[1]), int(found[2]), int(found[3]))
    holes = [hole for fixed, hole in HOLES if number < fixed or (number == fixed and found[4])]
    return f"below {floor}: {', '.join(holes)}" if holes else ""


def described(version: str) -> str:
    """Returns a kernel's version as evidence has it: `4.35.0`, or `4.32.1 (below 4.34.0: #14576, ...)`."""
    why = doubts(version)
    return f"{version} ({why})" if why else version
