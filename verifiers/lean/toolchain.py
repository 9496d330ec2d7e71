"""Finds the Lean toolchain of this machine without starting it.

Searched in this order: a folder given explicitly or in $LEAN_TOOLCHAIN; the toolchain that the project's
`lean-toolchain` file names, and then no other, because only that version reads its compiled files; the one that
`install.sh --with lean=PLACE` installed beside this environment; elan's default toolchain and its others, newest first
($ELAN_HOME or ~/.elan); `lean` on the PATH. A folder is a toolchain if it has lib/lean with the shared library and
Init.olean. $LEAN_PROJECT names a Lake project whose compiled packages can be imported too.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runtime.programs import READY, Program
from verifiers.lean.running import KERNEL, REPLAY_TOOL
from verifiers.lean.second import SecondKernel, find_second

PROGRAM = "lean"
LIBRARY = "libleanshared.so"
VERSION_AT = slice(7, 40)
"""Position of the version in the header of a compiled file of format 2."""
OWN = Path(f"{sys.prefix}-lean")
"""Folder in which install.sh puts a toolchain."""
CHANNELS = ("stable", "beta", "nightly")
REPLAY_TOOLS = ("leanchecker", "lean4checker")


@dataclass(frozen=True)
class Toolchain:
    root: Path
    source: str
    """Origin: `configured`, `install.sh`, `elan` or `PATH`."""
    version: str
    projects: tuple[Path, ...] = ()
    """Further folders with compiled files: Mathlib's and its dependencies'."""

    @property
    def compiled(self) -> Path:
        return self.root / "lib" / "lean"

    @property
    def library(self) -> Path:
        return self.compiled / LIBRARY

    @property
    def has(self) -> tuple[str, ...]:
        """Well-known Lean libraries that can be imported."""
        folders = (self.compiled, *self.projects)
        return tuple(
            name
            for name in ("Init", "Std", "Lean", "Batteries", "Aesop", "Mathlib")
            if any((folder / f"{name}.olean").is_file() for folder in folders)
        )

    @property
    def replay_tool(self) -> Path | None:
        """The toolchain's own replay program, if it has one."""
        for name in REPLAY_TOOLS:
            path = self.root / "bin" / name
            if path.is_file() and os.access(path, os.X_OK):
                return path
        return None

    def describe(self) -> dict[str, str]:
        """Describes the toolchain for people."""
        tool = self.replay_tool
        return {
            "lean": self.version,
            "from": f"{self.source}: {self.root}",
            "libraries": ", ".join(self.has),
            "replay": f"by the shared library, or else {tool.name}" if tool else "by the shared library, if it can",
        }


def find(
    configured: Path | None = None, *, projects: tuple[Path, ...] = (), environ: Mapping[str, str] | None = None
) -> Toolchain | None:
    """Finds the Lean toolchain to use, or None. An invalid configured folder gives None, without a search."""
    environ = os.environ if environ is None else environ
    wanted = ""
    if not projects and environ.get("LEAN_PROJECT"):
        project = Path(environ["LEAN_PROJECT"]).absolute()
        projects, wanted = project_folders(project), _wanted(project)
    if configured is None and environ.get("LEAN_TOOLCHAIN"):
        configured = Path(environ["LEAN_TOOLCHAIN"])
    if configured is not None:
        return _toolchain(configured, "configured", projects)
    if wanted:
        own = _toolchain(OWN, "install.sh", projects)
        if own is not None and own.version == wanted.rpartition(":")[2].removeprefix("v"):
            return own
        return _toolchain(_installed(environ) / _folder(wanted), "elan", projects)
    for root, source in _candidates(environ):
        found = _toolchain(root, source, projects)
        if found is not None:
            return found
    return None


def how_to_have_one(environ: Mapping[str, str] | None = None) -> str:
    """Returns a hint on how to install Lean, for a machine on which `find` returns None."""
    environ = os.environ if environ is None else environ
    if configured := environ.get("LEAN_TOOLCHAIN"):
        return f"LEAN_TOOLCHAIN: no Lean in {configured}: set it to a toolchain folder with lib/lean in it"
    wanted = _wanted(Path(environ["LEAN_PROJECT"])) if environ.get("LEAN_PROJECT") else ""
    if wanted:
        return f"LEAN_PROJECT needs {wanted}, which is not installed: `elan toolchain install {wanted}`"
    return "`./install.sh --with lean=PLACE`, elan, or a toolchain's folder in LEAN_TOOLCHAIN"


