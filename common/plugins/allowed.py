"""The allow-list of this process and its children, and the distributions that it admits.

Invariants: the list is the environment variable `ASSAY_PLUGINS`, so a child process has its parent's; the daemon sets
it from the policy in force. A listed distribution that is missing, altered or of another version admits nothing at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from common.plugins.installed import Pin, Plugin, PluginError, read_plugin

VARIABLE = "ASSAY_PLUGINS"
"""Environment variable with the allow-list: `DISTRIBUTION==VERSION@DIGEST`, separated by spaces."""
NO_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "__all__", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
"""Environment in which our libraries do not import what any distribution names as their plug-in."""
_ROW = re.compile(r"([a-z0-9-]+)==([^\s@]+)@([0-9a-f]{64})")
_source: Callable[[], Iterable[Pin]] | None = None
_rootless = False


def written(pins: Iterable[Pin]) -> str:
    """Returns the value of `VARIABLE` for an allow-list."""
    return " ".join(map(str, pins))


def allow(pins: Iterable[Pin]) -> None:
    """Sets the allow-list of this process and its future children; what it admits is checked anew. Imports nothing."""
    global _source  # noqa: PLW0603 - the allow-list belongs to the process
    _source = None
    _admitted.cache_clear()
    os.environ[VARIABLE] = written(pins)


def allow_when_needed(source: Callable[[], Iterable[Pin]]) -> None:
    """Sets the allow-list to `source()` when it is needed first, instead of the inherited one."""
    global _source  # noqa: PLW0603
    _source = source
    os.environ.pop(VARIABLE, None)


def refuse_as_root() -> None:
    """Makes this process load no plug-in before it has given up root's rights, which it holds for another user."""
    global _rootless  # noqa: PLW0603
    _rootless = True


def require_rights(name: str) -> None:
    """Raises PluginError if loading a plug-in would give it rights that are not the daemon's."""
    if _rootless and os.geteuid() == 0:
        raise PluginError(
            f"plug-in {name}: not loaded as root for the user of service.user",
            hint="start the daemon as that user, and `assay broker` as root: docs/operate.md",
        )


def listed() -> str:
    """Returns the allow-list in force, as `VARIABLE` has it. Raises what its source raises."""
    if _source is not None:
        allow(_source())
    return os.environ.get(VARIABLE, "")


def admitted() -> Mapping[str, Plugin]:
    """Returns the distributions that the allow-list admits, by name. Raises PluginError if one of them does not fit."""
    return _admitted(listed())


def pins() -> list[Pin]:
    """Returns the rows of the allow-list, whether or not they are installed. Raises PluginError for an invalid one."""
    return _pins(listed())


def _pins(rows: str) -> list[Pin]:
    found = []
    for row in rows.split():
        fields = _ROW.fullmatch(row)
        if fields is None:
            raise PluginError(f"{VARIABLE}: invalid row {row[:120]!a}", hint=f"unset {VARIABLE}")
        found.append(Pin(*fields.groups()))
    return found


@lru_cache(maxsize=1)
def _admitted(rows: str) -> Mapping[str, Plugin]:
    from common.plugins import importing

    found = {pin.distribution: _checked(pin) for pin in _pins(rows)}
    importing.replace_modules({name: file for plugin in found.values() for name, file in plugin.modules.items()})
    return MappingProxyType(found)


def _checked(pin: Pin) -> Plugin:
    plugin, name = read_plugin(pin.distribution), pin.distribution
    if plugin.pin == pin:
        return plugin
    what = f"version {plugin.pin.version} is installed, and {pin.version} is admitted"
    if plugin.pin.version == pin.version:
        what = f"its files have the digest {plugin.pin.digest[:12]}, and {pin.digest[:12]} is admitted"
    raise PluginError(
        f"plug-in {name}: {what}",
        hint=f"install the admitted one; or certify it (`assay plugins certify {name}`) and sign its row",
    )
