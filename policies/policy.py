"""The written policy: one TOML file that says what may go into service. Its digest stands in every decision.

A file is whole or it is refused: unknown, missing and misspelt keys are errors with their line, so that what is in
force is exactly what a person reads. Nothing is merged from elsewhere, and no value is converted on the way in.
"""

from __future__ import annotations

import hashlib
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

DEFAULT = "default_policy.toml"
"""The packaged policy, in force where a data folder has none of its own."""

UPGRADE = (
    f"to bring a file of version 1 up to date, add model_code and tools to [sandbox] and the sections [tiers] and "
    f"[tiers.families], as in the packaged {DEFAULT}, and set version = 2"
)
"""Version 1 said nothing about which isolation runs what."""


class PolicyError(Exception):
    """The policy file cannot be used; the message says where and why, and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ImprovementRules(_Section):
    min_items: int = Field(ge=1)
    min_gain: float = Field(ge=0, lt=100)
    """Points of 100."""
    alpha: float = Field(gt=0, le=0.2)
    """Two-sided."""


class NonRegressionRules(_Section):
    margin: float = Field(gt=0, lt=100)
    """Points of 100."""
    alpha: float = Field(gt=0, le=0.2)
    """One-sided."""
    min_items: int = Field(ge=1)


class IntegrityRules(_Section):
    max_infra_errors: float = Field(ge=0, le=50)
    """Percent."""
    max_age_hours: float = Field(gt=0)


class ApprovalRules(_Section):
    required: bool
    people: int = Field(ge=1, le=20)


Backend = Literal["gvisor", "nsjail"]
Tier = Literal["shared", "process", "sandbox"]
"""From the least isolation to the most; all three are in a sandbox."""


class SandboxRules(_Section):
    allow_unsandboxed: Literal[False]
    model_code: Backend
    """What may run code that a model wrote. nsjail shares the host's kernel."""
    tools: Backend
    """What runs the verifiers' own tools."""


class TierRules(_Section):
    """The least isolation of a session, by what it is for and by its family; the stricter of the two counts."""

    training: Tier
    evaluation: Tier
    jobs: Tier
    families: dict[str, Tier]


class Policy(_Section):
    version: Literal[2]
    improvement: ImprovementRules
    non_regression: NonRegressionRules
    integrity: IntegrityRules
    approval: ApprovalRules
    sandbox: SandboxRules
    tiers: TierRules

    _digest: str = PrivateAttr(default="")

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes of the file; of the canonical JSON when the policy was not read from one."""
        return self._digest or hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def load(path: Path | None = None) -> Policy:
    """The policy in that file, or the packaged one. Raises PolicyError with the line and what to do about it."""
    if path is None:
        return parse(resources.files("policies").joinpath(DEFAULT).read_bytes(), f"packaged {DEFAULT}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PolicyError(
            f"{path}: {error.strerror or error}",
            hint="check the path and its permissions; without a file of your own the packaged policy is in force",
        ) from error
    return parse(content, str(path))


def parse(content: bytes, name: str) -> Policy:
    """The policy in these bytes; `name` is what messages call the file. Raises PolicyError."""
    try:
        text = content.decode()
        data = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise PolicyError(f"{name}: not UTF-8 at byte {error.start}", hint="save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{name}: {error}", hint="correct the TOML at that place") from error
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
    for fault in faults:
        location = tuple(map(str, fault["loc"]))
        line = _line_of(location, text)
        where = f"{name}, line {line}" if line else name
        lines.append(f"{where}: {'.'.join(location)}: {_FAULTS.get(fault['type'], fault['msg'])}")
    return PolicyError("\n".join(lines), hint=_advice(faults[0]))


_FAULTS = {"extra_forbidden": "there is no such key", "missing": "this key is missing"}


def _advice(fault: Any) -> str:
    *section, key = map(str, fault["loc"])
    if (section, key, fault["input"]) == ([], "version", 1):
        return UPGRADE
    place = f"section [{'.'.join(section)}]" if section else "the top of the file"
    if fault["type"] == "missing":
        return f"add {key!r} to {place}, as in the packaged {DEFAULT}"
    if fault["type"] == "extra_forbidden":
        return f"remove {key!r} from {place}, or correct its spelling after the packaged {DEFAULT}"
    if (section, key) == (["sandbox"], "allow_unsandboxed"):
        return "set it to false: model code never runs without isolation"
    return f"correct the value of {key!r} in {place}"


def _line_of(location: tuple[str, ...], text: str) -> int | None:
    """The line of a key, or of its section's head where the key is missing; None when neither is written plainly."""
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
