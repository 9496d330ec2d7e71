"""What worlds can be made of that is not ours: a row each, with the packages that its guests have.

What always holds: nothing of it is imported on the host. Its packages are installed once (`assay curriculum adapter
install NAME`), for guests alone, in exact versions that a file beside this one lists.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from curriculum.contract.errors import CurriculumError
from runtime.model import FrozenModel
from runtime.package_sets import set_named
from runtime.profile import PackageSet


class Adapter(NamedTuple):
    name: str
    about: str
    imports: tuple[str, ...]
    """Modules that guests have imported before their first call."""
    memory_mib: int
    """What these take."""

    @property
    def pins(self) -> tuple[str, ...]:
        """Exact versions, with everything that they need."""
        lines = Path(__file__).with_name(f"{self.name}.txt").read_text(encoding="utf-8").splitlines()
        return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))

    def installed(self) -> PackageSet | None:
        """What a sandbox asks for; None until it is installed here."""
        digest = set_named(self.name)
        return PackageSet(digest=digest, preload=self.imports, memory_mib=self.memory_mib) if digest else None

    def missing(self) -> str:
        """Why it cannot be used here, in a sentence; empty when it can."""
        if self.installed() is not None:
            return ""
        return f"its guests' packages are not installed: assay curriculum adapter install {self.name}"


_ROWS = (
    Adapter(
        "mcp",
        "servers and clients of the Model Context Protocol, over standard input and output",
        ("mcp", "mcp.server", "mcp.client.session", "anyio._backends._asyncio"),
        96,
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
    installed: str
    """The digest of its set; empty where it is not installed."""

    @classmethod
    def of(cls, adapter: Adapter) -> AdapterSummary:
        return cls(
            name=adapter.name, about=adapter.about, packages=len(adapter.pins), installed=set_named(adapter.name) or ""
        )
