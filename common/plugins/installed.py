"""Reads an installed distribution that adds to the product: version, digest, modules and entry points.

Nothing is imported. The digest covers path and SHA-256 of every file that came with the distribution, so it is equal
on every machine with the same wheel: files that an installer writes (RECORD, INSTALLER, scripts, bytecode) are left
out. Each hash is compared with the file on disk. Every command loads this module, so it loads little itself.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import machinery
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from common.errors import HintedError, reason

if TYPE_CHECKING:
    from importlib import metadata

SEAMS = ("kinds", "tasksets", "environments", "objectives", "gates", "engines", "solvers", "screens", "adapters")
"""Seams of the product; the entry-point group of each is `assay.SEAM`."""
GROUP = "assay."
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
DISTRIBUTION = "[a-z0-9]+(-[a-z0-9]+)*"
"""Pattern of a distribution's name in normal form."""
VERSION = "[0-9A-Za-z.+!_-]{1,100}"
"""Pattern of its version: neither can add a row to an allow-list or a policy."""
REFERENCE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)", re.ASCII)
RESERVED = frozenset({"own", "appliance", "assay", "common", "curriculum", "policies", "runtime", "tui", "verifiers"})
"""Names of the product's own packages, and the prefix of an owner's tasksets."""
WRITTEN_BY_INSTALLERS = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
REINSTALL = "install the distribution again, as a wheel: `pip install --force-reinstall`"


class PluginError(HintedError):
    """A plug-in that may not, or cannot, be loaded."""

    exit_code = 4


class Pin(NamedTuple):
    """One exact distribution: a row of the allow-list."""

    distribution: str
    """Name in normal form: lower case, with dashes."""
    version: str
    digest: str
    """`digest_of` its files, in hex."""

    def __str__(self) -> str:
        return f"{self.distribution}=={self.version}@{self.digest}"


class RecordedFile(NamedTuple):
    path: Path
    sha256: bytes


@dataclass(frozen=True)
class Plugin:
    """An installed distribution whose files are those that its RECORD names."""

    pin: Pin
    rows: Mapping[str, Mapping[str, str]]
    """`module:object` by name, for each seam."""
    modules: Mapping[str, RecordedFile] = field(repr=False)
    """Files of its modules, by dotted name."""

    def names(self, seam: str) -> list[str]:
        return [f"{self.pin.distribution}/{name}" for name in self.rows.get(seam, ())]


