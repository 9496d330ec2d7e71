"""Result of one run of Lean, as its box reports it, with its interpretation."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from verifiers.lean.running import KEPT_OUTPUT

NO_THREADS = re.compile(r"failed to create thread|Resource temporarily unavailable|thread constructor failed")
STACK = re.compile(r"Stack overflow detected|stack overflow|deep recursion", re.IGNORECASE)
AXIOMS = re.compile(r"'(?P<name>[^']*)' depends on axioms: \[(?P<axioms>[^\]]*)\]\s*\Z")
MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_']*(?:\.[A-Za-z_][A-Za-z0-9_']*)*\Z")
NO_AXIOMS = re.compile(r"'(?P<name>[^']*)' does not depend on any axioms\s*\Z")


@dataclass(frozen=True)
class LeanMessage:
    severity: str
    text: str
    line: int
    column: int


class Ran(BaseModel):
    """The Lean server's answer for a step. Hostile, so parsed strictly."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ended: str
    code: int
    seconds: float
    cpu: float
    peak_mib: float
    out: str
    err: str
    file: str | None = None
    """Compiled file, in base64."""
    declared: int = 0
    has: bool = False
    alike: list[str] = []
    axioms: list[str] = []
    """Declared names that are axioms."""
    reserved: list[str] = []
    """Declared names that the kernel treats as its own."""
    replayed: str | None = None
    exported: bool = False
    """True if a second kernel received the export."""

    @property
    def messages(self) -> list[LeanMessage]:
        """Lean's messages in order, without a truncated last line."""
        found = []
        for line in self.out.splitlines():
            try:
                message = json.loads(line)
                at = message.get("pos") or {}
                found.append(
                    LeanMessage(message["severity"], message["data"], int(at.get("line", 0)), int(at.get("column", 0)))
                )
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        return found

    @property
    def errors(self) -> list[LeanMessage]:
        return [message for message in self.messages if message.severity == "error"]

    @property
    def compiled(self) -> bool:
        return self.ended == "exited" and self.code == 0 and not self.errors

    @property
    def refused(self) -> bool:
        """True if Lean finished and reported errors."""
        return self.ended == "exited" and self.code == 1 and bool(self.errors) and not self.starved

    @property
    def settled(self) -> bool:
        """True if a result with preimported modules is as good as one without."""
        return self.ended in ("timeout", "memory", "output", "altered") or self.compiled or self.refused

    @property
    def starved(self) -> bool:
        """True if Lean failed for lack of threads, which is never the submission's fault."""
        texts = (self.err, *(line for line in self.out[:10_000].splitlines() if not line.startswith("{")))
        return any(NO_THREADS.search(text) for text in texts)  # not in a message: those repeat the submission's words

    @property
    def cut(self) -> bool:
        """True if Lean's output was truncated, so errors may be missing."""
        return len(self.out.encode()) >= KEPT_OUTPUT

    @property
    def gave_up(self) -> bool:
        """True if Lean's runtime aborted on an oversized number (lean_internal_panic)."""
        return self.ended == "exited" and self.code == 1 and "INTERNAL PANIC: " in self.err

    @property
    def too_deep(self) -> bool:
        return self.ended in ("signal", "exited") and STACK.search(self.err) is not None

    @property
    def broke_off(self) -> bool:
        """True if Lean ended abnormally without an explanation."""
        explained = self.starved or self.gave_up or self.too_deep or self.cut or self.errors
        abnormal = self.ended == "signal" or (self.ended == "exited" and self.code != 0)
        return abnormal and not explained

    def axioms_of(self, name: str) -> frozenset[str] | None:
        """Returns the axioms that `#print axioms` reported; None unless it did so once and in a known form."""
        hits = [match for message in self.messages if message.severity == "information" and (match := _axioms(message))]
        if len(hits) != 1 or hits[0]["name"] != name:
            return None
        listed = hits[0].groupdict().get("axioms")
        return frozenset() if listed is None else frozenset(part.strip() for part in listed.split(","))


def _axioms(message: LeanMessage) -> re.Match[str] | None:
    return NO_AXIOMS.match(message.text) or AXIOMS.match(message.text)


def header(modules: Sequence[str]) -> list[str] | None:
    """Returns the modules to preimport for a Lean step, each once; None if a name is not plain."""
    plain = all(MODULE.match(module) for module in modules)
    return list(dict.fromkeys(modules)) if plain else None


def without_imports(source: str, modules: Sequence[str]) -> str:
    """Replaces a source's leading import lines, one per module, by empty lines."""
    return "\n" * len(modules) + source.split("\n", len(modules))[-1]


def step(module: str, source: str, **rest: Any) -> dict[str, Any]:
    """Returns the message that asks the Lean server for a step."""
    return {"do": "step", "module": module, "source": source, **rest}
