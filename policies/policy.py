"""Promotion policy: one TOML file that states what is allowed. Every decision records its digest.

A file is valid as a whole or refused: unknown, missing and misspelt keys are errors with their line, so the file shows
exactly what is in force. Nothing is merged from elsewhere, and no value is converted. A file names the gates it
requests; unnamed gates do not run. Later releases read it unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, TypeAdapter, ValidationError, create_model

from common.plugins.installed import Pin
from common.plugins.table import distribution_of
from common.toml_files import MOST_BYTES, TomlError, beginning, line_of, read_toml
from policies.contract.rules import (
    DataRules,
    JobRules,
    PluginRule,
    PromotionRules,
    ResourceRules,
    SandboxRules,
    Section,
    ServiceRules,
    VerifierRules,
)
from policies.errors import PolicyError
from policies.gates import approval
from policies.gates.approval import ApprovalRules
from policies.gates.gate import AskedGates, Gate, S
from policies.gates.registry import GATES, gates_from_outside, gates_model

DEFAULT = "default_policy.toml"
"""Packaged policy, in force if a data folder has none."""

VERSION = 1
"""The only accepted `version` of a file."""

SHOWN = 12
"""Largest number of faults listed individually, about one screen."""


class Policy(Section):
    version: Literal[1]
    promotion: PromotionRules
    gates: AskedGates
    service: ServiceRules
    data: DataRules
    sandboxes: SandboxRules
    resources: ResourceRules
    jobs: JobRules
    verifiers: VerifierRules = VerifierRules()
    plugins: Annotated[tuple[PluginRule, ...], Field(strict=False, max_length=100)] = ()
    """Distributions that may add to the product. They are loaded when the daemon starts."""

    _digest: str = PrivateAttr(default="")

    @property
    def digest(self) -> str:
        """SHA-256 of the policy file's bytes, or of the JSON if the policy was not read from a file."""
        return self._digest or hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def approval(self) -> ApprovalRules:
        return self.gates[approval.GATE]

    def rules_of(self, gate: Gate[S]) -> S:
        """Returns the policy's section of a gate. Raises LookupError for a gate that the policy does not request."""
        return self.gates[gate]

    def asks_for(self, measurement: str) -> bool:
        """True if any gate of the policy needs that measurement, a field of `Measurements`."""
        return any(gate.measures == measurement for gate in self.gates.asked)


@lru_cache
def policy_model(registry: tuple[Gate[Any], ...]) -> type[Policy]:
    """Returns the type of a policy file with the registry's gates."""
    return create_model("Policy", __base__=Policy, gates=(gates_model(registry), ...))


def version_of(content: bytes) -> int | None:
    """Returns the version that a policy file names; None if absent or unreadable."""
    try:
        written = read_toml(content.decode()).get("version")
    except ValueError:
        return None
    return written if type(written) is int else None


def plugins_in(content: bytes) -> tuple[Pin, ...]:
    """Returns the distributions that a policy file admits. Imports none of them. Raises PolicyError."""
    try:
        rows = TypeAdapter(tuple[PluginRule, ...]).validate_python(
            read_toml(content.decode()).get("plugins", ()), strict=False
        )
    except ValueError as error:
        raise PolicyError("plugins: invalid rows", hint="`assay policy check` shows what is wrong") from error
    return tuple(Pin(row.distribution, row.version, row.digest) for row in rows)


def load(path: Path | None = None) -> Policy:
    """Loads a policy from a file, or the packaged one. Raises PolicyError with the line and a hint."""
    return parse(*read_content(path))


def read_content(path: Path | None = None) -> tuple[bytes, str]:
    """Returns the bytes of a policy file (or of the packaged one) and its name in messages. Raises PolicyError, also
    for a file that is not regular or too large."""
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


def parse(content: bytes, name: str, *, registry: tuple[Gate[Any], ...] = GATES, outside: bool = True) -> Policy:
    """Parses policy bytes; `name` is the file's name in messages. Raises PolicyError, also for another version.

    Without `outside`, sections of gates from other distributions are left out, and none of those is imported: such a
    policy says what may run where, and decides nothing.
    """
    _require_small(content, name)
    try:
        text = content.decode()
        data = read_toml(text)
    except UnicodeDecodeError as error:
        raise PolicyError(f"{name}: not UTF-8 at byte {error.start}", hint="save the file as UTF-8") from error
    except TomlError as error:
        raise PolicyError(f"{name}: {error}", hint="correct the TOML at that place") from error
    written = data.get("version", VERSION)
    if type(written) is not int or written != VERSION:
        raise PolicyError(
            f"{name}, line {line_of(('version',), text)}: version: unsupported version {str(written)[:20]!r}; the only "
            f"version is {VERSION}",
            hint="start from the policy in force (`assay policy show --out policy.toml`) and carry your values over",
        )
    if isinstance(gates := data.get("gates"), dict):
        added = gates_from_outside(gates) if outside else {}
        kept = {name: section for name, section in gates.items() if outside or not is_from_outside(name)}
        data["gates"] = {added[name].name if name in added else name: section for name, section in kept.items()}
        if len(data["gates"]) < len(kept):
            raise PolicyError(f"{name}: two sections of [gates] name the same gate", hint="keep one of them")
        registry = (*registry, *{gate.name: gate for gate in added.values()}.values())
    try:
        policy = policy_model(registry).model_validate(data)
    except ValidationError as error:
        raise _explained(error.errors(include_url=False), name, text, registry) from error
    if faults := [*_rule_faults(policy, outside), *_unlisted(policy)]:
        raise _explained(faults, name, text, registry)
    policy._digest = hashlib.sha256(content).hexdigest()
    return policy


