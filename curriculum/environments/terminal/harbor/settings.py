"""Reads a Harbor folder's task.toml: what a terminal here reproduces, what it only names, and what it refuses. Pure.

Invariants: every known field is read, named in `notes`, or refused; an unknown one is named.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from curriculum.environments.terminal.harbor.dockerfile import HarborError

MOST_SECONDS = 600.0
MEMORY_MIB = 2_048
WITHOUT = "add --without-network to try it without: its solution, if there is one, then shows that it can be solved"
KNOWN: Mapping[str, str] = {
    "": "version schema_version task metadata source agent environment verifier solution artifacts steps "
    "multi_step_reward_strategy",
    "agent": "timeout_sec user network_mode allowed_hosts",
    "verifier": "timeout_sec user network_mode allowed_hosts env environment environment_mode collect",
    "solution": "env",
    "environment": "network_mode allowed_hosts allow_internet gpus gpu_types tpu os docker_image mcp_servers env cpus "
    "memory_mb storage_mb memory storage build_timeout_sec skills_dir workdir healthcheck",
}


class HarborSettings(NamedTuple):
    name: str
    artifacts: tuple[str, ...]
    seconds: float
    """Time limit of the test, in seconds."""
    memory_mib: int
    workdir: str
    """Working folder that replaces the Dockerfile's; empty for none."""
    healthcheck: str
    """Command that must succeed before an agent begins; empty for none."""
    collect: tuple[str, ...]
    """Commands that run in the agent's terminal before its files are taken."""
    variables: tuple[tuple[str, str], ...]
    """Variables of the terminal; `test_variables` are those of the test."""
    test_variables: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read(text: str, *, without_network: bool = False) -> HarborSettings:
    """Parses a task.toml (schema 1.0 to 1.4). Raises HarborError for a feature that is not available here."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise HarborError(f"its task.toml cannot be read: {str(error)[:100]}") from error
    notes = [
        f"its task.toml has {f'{table}.' if table else ''}{name}, which is passed over"
        for table, names in KNOWN.items()
        for name in sorted(set(_table(found, table) if table else found) - set(names.split()))
    ]
    environment, verifier, agent = (_table(found, name) for name in ("environment", "verifier", "agent"))
    _refuse(found, environment, verifier, _table(found, "solution"))
    notes += _network(environment, verifier, agent, without_network=without_network)
    for table, part in (("agent", agent), ("verifier", verifier)):
        if part.get("user") not in (None, "", "root", 0, "0"):
            notes.append(f"{table}.user is {str(part['user'])[:40]!a}: everything runs as the sandbox's ordinary user")
    if verifier.get("environment_mode") not in (None, "shared", "separate"):
        raise HarborError("verifier.environment_mode is unknown", hint='write "shared" or "separate"')
    if verifier.get("environment_mode") != "separate":
        notes.append("its test runs in a fresh sandbox with the submitted files, not in the agent's")
    memory = _number(environment, "memory_mb") or 0.0
    if memory > MEMORY_MIB:
        notes.append(f"environment.memory_mb is {memory:g}: a terminal has at most {MEMORY_MIB}")
    if environment.get("memory") or environment.get("storage"):
        notes.append("environment.memory and storage are passed over: a terminal has its own")
    return HarborSettings(
        name=str(_table(found, "task").get("name") or "")[:100],
        artifacts=_artifacts(found.get("artifacts", [])),
        seconds=min(_number(verifier, "timeout_sec") or MOST_SECONDS, MOST_SECONDS),
        memory_mib=int(min(max(memory, 1_024), MEMORY_MIB)),
        workdir=_workdir(environment),
        healthcheck=_command(environment.get("healthcheck"), "environment.healthcheck"),
        collect=_collected(verifier.get("collect", [])),
        variables=_variables(environment.get("env"), "environment.env"),
        test_variables=_variables(verifier.get("env"), "verifier.env"),
        notes=tuple(notes),
    )


def _refuse(
    found: Mapping[str, Any], environment: Mapping[str, Any], verifier: Mapping[str, Any], solution: Mapping[str, Any]
) -> None:
    if environment.get("gpus") or environment.get("gpu_types") or environment.get("tpu"):
        raise HarborError("it needs a GPU or TPU, which sandboxes do not have")
    if environment.get("os") not in (None, "", "linux"):
        raise HarborError("it needs another system than Linux")
    if environment.get("docker_image"):
        raise HarborError("it needs a prebuilt image", hint="give an environment/Dockerfile")
    if found.get("steps"):
        raise HarborError("it has several steps", hint="make a folder for each step: a task is one conversation")
    if environment.get("mcp_servers") or environment.get("skills_dir"):
        raise HarborError("it needs MCP servers or skills")
    if verifier.get("environment"):
        raise HarborError("its test needs an image of its own")
    _variables(solution.get("env"), "solution.env")


def _network(
    environment: Mapping[str, Any], verifier: Mapping[str, Any], agent: Mapping[str, Any], *, without_network: bool
) -> list[str]:
    asked = [
        *(["environment.allow_internet"] if environment.get("allow_internet") else []),
        *(
            f"{table}.{name}"
            for table, part in (("environment", environment), ("verifier", verifier), ("agent", agent))
            for name in ("network_mode", "allowed_hosts")
            if part.get(name) and part[name] != "no-network"
        ),
    ]
    if not asked:
        unset = "network_mode" not in environment and "allow_internet" not in environment
        return ["its network is unset, which means public in Harbor: there is none here"] if unset else []
    if not without_network:
        raise HarborError(f"it needs a network ({', '.join(asked)})", hint=WITHOUT)
    return [f"without the network that it asks for ({', '.join(asked)}): nothing can be fetched"]


def _variables(found: Any, what: str) -> tuple[tuple[str, str], ...]:
    if not found:
        return ()
    pairs = found.items() if isinstance(found, dict) else [("", None)]
    for name, value in pairs:
        if (
            not re.fullmatch(r"[A-Za-z_]\w{0,80}", name)
            or not isinstance(value, str | int | float)
            or "\0" in str(value)
        ):
            raise HarborError(f"{what} is not a table of variables")
        if "$" in str(value):
            raise HarborError(f"{what} needs variables from the host's environment ({name[:40]})")
    return tuple((name, str(value)) for name, value in pairs)


def _artifacts(listed: Any) -> tuple[str, ...]:
    found: list[Any] = []
    for one in listed if isinstance(listed, list) else [listed]:
        if isinstance(one, dict) and one.get("service") not in (None, "main"):
            raise HarborError("an artifact comes from another container")
        found.append(one.get("source") if isinstance(one, dict) else one)
    if not all(isinstance(one, str) for one in found):
        raise HarborError(
            "the artifacts of its task.toml are not a list of paths", hint='write artifacts = ["/app/a.txt"]'
        )
    return tuple(found)


def _collected(listed: Any) -> tuple[str, ...]:
    rows: Sequence[Any] = listed if isinstance(listed, list) else [listed]
    for row in rows:
        if isinstance(row, dict) and row.get("service") not in (None, "main"):
            raise HarborError("verifier.collect runs in another container")
    return tuple(_command(row, "verifier.collect") for row in rows)


def _command(found: Any, what: str) -> str:
    if not found:
        return ""
    command = found.get("command") if isinstance(found, dict) else found
    if not isinstance(command, str) or not command.strip() or len(command) > 4_000:
        raise HarborError(f"{what} has no command")
    return command


def _workdir(environment: Mapping[str, Any]) -> str:
    found = environment.get("workdir") or ""
    if not isinstance(found, str) or (found and not re.match(r"/[A-Za-z0-9_.][A-Za-z0-9_./-]*\Z", found)):
        raise HarborError("environment.workdir is not an absolute path")
    return found.rstrip("/")


def _number(table: Mapping[str, Any], name: str) -> float | None:
    found = table.get(name)
    usable = isinstance(found, int | float) and not isinstance(found, bool) and found > 0
    return float(min(found, 1 << 40)) if usable and found is not None else None


def _table(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = settings.get(name, {})
    if not isinstance(found, dict):
        raise HarborError(f"[{name}] of its task.toml is not a table")
    return found
