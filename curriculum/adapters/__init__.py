"""Adapters for other frameworks' environments: one row each, with the packages that its guests have.

Invariants: the appliance never imports any of these packages. They are installed once (`assay curriculum adapter
install NAME`), for guests alone, in the exact versions that a file beside this one lists. An adapter that takes an
owner's package has a package set for each: the same versions plus that package's files or, if the package declares
requirements, a lock of these with all dependencies (`installing.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from common.plugins.table import OpenTable
from curriculum.contract.errors import CurriculumError
from runtime.model import FrozenModel
from runtime.package_sets import has_programs, installed_names, set_folder, set_named
from runtime.profile import PackageSet

TASKS = "tasks.jsonl"
OWNED_SECONDS = 60.0
"""Time limit per call of a world with an owner's package, in seconds: peers' servers import much when they start."""
NODE_MIB = 768
"""Memory that a server on Node.js needs, in MiB: V8 reserves address space."""
STAND_IN = b"""def __getattr__(name):
    raise ImportError(f"{__name__} is not installed: there is no wheel of it")
"""


class Adapter(NamedTuple):
    name: str
    about: str
    imports: tuple[str, ...]
    """Modules that are imported in a guest before its first call."""
    memory_mib: int
    """Memory of the preloaded modules, in MiB."""
    mib: int
    """Disk space of the packages, in MiB, approximate."""
    stand_ins: tuple[str, ...] = ()
    """Modules without wheels that the adapter imports: placeholders that raise ImportError on use."""
    worlds: tuple[str, ...] = ()
    """Names of built-in environments whose guests import these packages."""
    takes_package: bool = False
    """True if the environments come from a package that the owner names."""
    tasks_given: bool = False
    """True if the owner also gives the tasks. In a package they are in `TASKS`, which no guest gets."""
    core: tuple[str, ...] = ()
    """Distributions of which an owner's package needs one; the first is added unless it requires one itself."""
    needs: tuple[str, ...] = ()
    """Requirements of the adapter's own program in a guest."""
    npm: bool = False
    """True if packages from npm belong to the set, as a file beside this one locks them: it takes npm to install."""
    versions: tuple[str, ...] = ()
    """`pins` of an adapter from outside; built-in ones have a file."""

    @property
    def pins(self) -> tuple[str, ...]:
        """Exact versions of all packages that the adapter's guests have, dependencies included: `name==version`."""
        return self.versions or tuple(_listed(self.name))

    @property
    def npm_lock(self) -> str:
        """Lock of the packages from npm, as the text of a `package-lock.json`; empty without any."""
        return Path(__file__).with_name(f"{self.name}.json").read_text(encoding="utf-8") if self.npm else ""

    def set_name(self, package: str = "") -> str:
        """Returns the name of the adapter's package set, with the owner's package if one is given."""
        name = self.name.replace("/", ".")
        return f"{name}-{package}" if package else name

    def installed(self, package: str = "") -> PackageSet | None:
        """Returns the adapter's package set for a sandbox; None if it is not installed on this machine."""
        digest = set_named(self.set_name(package))
        if not digest:
            return None
        if not package:
            seconds = OWNED_SECONDS if self.npm else 0.0
            return PackageSet(digest=digest, preload=self.imports, memory_mib=self.memory_mib, call_seconds=seconds)
        folder = set_folder(digest)
        preload = tuple(name for name in self.imports if _has_module(folder, name))
        memory = max(self.memory_mib, NODE_MIB if has_programs(folder) else 0)
        return PackageSet(digest=digest, preload=preload, memory_mib=memory, call_seconds=OWNED_SECONDS)

    def missing(self, package: str = "") -> str:
        """Returns the reason why the adapter cannot be used here; empty if it can."""
        if self.installed(package) is not None:
            return ""
        if package:
            return (
                f"package {package} is not installed: "
                f"run `assay curriculum adapter install {self.name} --package PLACE`"
            )
        return f"its guests' packages are not installed: run `assay curriculum adapter install {self.name}`"

    @property
    def stand_in_files(self) -> Mapping[str, bytes]:
        """Source files of the adapter's placeholder modules, by path in the package set."""
        return {f"{name}.py": STAND_IN for name in self.stand_ins}


def _listed(name: str) -> Iterator[str]:
    """Yields the versions that the file of an adapter lists, and those of files that it refers to (`-r mcp.txt`)."""
    for line in Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            yield from _listed(line.removeprefix("-r ").removesuffix(".txt"))
        elif line.strip() and not line.startswith("#"):
            yield line.strip()


def _has_module(folder: Path, name: str) -> bool:
    path = folder / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


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
        "mcp_servers",
        "servers that others publish on PyPI and npm, and ours beside them",
        ("mcp", "mcp.server", "mcp.client.session", "anyio._backends._asyncio", "mcp_server_time"),
        NODE_MIB,
        198,
        worlds=("published_servers",),
        npm=True,
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
        core=("openenv-core", "openenv"),
        needs=("uvicorn", "websockets"),
    ),
    Adapter(
        "verifiers",
        "tasksets of the package verifiers, each from a package of the owner's",
        ("verifiers.v1", "verifiers.v1.envs.single_agent"),
        320,
        327,
        takes_package=True,
        core=("verifiers",),
    ),
)
ADAPTERS: OpenTable[Adapter] = OpenTable("adapters", {row.name: row for row in _ROWS})


def adapter_named(name: str) -> Adapter:
    """Returns the adapter of that name. Raises CurriculumError, with the valid names, for an unknown one."""
    if name in ADAPTERS:
        return ADAPTERS[name]
    raise CurriculumError(f"unknown adapter {name[:80]!r}", hint=f"choose one of {', '.join(ADAPTERS)}")


class AdapterSummary(FrozenModel):
    name: str
    about: str
    packages: int
    mib: int
    installed: str
    """Digest of the package set; empty if not installed."""
    owned: tuple[str, ...] = ()
    """Owner's packages that are installed with this adapter."""

    @classmethod
    def of(cls, adapter: Adapter) -> AdapterSummary:
        return cls(
            name=adapter.name,
            about=adapter.about,
            packages=len(adapter.pins),
            mib=adapter.mib,
            installed=set_named(adapter.set_name()) or "",
            owned=tuple(
                name.removeprefix(f"{adapter.set_name()}-")
                for name in installed_names()
                if name.startswith(f"{adapter.set_name()}-")
            ),
        )