def is_from_outside(gate: str) -> bool:
    """True if a gate's section names another distribution's: `DISTRIBUTION/NAME` or `module:object`."""
    return "/" in gate or ":" in gate


def _unlisted(policy: Policy) -> Iterator[dict[str, Any]]:
    """Yields a fault for each gate whose distribution the same file does not admit: it would be gone at the next
    start."""
    listed = {row.distribution for row in policy.plugins}
    for gate in policy.gates.asked:
        if is_from_outside(gate.name) and distribution_of(gate.name) not in listed:
            yield {"type": "unlisted", "loc": ("gates", gate.name), "msg": "[[plugins]] does not list its distribution"}


def _rule_faults(policy: Policy, outside: bool) -> Iterator[dict[str, Any]]:
    """Yields a fault for each promotion rule about an unknown or unrequested gate, which would protect nothing."""
    known = [gate.name for gate in policy.gates.registry]
    asked = {gate.name for gate in policy.gates.asked}
    for number, rule in enumerate(policy.promotion.rules):
        left_out = not outside and is_from_outside(rule.when)
        if rule.when not in asked and rule.when not in ("any", "all") and not left_out:
            message = f"this file does not name the gate {rule.when!r}"
            if rule.when not in known:
                message = f"unknown gate {rule.when!r}{_near(rule.when, known)}"
            yield {"type": "rule", "loc": ("promotion", "rules", number, "when"), "msg": message}


def _explained(faults: list[Any], name: str, text: str, registry: tuple[Gate[Any], ...]) -> PolicyError:
    """Returns a PolicyError that lists each fault of a policy file with key and line, and hints at the first."""
    lines = []
    for fault in faults[:SHOWN]:
        place = tuple(map(str, fault["loc"]))
        line = line_of(place, text)
        where = f"{name}, line {line}" if line else name
        lines.append(f"{where}: {'.'.join(place)}: {_message(fault, place, registry)}")
    if len(faults) > SHOWN:
        lines.append(f"and {len(faults) - SHOWN} more")
    return PolicyError("\n".join(lines), hint=_advice(faults[0]))


def _message(fault: Any, place: tuple[str, ...], registry: tuple[Gate[Any], ...]) -> str:
    if len(place) == 2 and place[0] == "gates":
        gates = {gate.name: gate for gate in registry}
        if fault["type"] == "missing":
            return f"this gate is required: {gates[place[1]].never_missing}"
        if fault["type"] == "extra_forbidden":
            if is_from_outside(place[1]):
                return "no admitted distribution has this gate"
            return f"unknown gate{_near(place[1], list(gates))}"
    messages = {"extra_forbidden": "unknown key", "missing": "missing key"}
    return messages.get(fault["type"]) or str(fault["msg"]).removeprefix("Value error, ")


def _near(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f": did you mean {close[0]!r}?" if close else ""


def _advice(fault: Any) -> str:
    *section, key = map(str, fault["loc"])
    place = f"section [{'.'.join(section)}]" if section else "the top of the file"
    if fault["type"] == "rule":
        return f"remove the rule, or add the section [gates.NAME] as in the packaged {DEFAULT}"
    if any(isinstance(part, int) for part in fault["loc"]):
        return f"write the rule like those of the packaged {DEFAULT}"
    if fault["type"] == "missing":
        added = f"the section [gates.{key}]" if section == ["gates"] else f"{key!r} to {place}"
        return f"add {added}, as in the packaged {DEFAULT}"
    if fault["type"] == "unlisted" or (section == ["gates"] and is_from_outside(key)):
        return "sign its [[plugins]] row first, restart the daemon, and then sign the section: docs/extending.md"
    if fault["type"] == "extra_forbidden":
        return f"remove {key!r} from {place}, or correct its spelling as in the packaged {DEFAULT}"
    if key == "allow_unsandboxed":
        return "set it to false: model code never runs without isolation"
    return f"correct the value of {key!r} in {place}"
