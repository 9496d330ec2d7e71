"""The doctor's look at the verifiers: what this machine can check.

What always holds: what is missing is a warning, because nothing is passed that could not be checked; versions come from
the metadata of packages, which are not imported.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator

from appliance.cli.checks import Check, Grade, ok, warning
from verifiers.lean import toolchain

Version = Callable[[str], str]
"""Of an installed package. Raises PackageNotFoundError."""


def verifiers(version: Version = importlib.metadata.version) -> Iterator[Check]:
    """Those that run here without a sandbox of their own, and Lean."""
    yield _packages("answers", ("sympy", "mpmath"), version)
    yield _packages("claims", ("z3-solver", "cvc5"), version)
    yield _packages("checklists", ("jsonschema",), version)
    yield lean(toolchain.find())


def lean(found: toolchain.Toolchain | None) -> Check:
    """Which Lean proofs are checked with; looked at, and not started."""
    if found is None:
        return ok("lean", "absent", f"only proofs need it: {toolchain.how_to_have_one()}")
    told = found.describe()
    note = "each verdict says whether the kernel replayed the proof: `kernel_replayed` in its evidence"
    return ok("lean", f"{told['lean']} from {told['from']}; {told['libraries'] or 'no libraries'}", note)


def programs(isolation: Iterable[Check]) -> Check:
    """Whether candidate programs can be run, by what was seen of the sandboxes."""
    sandbox = next((check for check in isolation if check.name == "sandbox"), None)
    if sandbox is not None and sandbox.grade is Grade.OK:
        return ok("programs", "run in sandboxes of their own, one for the candidate and one for the reference")
    return warning("programs", "cannot be run here", "see the lines above: there is no sandbox to run them in")


def _packages(name: str, packages: tuple[str, ...], version: Version) -> Check:
    found, missing = [], []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        return warning(name, f"cannot be checked here: {', '.join(missing)} is missing", "run install.sh again")
    return ok(name, ", ".join(found))