def missing() -> str:
    """Returns one sentence on why no proof can be checked here; empty if one can."""
    return "" if find() is not None else f"no Lean is installed: {how_to_have_one()}"


def tools(toolchain: Toolchain | None) -> dict[str, str]:
    return {"lean": toolchain.version} if toolchain else {}


def program(toolchain: Toolchain, second: SecondKernel | None = None) -> Program:
    """Returns the program that a broker must know to run Lean in a box. `second`: by default this machine's."""
    second = second or find_second()
    own = Path(__file__).resolve().parent
    tool = toolchain.replay_tool
    python = Path(sys.executable)
    libraries = {path.resolve().parent for path in toolchain.compiled.glob("*.so")}
    # The folders of this Python, without the packages of its environment.
    folders = {
        Path(sys.base_prefix), python.resolve().parent, own, own.parent / "boxes", own.parents[1] / "runtime",
        toolchain.compiled.resolve(), toolchain.compiled, *libraries, *toolchain.projects,
        *map(Path, ("/usr", "/lib", "/lib64")), *([tool.parent, tool.resolve().parent] if tool else []),
        *([second.path.parent, second.path.resolve().parent] if second else []),
    }  # fmt: skip
    return Program(
        name=PROGRAM,
        argv=(str(python.resolve()), "-I", "-B", "-S", str(own / "server.py"), str(toolchain.library), READY.hex()),
        folders=tuple(sorted(folder for folder in folders if folder.is_dir())),
        environment={
            "LEAN_PATH": ":".join(map(str, (toolchain.compiled, *toolchain.projects))),
            "LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "",
            "HOME": "/tmp",  # noqa: S108 - the box's own
            "LANG": "C.UTF-8",
        }
        | ({REPLAY_TOOL: str(tool), "PATH": str(tool.parent)} if tool else {})
        | ({KERNEL: str(second.path)} if second else {}),
        address_space=False,
        proc=True,
    )


def project_folders(project: Path) -> tuple[Path, ...]:
    """Returns the folders with compiled files of a Lake project: its own and its packages'."""
    built = (".lake", "build", "lib")
    roots = [project, *sorted((project / ".lake" / "packages").glob("*"))]
    found = [folder for root in roots for folder in (root.joinpath(*built, "lean"), root.joinpath(*built))]
    return tuple(folder for folder in found if any(folder.glob("*.olean")))


def _toolchain(root: Path, source: str, projects: tuple[Path, ...]) -> Toolchain | None:
    root = Path(os.path.normpath(root.expanduser().absolute()))  # mounts do not accept `..`
    first = root / "lib" / "lean" / "Init.olean"
    if not first.is_file() or not (root / "lib" / "lean" / LIBRARY).exists():
        return None
    return Toolchain(root, source, _version(root, first), projects)


def _version(root: Path, olean: Path) -> str:
    with olean.open("rb") as file:
        header = file.read(64)
    if header[:6] == b"olean\x02":
        return header[VERSION_AT].split(b"\0")[0].decode("ascii", "replace")
    found = re.search(r"v?(\d+\.\d+\.\d+\S*)", root.name)
    return found[1] if found else "unknown"


def _wanted(project: Path) -> str:
    """Returns the Lean version that a project's file `lean-toolchain` pins. Empty without the file, or for a channel
    such as `stable`."""
    try:
        named = (project / "lean-toolchain").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return "" if named.rpartition(":")[2] in CHANNELS else named


def _folder(name: str) -> str:
    """Returns elan's folder for a toolchain name: `leanprover/lean4:v4.9.0`, `v4.9.0`, or a linked one."""
    if re.match(r"v?\d+\.\d", name):
        name = f"leanprover/lean4:v{name.removeprefix('v')}"
    return name.replace("/", "--").replace(":", "---")


def _installed(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("ELAN_HOME") or Path(environ.get("HOME", "/")) / ".elan") / "toolchains"


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    yield OWN, "install.sh"
    installed = _installed(environ)
    settings = installed.parent / "settings.toml"
    if settings.is_file():
        named = re.search(r'^default_toolchain\s*=\s*"([^"]+)"', settings.read_text(errors="replace"), re.MULTILINE)
        if named:
            yield installed / _folder(named[1]), "elan"
    if installed.is_dir():
        for root in sorted(installed.iterdir(), key=_order, reverse=True):
            yield root, "elan"
    lean = shutil.which("lean", path=environ.get("PATH", ""))
    if lean is not None:
        yield Path(lean).resolve().parent.parent, "PATH"


def _order(root: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", root.name.rpartition("---")[2])]
