"""A table of one seam: the built-in rows, and after them those of admitted distributions.

Invariants: a name without a slash is a built-in row, so nothing from outside can take one's place; looking up a
built-in row asks no distribution; a row from outside is imported when it is read, and its object has the row's name.
"""

from __future__ import annotations

import importlib
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, TypeVar

from common.plugins.allowed import admitted, require_rights
from common.plugins.installed import REFERENCE, PluginError

T = TypeVar("T")


def names_from_outside(seam: str) -> list[str]:
    """Lists the names that admitted distributions add to a seam. Imports nothing of them."""
    return [name for plugin in admitted().values() for name in plugin.names(seam)]


def distribution_of(name: str) -> str:
    """Returns the distribution of a name from outside; empty for a built-in one."""
    return name.partition("/")[0] if "/" in name else ""


class OpenTable(UserDict[str, T]):
    """Rows of a seam by name. Iterating lists names from outside without importing them."""

    def __init__(
        self,
        seam: str,
        built_in: Mapping[str, T],
        *,
        require: Callable[[str, T], str] = lambda name, made: "",
        by_reference: bool = False,
    ) -> None:
        """`require` returns the reason why a row from outside is unusable; `by_reference` also accepts `module:object`
        of an admitted distribution as a name."""
        super().__init__(built_in)
        kinds = {type(row) for row in built_in.values()} - {FunctionType}
        self._type = kinds.pop() if len(kinds) == 1 else object
        self._seam, self._require, self._by_reference = seam, require, by_reference

    def from_outside(self) -> list[str]:
        """Lists the names that admitted distributions add. Raises PluginError for one with a built-in row's prefix."""
        names = names_from_outside(self._seam)
        if taken := [name for name in names if distribution_of(name) in self.data]:
            raise PluginError(
                f"plug-in {taken[0]}: {distribution_of(taken[0])} is a built-in row of {self._seam}",
                hint="rename the distribution",
            )
        return names

    def _reference(self, name: object) -> tuple[str, str] | None:
        """Returns distribution and `module:object` of a name from outside; None if nothing admitted has it."""
        if not isinstance(name, str):
            return None
        if self._by_reference and (parts := REFERENCE.fullmatch(name)):
            owners = (one.pin.distribution for one in admitted().values() if parts[1] in one.modules)
            return next(((owner, name) for owner in owners), None)
        if "/" not in name or name not in self.from_outside():
            return None
        distribution, _, own = name.partition("/")
        return distribution, admitted()[distribution].rows[self._seam][own]

    def __missing__(self, name: str) -> T:
        found = self._reference(name)
        if found is None:
            raise KeyError(name)
        require_rights(name)
        distribution, reference = found
        module, _, attribute = reference.partition(":")
        try:
            made: Any = getattr(importlib.import_module(module), attribute)
            called = getattr(made, "name", name)
            fits = called == name or (":" in name and distribution_of(called) == distribution)
            problem = f"its object is named {called!r}"
            if fits:
                right = isinstance(made, self._type)
                problem = self._require(name, made) if right else f"its object is not of type {self._type.__name__}"
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plug-in {name}: cannot be imported: {type(error).__name__}: {error}",
                hint=f"repair {distribution}, or sign a policy without its [[plugins]] row",
            ) from error
        if problem:
            raise PluginError(f"plug-in {name}: {problem}", hint=f"repair {distribution}: docs/extending.md")
        result: T = made
        return result

    def __contains__(self, name: object) -> bool:
        return name in self.data or self._reference(name) is not None

    def __iter__(self) -> Iterator[str]:
        yield from self.data
        yield from self.from_outside()

    def __len__(self) -> int:
        return len(self.data) + len(self.from_outside())
