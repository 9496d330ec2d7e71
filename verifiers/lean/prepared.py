"""Cache of compiled statements, shared by any number of submissions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.lean.boxes import LeanUnavailable, Role
from verifiers.lean.reading.lexer import plain
from verifiers.lean.second import ALLOWED_AXIOMS
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import CHECK, HINT, STATEMENT, LeanStatement
from verifiers.lean.steps import Ran, header, step, without_imports

SECONDS = 120.0
USUAL_HEARTBEATS = 200_000
MOST_KEPT = 256


@dataclass(frozen=True)
class PreparedStatement:
    shared: dict[str, str]
    """Compiled definitions, if any, in base64: visible to the submission's compilation."""
    trusted: dict[str, str]
    """Compiled whole statement, in base64: visible to the check instead."""
    check_file: str
    wanted: str
    """Full name of the theorem as compiled files write it."""


def trusted_options(spec: LeanSpec) -> list[str]:
    """Returns Lean's options for our own files: a spec may raise the usual number of heartbeats, not lower it."""
    return [f"-DmaxHeartbeats={max(spec.heartbeats, USUAL_HEARTBEATS)}"]


class Preparer:
    def __init__(
        self, mark: str, ask: Callable[[Role, dict[str, Any]], tuple[Ran, str]], warm: Callable[[], bool]
    ) -> None:
        """Creates a cache of compiled statements. `ask` runs a Lean step; `warm()` is True if boxes preimport
        headers."""
        self._mark = mark
        self._ask = ask
        self._warm = warm
        self._cache: OrderedDict[tuple[str, int], PreparedStatement] = OrderedDict()
        self._lock = threading.Lock()

    def prepared(self, spec: LeanSpec, statement: LeanStatement) -> PreparedStatement:
        """Returns a spec's compiled statement, from the cache if possible. Raises SpecError if it does not compile or
        depends on `sorry`; LeanUnavailable, BoxLost."""
        key = spec.statement, spec.heartbeats
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        made = self._prepare(spec, statement)
        with self._lock:
            self._cache[key] = made
            while len(self._cache) > MOST_KEPT:
                self._cache.popitem(last=False)
        return made

    def _prepare(self, spec: LeanSpec, statement: LeanStatement) -> PreparedStatement:
        limits = {"seconds": SECONDS, "memory_mib": spec.memory_mib, "options": trusted_options(spec)}
        hidden = partial(statement.unmarked, mark=self._mark)
        trusted = self._compiled(statement, statement.trusted_file(self._mark), limits)
        source = statement.rest_file(self._mark)
        ran = self._warmly(statement, CHECK, without_imports(source, [STATEMENT]), limits | {"files": trusted})
        if ran is None:
            ran, _ = self._ask("check", step(CHECK, source, **limits, files=trusted))
            _must_compile(ran, "the statement cannot be restated", hidden)
        axioms = ran.axioms_of(f"{self._mark}.check")
        if axioms is None or not axioms <= ALLOWED_AXIOMS:
            named = escaped(", ".join(sorted(axioms or ())))
            raise SpecError(
                f"the statement depends on {named or 'unknown axioms'}", hint="Use `sorry` only as its proof."
            )
        shared: dict[str, str] = {}
        if statement.defines:
            shared = self._compiled(statement, statement.definitions_file(), limits)
        return PreparedStatement(
            shared=shared,
            trusted=trusted,
            check_file=statement.check_file(self._mark),
            wanted=plain(statement.full_name),
        )

    def _compiled(self, statement: LeanStatement, source: str, limits: dict[str, Any]) -> dict[str, str]:
        """Compiles a statement's module, and returns its files by name. Raises SpecError, LeanUnavailable, BoxLost."""
        ran = self._warmly(statement, STATEMENT, without_imports(source, statement.imports), limits)
        if ran is None:
            ran, _ = self._ask("check", step(STATEMENT, source, **limits, keep=True))
            _must_compile(ran, "the statement does not compile", partial(statement.unmarked, mark=self._mark))
        assert ran.file is not None  # it compiled
        return {f"{STATEMENT}.olean": ran.file}

    def _warmly(self, statement: LeanStatement, module: str, source: str, limits: dict[str, Any]) -> Ran | None:
        """Runs a Lean step on preimported modules with the statement's files, if any. Returns None for anything but
        success; the caller then runs it cold."""
        modules = header(statement.imports)
        if modules is None or not self._warm():
            return None
        added = list(limits.get("files", ()))
        message = step(module, source, header=modules, add=added, keep=not added, **limits)
        ran, _ = self._ask("check", message)
        return ran if ran.compiled else None


def _must_compile(ran: Ran, what: str, hidden: Callable[[str], str]) -> None:
    """Raises SpecError if Lean reported errors, LeanUnavailable if it failed in another way. `hidden` removes the mark
    from Lean's message."""
    if ran.compiled:
        return
    if ran.starved or ran.ended in ("signal", "timeout", "memory", "output") or not ran.errors:
        raise LeanUnavailable(f"{what}: Lean ended with {ran.ended} {ran.code}: {escaped(ran.err)}")
    first = ran.errors[0]
    raise SpecError(f"{what}: {escaped(hidden(first.text))}", hint=HINT)