def normal_name(name: str) -> str:
    """Returns the normal form of a distribution's name (PyPA, name normalization)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def candidates() -> list[str]:
    """Lists the installed distributions with an entry point of the product, by name, readable or not."""
    from importlib import metadata  # slow to load, and most commands list no plug-in

    found = set()
    for one in metadata.distributions():
        if isinstance(one, metadata.PathDistribution):
            folder = Path(str(one._path))
            with suppress(OSError):
                if f"[{GROUP}".encode() in (folder / "entry_points.txt").read_bytes():
                    found.add(normal_name(folder.name.rpartition(".")[0].partition("-")[0]))
    return sorted(found)


def read_plugin(name: str) -> Plugin:
    """Reads an installed distribution and compares its files with their hashes. Raises PluginError, also for one whose
    files cannot be vouched for."""
    from importlib import metadata

    try:
        distribution = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise PluginError(
            f"plug-in {name}: not installed", hint="install it; or sign a policy without its [[plugins]] row"
        ) from None
    try:
        return _read(name, distribution)
    except PluginError:
        raise
    except Exception as error:  # anybody wrote these files: whatever they break is a refusal
        raise PluginError(f"plug-in {name} cannot be read: {reason(error)}", hint=REINSTALL) from error


def _read(name: str, distribution: metadata.Distribution) -> Plugin:
    import hashlib

    record = _record(name, distribution)
    digest = hashlib.sha256()
    for path, (file, sha256) in sorted(record.items()):
        if hashlib.sha256(file.read_bytes()).digest() != sha256:
            raise PluginError(f"plug-in {name}: {path} differs from its RECORD", hint=REINSTALL)
        if not path.startswith("../") and not _is_installers(path):
            digest.update(f"{sha256.hex()} {path}\n".encode())
    modules = _modules(record)
    packages = {module.partition(".")[0] for module in modules}
    taken = sorted(packages & (RESERVED | sys.stdlib_module_names))
    if taken or name in RESERVED:
        raise PluginError(f"plug-in {name}: the name {taken[0] if taken else name} is taken", hint="rename its package")
    if shared := sorted(packages - modules.keys()):
        raise PluginError(f"plug-in {name}: its package {shared[0]} has no __init__.py", hint="add it to the wheel")
    modules = {module: file for module, file in modules.items() if all(one in modules for one in _above(module))}
    pin = Pin(name, distribution.version, digest.hexdigest())
    if not re.fullmatch(DISTRIBUTION, name) or not re.fullmatch(VERSION, pin.version):
        raise PluginError(f"plug-in {name}: invalid name or version ({pin.version[:100]!a})", hint=REINSTALL)
    return Plugin(pin, _rows(name, distribution, modules), modules)


def _record(name: str, distribution: metadata.Distribution) -> dict[str, RecordedFile]:
    """Returns the files of a distribution with their recorded hashes, by path in its RECORD."""
    import base64
    import csv

    text, origin = distribution.read_text("RECORD"), json.loads(distribution.read_text("direct_url.json") or "{}")
    if text is None or origin.get("dir_info", {}).get("editable"):
        what = "no RECORD of its files" if text is None else "an editable installation"
        raise PluginError(f"plug-in {name}: {what}", hint=REINSTALL)
    root, prefix = Path(str(distribution.locate_file(""))), Path(sys.prefix).resolve()
    if not root.resolve().is_relative_to(prefix):
        raise PluginError(
            f"plug-in {name}: installed outside this Python's folder ({root})",
            hint=f"install it with {sys.executable} -m pip: verifiers see only {sys.prefix}",
        )
    found: dict[str, RecordedFile] = {}
    for path, hashed, _ in csv.reader(text.splitlines()):
        if path.endswith(".pth"):
            raise PluginError(f"plug-in {name}: {path} would run in every process", hint="remove it from the wheel")
        algorithm, _, value = hashed.partition("=")
        if algorithm == "sha256":
            found[path] = RecordedFile(root / path, base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))
            if not Path(os.path.normpath(root.resolve() / path)).is_relative_to(prefix):
                raise PluginError(f"plug-in {name}: {path} is outside this Python's folder", hint=REINSTALL)
            if (root / path).exists() and not (root / path).is_file():
                raise PluginError(f"plug-in {name}: {path} is not a regular file", hint=REINSTALL)
        elif not path.endswith(".pyc") and not _is_installers(path):
            raise PluginError(f"plug-in {name}: no SHA-256 of {path} in its RECORD", hint=REINSTALL)
    info = getattr(distribution, "_path", root).name
    for own in ("METADATA", "entry_points.txt"):
        if distribution.read_text(own) is not None and f"{info}/{own}" not in found:
            raise PluginError(f"plug-in {name}: no SHA-256 of {info}/{own} in its RECORD", hint=REINSTALL)
    return found


def _is_installers(path: str) -> bool:
    parts = PurePosixPath(path)
    return parts.name in WRITTEN_BY_INSTALLERS and parts.parent.name.endswith(".dist-info")


def _modules(record: Mapping[str, RecordedFile]) -> dict[str, RecordedFile]:
    found: dict[str, RecordedFile] = {}
    for path, file in record.items():
        suffix = next((one for one in (*machinery.EXTENSION_SUFFIXES, ".py") if path.endswith(one)), "")
        parts = path.removesuffix(suffix).split("/")
        if suffix and all(part.isidentifier() for part in parts):
            found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = file
    return found


def _above(module: str) -> Iterator[str]:
    """Yields the packages that a module is in. Without an `__init__.py` of its own, any distribution could add one."""
    return (module[:place] for place, mark in enumerate(module) if mark == ".")


def _rows(
    name: str, distribution: metadata.Distribution, modules: Mapping[str, RecordedFile]
) -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    for point in distribution.entry_points:
        if not point.group.startswith(GROUP):
            continue
        seam, reference = point.group.removeprefix(GROUP), REFERENCE.fullmatch(point.value)
        if seam not in SEAMS:
            raise PluginError(
                f"plug-in {name}: unknown entry-point group {point.group!r}",
                hint=f"use one of {', '.join(GROUP + one for one in SEAMS)}",
            )
        if not NAME.fullmatch(point.name) or reference is None or reference[1] not in modules:
            raise PluginError(
                f"plug-in {name}: invalid entry point {point.name!r} of {point.group}",
                hint='write `name = "module:object"`: a name in lower case, and a module of the distribution itself',
            )
        rows.setdefault(seam, {})[point.name] = point.value
    return rows
