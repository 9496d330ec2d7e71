"""One run of Lean as its box tells of it, and what it means."""

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
    """What the server answers for a step. Hostile, and so read strictly."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ended: str
    code: int
    seconds: float
    cpu: float
    peak_mib: float
    out: str
    err: str
    file: str | None = None
    """The compiled file, in base64."""
    declared: int = 0
    has: bool = False
    alike: list[str] = []
    axioms: list[str] = []
    """Those of the declared names that are axioms."""
    reserved: list[str] = []
    """Declared names that the kernel takes for its own."""
    replayed: str | None = None

    @property
    def messages(self) -> list[LeanMessage]:
        """What Lean said, in order; the last line is left out when it was cut."""
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
        """Whether Lean came to its end and found errors."""
        return self.ended == "exited" and self.code == 1 and bool(self.errors) and not self.starved

    @property
    def settled(self) -> bool:
        """Whether a step with a header that was imported beforehand says as much as one without would."""
        return self.ended in ("timeout", "memory", "output", "altered") or self.compiled or self.refused

    @property
    def starved(self) -> bool:
        """Whether it could not work for want of threads: nothing that a submission is to blame for."""
        texts = (self.err, *(line for line in self.out[:10_000].splitlines() if not line.startswith("{")))
        return any(NO_THREADS.search(text) for text in texts)  # not in a message: those repeat the submission's words

    @property
    def cut(self) -> bool:
        """Whether it said more than was kept, so that its errors may be among what was not."""
        return len(self.out.encode()) >= KEPT_OUTPUT

    @property
    def gave_up(self) -> bool:
        """Whether its own runtime ended it, over a number that it cannot hold (lean_internal_panic)."""
        return self.ended == "exited" and self.code == 1 and "INTERNAL PANIC: " in self.err

    @property
    def too_deep(self) -> bool:
        return self.ended in ("signal", "exited") and STACK.search(self.err) is not None

    @property
    def broke_off(self) -> bool:
        """Whether it ended as Lean does not end by itself, and says nothing that explains it."""
        explained = self.starved or self.gave_up or self.too_deep or self.cut or self.errors
        abnormal = self.ended == "signal" or (self.ended == "exited" and self.code != 0)
        return abnormal and not explained

    def axioms_of(self, name: str) -> frozenset[str] | None:
        """What `#print axioms` said of it, when it said that once and in a form that is known; else None."""
        hits = [match for message in self.messages if message.severity == "information" and (match := _axioms(message))]
        if len(hits) != 1 or hits[0]["name"] != name:
            return None
        listed = hits[0].groupdict().get("axioms")
        return frozenset() if listed is None else frozenset(part.strip() for part in listed.split(","))


def _axioms(message: LeanMessage) -> re.Match[str] | None:
    return NO_AXIOMS.match(message.text) or AXIOMS.match(message.text)


def header(modules: Sequence[str]) -> list[str] | None:
    """What a step with these modules imported beforehand is asked for; None where a name is no plain one."""
    plain = all(MODULE.match(module) for module in modules)
    return list(dict.fromkeys(modules)) if plain else None


def without_imports(source: str, modules: Sequence[str]) -> str:
    """A source that begins with a line for each of these imports, with empty lines in their place."""
    return "\n" * len(modules) + source.split("\n", len(modules))[-1]


def step(module: str, source: str, **rest: Any) -> dict[str, Any]:
    """The message that asks for a step."""
    return {"do": "step", "module": module, "source": source, **rest}
