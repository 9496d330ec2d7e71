"""What worlds can be made of that is not ours: a row each, with the packages that its guests have.

What always holds: nothing of it is imported by the appliance. Its packages are installed once (`assay curriculum
adapter install NAME`), for guests alone, in exact versions that a file beside this one lists. An adapter that takes an
owner's package has a set for each of them: the same versions, and that package's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from curriculum.contract.errors import CurriculumError
from runtime.model import FrozenModel
from runtime.package_sets import installed_names, set_named
from runtime.profile import PackageSet

TASKS = "tasks.jsonl"
STAND_IN = b"""def __getattr__(name):
    raise ImportError(f"{__name__} is not installed: there is no wheel of it")
"""


class Adapter(NamedTuple):
    name: str
    about: str
    imports: tuple[str, ...]
    """Modules that guests have imported before their first call."""
    memory_mib: int
    """What these take."""
    mib: int
    """What its packages take on the disk, about."""
    stand_ins: tuple[str, ...] = ()
    """Modules that it imports and of which there are no wheels: each can be imported, and nothing in it can be used."""
    worlds: tuple[str, ...] = ()
    """Environments of ours whose guests import them."""
    takes_package: bool = False
    """Whether what it is for lies in a package that the owner names."""
    tasks_given: bool = False
    """Whether the owner also gives the tasks; in a package they lie in `TASKS`, which no guest has."""

    @property
    def pins(self) -> tuple[str, ...]:
        """Exact versions, with everything that they need."""
        lines = Path(__file__).with_name(f"{self.name}.txt").read_text(encoding="utf-8").splitlines()
        return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))

    def set_name(self, package: str = "") -> str:
        """What the set of packages is called, with that package of the owner's."""
        return f"{self.name}-{package}" if package else self.name

    def installed(self, package: str = "") -> PackageSet | None:
        """What a sandbox asks for; None until it is installed here."""
        digest = set_named(self.set_name(package))
        return PackageSet(digest=digest, preload=self.imports, memory_mib=self.memory_mib) if digest else None

    def missing(self, package: str = "") -> str:
        """Why it cannot be used here, in a sentence; empty when it can."""
        if self.installed(package) is not None:
            return ""
        if package:
            return (
                f"the package {package} is not installed: assay curriculum adapter install {self.name} --package FOLDER"
            )
        return f"its guests' packages are not installed: assay curriculum adapter install {self.name}"

    @property
    def stand_in_files(self) -> Mapping[str, bytes]:
        """By path: what its set has beside what is fetched."""
        return {f"{name}.py": STAND_IN for name in self.stand_ins}


_ROWS = (
    Adapter(
        "mcp",
        "servers of the Model Context Protocol over standard input and output, ours or from packages of the owner's",
        ("mcp", "mcp.server", "mcp.client.session", "anyio._backends._asyncio"),
        96,
        39,
        worlds=("orchestration",),
        takes_package=True,
        tasks_given=True,
    ),
    Adapter(
        "reasoning_gym",
        "generated data sets of reasoning-gym, with levels",
        ("reasoning_gym",),
        160,
        197,
        stand_ins=("cellpylib", "pycosat", "zss"),
    ),
    Adapter(
        "openenv",
        "environments that an OpenEnv server serves, each from a package of the owner's",
        ("openenv.core.env_server.http_server", "uvicorn", "uvicorn.protocols.websockets.websockets_impl"),
        160,
        94,
        takes_package=True,
    ),
    Adapter(
        "verifiers",
        "tasksets of the package verifiers, each from a package of the owner's",
        ("verifiers.v1", "verifiers.v1.envs.single_agent"),
        320,
        327,
        takes_package=True,
    ),
)
ADAPTERS = {row.name: row for row in _ROWS}


def adapter_named(name: str) -> Adapter:
    """Raises CurriculumError, with the names that exist."""
    if name in ADAPTERS:
        return ADAPTERS[name]
    raise CurriculumError(f"there is no adapter {name[:80]!r}", hint=f"choose one of {', '.join(ADAPTERS)}")


class AdapterSummary(FrozenModel):
    name: str
    about: str
    packages: int
    mib: int
    installed: str
    """The digest of its set; empty where it is not installed."""
    owned: tuple[str, ...] = ()
    """Packages of the owner's that are installed with it."""

    @classmethod
    def of(cls, adapter: Adapter) -> AdapterSummary:
        return cls(
            name=adapter.name,
            about=adapter.about,
            packages=len(adapter.pins),
            mib=adapter.mib,
            installed=set_named(adapter.name) or "",
            owned=tuple(
                name.removeprefix(f"{adapter.name}-")
                for name in installed_names()
                if name.startswith(f"{adapter.name}-")
            ),
        )
