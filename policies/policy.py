"""The written policy: one TOML file that says what may happen. Its digest stands in every decision.

A file is whole or it is refused: unknown, missing and misspelt keys are errors with their line, so that what is in
force is exactly what a person reads. Nothing is merged from elsewhere, and no value is converted on the way in.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import PrivateAttr, ValidationError

from policies.rules import DataRules, JobRules, PromotionRules, ResourceRules, SandboxRules, Section, ServiceRules
from policies.toml_files import MOST_BYTES, TomlError, beginning, read_toml

DEFAULT = "default_policy.toml"
"""The packaged policy, in force where a data folder has none of its own."""

UPGRADES = {
    1: f"begin with a copy of the packaged {DEFAULT} and carry your values over: the gates are now below [promotion] "
    "([improvement] is [promotion.improvement]), [sandbox] is [sandboxes] and [tiers] is [sandboxes.tiers]",
    3: f"begin with a copy of the packaged {DEFAULT} and carry your values over, or add what is new from there: the "
    'section [service], the keys of [data], and the rule on the gate "service"',
}
"""For files of earlier versions, which said nothing about some of what is ruled now."""
UPGRADES[2] = UPGRADES[1]

SHOWN = 12
"""Faults that are told one by one: they fit on a screen."""


class PolicyError(Exception):
    """The policy file cannot be used; the message says where and why, and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Policy(Section):
    version: Literal[4]
    promotion: PromotionRules
    service: ServiceRules
    data: DataRules
    sandboxes: SandboxRules
    resources: ResourceRules
    jobs: JobRules

    _digest: str = PrivateAttr(default="")

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes of the file; of the canonical JSON when the policy was not read from one."""
        return self._digest or hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def earlier_version(content: bytes) -> int | None:
    """Of a file of a version that is not read any more: which; None for every other file."""
    try:
        written = read_toml(content.decode()).get("version")
    except ValueError:
        return None
    return written if type(written) is int and written in UPGRADES else None


def load(path: Path | None = None) -> Policy:
    """The policy in that file, or the packaged one. Raises PolicyError with the line and what to do about it."""
    return parse(*read_content(path))


def read_content(path: Path | None = None) -> tuple[bytes, str]:
    """The bytes of that file, or of the packaged one, and what messages call it. Raises PolicyError, also for what is
    no regular file, or too large."""
    if path is None:
        return resources.files("policies").joinpath(DEFAULT).read_bytes(), f"packaged {DEFAULT}"
    try:
        content = beginning(path, MOST_BYTES)
    except OSError as error:
        raise PolicyError(
            f"{path}: {error.strerror or error}",
            hint="check the path and its permissions; without a file of your own the packaged policy is in force",
        ) from error
    _require_small(content, str(path))
    return content, str(path)


def _require_small(content: bytes, name: str) -> None:
    if len(content) > MOST_BYTES:
        raise PolicyError(
            f"{name}: larger than {MOST_BYTES} bytes", hint=f"begin with a copy of the packaged {DEFAULT}"
        )


def parse(content: bytes, name: str) -> Policy:
    """The policy in these bytes; `name` is what messages call the file. Raises PolicyError."""
    _require_small(content, name)
    try:
        text = content.decode()
        data = read_toml(text)
    except UnicodeDecodeError as error:
        raise PolicyError(f"{name}: not UTF-8 at byte {error.start}", hint="save the file as UTF-8") from error
    except TomlError as error:
        raise PolicyError(f"{name}: {error}", hint="correct the TOML at that place") from error
    written = earlier_version(content)
    if written is not None:
        where = f"{name}, line {_line_of(('version',), text)}"
        raise PolicyError(f"{where}: version: a file of version {written} is not read any more", hint=UPGRADES[written])
    try:
        policy = Policy.model_validate(data)
    except ValidationError as error:
        raise _explained(error, name, text) from error
    policy._digest = hashlib.sha256(content).hexdigest()
    return policy


def _explained(error: ValidationError, name: str, text: str) -> PolicyError:
    """Says each fault with its key and line, and what to do about the first."""
    faults = error.errors(include_url=False)
    lines = []
    for fault in faults[:SHOWN]:
        line = _line_of(tuple(map(str, fault["loc"])), text)
        where = f"{name}, line {line}" if line else name
        said = _FAULTS.get(fault["type"], fault["msg"].removeprefix("Value error, "))
        lines.append(f"{where}: {'.'.join(map(str, fault['loc']))}: {said}")
    if len(faults) > SHOWN:
        lines.append(f"and {len(faults) - SHOWN} more")
    return PolicyError("\n".join(lines), hint=_advice(faults[0]))


_FAULTS = {"extra_forbidden": "there is no such key", "missing": "this key is missing"}


def _advice(fault: Any) -> str:
    *section, key = map(str, fault["loc"])
    place = f"section [{'.'.join(section)}]" if section else "the top of the file"
    if any(isinstance(part, int) for part in fault["loc"]):
        return f"write the rule after those of the packaged {DEFAULT}"
    if fault["type"] == "missing":
        return f"add {key!r} to {place}, as in the packaged {DEFAULT}"
    if fault["type"] == "extra_forbidden":
        return f"remove {key!r} from {place}, or correct its spelling after the packaged {DEFAULT}"
    if key == "allow_unsandboxed":
        return "set it to false: model code never runs without isolation"
    return f"correct the value of {key!r} in {place}"


def _line_of(location: tuple[str, ...], text: str) -> int | None:
    """The line of a key or of a list's entry, or of its section's head where the key is missing; None when neither is
    written plainly, one entry a line."""
    numbers = [place for place, part in enumerate(location) if part.isdigit()]
    if numbers:
        above = _line_of(location[: numbers[0]], text)
        entry = int(location[numbers[0]])
        lines = text.splitlines()[above or 0 :]
        rows = [number for number, line in enumerate(lines, start=(above or 0) + 1) if line.strip().startswith("{")]
        return rows[entry] if above is not None and entry < len(rows) else above
    section: tuple[str, ...] = ()
    head: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.split("#")[0].strip()
        if stripped.startswith("["):
            section = tuple(part.strip() for part in stripped.strip("[]").split("."))
            if section == location:
                return number
            if section == location[:-1]:
                head = number
        elif "=" in stripped and (*section, stripped.split("=")[0].strip().strip("\"'")) == location:
            return number
    return head
