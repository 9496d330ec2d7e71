"""Reads a Harbor folder's task.toml (schema 1.0 to 1.4): what a terminal here reproduces, and what it refuses. Pure.

Invariants: every field is honoured, or named in `notes` where it makes no difference to a result here, or refused by
name; so is a field that the schema does not have.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from curriculum.environments.terminal.harbor.dockerfile import HarborError

MOST_SECONDS = 600.0
MEMORY_MIB, PROCESSORS, STORAGE_MIB = 4_096, 1, 10_240
"""Largest requests of a task. The storage is Harbor's default, which tasks state without a need for it."""
WITHOUT = "add --without-network to try it without: its solution, if there is one, then shows that it can be solved"
LOWER = "lower it in task.toml if the task works with less"
KNOWN: Mapping[str, str] = {
    "": "version schema_version task metadata source agent environment verifier solution artifacts steps "
    "multi_step_reward_strategy",
    "task": "name version description authors keywords",
    "agent": "timeout_sec user network_mode allowed_hosts",
    "verifier": "timeout_sec user network_mode allowed_hosts env environment environment_mode collect",
    "solution": "env",
    "environment": "network_mode allowed_hosts allow_internet gpus gpu_types tpu os docker_image mcp_servers env cpus "
    "memory_mb storage_mb memory storage build_timeout_sec skills_dir workdir healthcheck",
    "environment.healthcheck": "command interval_sec timeout_sec start_period_sec start_interval_sec retries",
    "verifier.collect": "command service timeout_sec user",
    "artifacts": "source destination exclude service",
}


class HarborSettings(NamedTuple):
    name: str
    about: str
    """Version, description, keywords and authors of the task, in one line."""
    artifacts: tuple[str, ...]
    excluded: tuple[tuple[str, str], ...]
    """Sources of artifacts, and patterns of names below them that a separate test does not get."""
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
    """Variables of the terminal; `test_variables` and `solution_variables` are those of the test and the solution."""
    test_variables: tuple[tuple[str, str], ...]
    solution_variables: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read(text: str, *, without_network: bool = False) -> HarborSettings:
    """Parses a task.toml (schema 1.0 to 1.4). Raises HarborError for a feature that is not available here."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise HarborError(f"its task.toml cannot be read: {str(error)[:100]}") from error
    _require_known(found, "")
    task, environment, verifier, agent, solution = (
        _table(found, name) for name in ("task", "environment", "verifier", "agent", "solution")
    )
    schema = str(found.get("schema_version", found.get("version", "1.4")))
    if not re.fullmatch(r"1(\.[0-4])?", schema):
        raise HarborError(f"its schema_version {schema[:20]!a} is unknown: 1.0 to 1.4 are read")
    _refuse(found, environment, verifier, agent)
    notes = _network(environment, verifier, agent, without_network=without_network)
    separate = verifier.get("environment_mode") == "separate"
    if not separate:
        notes.append("its test runs in a fresh sandbox with the submitted files, not in the agent's")
    for table, name, why in (
        ("agent", "timeout_sec", "the recipe limits a rollout"),
        ("environment", "build_timeout_sec", "no image is built"),
        ("environment", "storage_mb", "a sandbox has its own"),
    ):
        if _number(_table(found, table), name, table):
            notes.append(f"{table}.{name} has no effect: {why}")
    seconds = _number(verifier, "timeout_sec", "verifier") or MOST_SECONDS
    if seconds > MOST_SECONDS:
        notes.append(f"verifier.timeout_sec is more than {MOST_SECONDS:g}, which its test has here at most")
    memory = _most(environment, "memory_mb", MEMORY_MIB) or _size(environment, "memory", MEMORY_MIB) or 0.0
    if memory:
        notes.append("environment.memory_mb counts if its image installs something: else a command has 128 MiB")
    _most(environment, "cpus", PROCESSORS)
    _ = _most(environment, "storage_mb", STORAGE_MIB) or _size(environment, "storage", STORAGE_MIB)
    healthcheck = _command(environment.get("healthcheck"), "environment.healthcheck")
    if healthcheck:
        notes.append("its health check runs once before an agent: nothing starts here that it would wait for")
    artifacts, excluded = _artifacts(found.get("artifacts", []))
    if excluded and not separate:
        notes.append("artifacts.exclude has no effect: its test sees all files, as verifier.environment_mode says")
    about = [task.get("version"), task.get("description"), *_texts(task, "keywords"), *_texts(task, "authors")]
    return HarborSettings(
        name=str(task.get("name") or "")[:100],
        about=", ".join(" ".join(str(one).split()) for one in (*about, found.get("source")) if one)[:500],
        artifacts=artifacts,
        excluded=excluded if separate else (),
        seconds=min(seconds, MOST_SECONDS),
        memory_mib=int(max(memory, 1_024)),
        workdir=_workdir(environment),
        healthcheck=healthcheck,
        collect=_collected(verifier.get("collect", [])),
        variables=_variables(environment.get("env"), "environment.env"),
        test_variables=_variables(verifier.get("env"), "verifier.env"),
        solution_variables=_variables(solution.get("env"), "solution.env"),
        notes=tuple(notes),
    )


def _require_known(found: Mapping[str, Any], table: str) -> None:
    """Raises HarborError for a field that the schema does not have: it may change what the task asks for."""
    if unknown := sorted(set(found) - set(KNOWN[table].split())):
        name = f"{table}.{unknown[0]}" if table else unknown[0]
        raise HarborError(f"its task.toml has the unknown field {name[:60]!a}", hint="remove it, if nothing needs it")


def _refuse(
    found: Mapping[str, Any], environment: Mapping[str, Any], verifier: Mapping[str, Any], agent: Mapping[str, Any]
) -> None:
    if environment.get("gpus") or environment.get("gpu_types") or environment.get("tpu"):
        raise HarborError("it needs a GPU or TPU, which sandboxes do not have")
    if environment.get("os") not in (None, "", "linux"):
        raise HarborError("it needs another system than Linux")
    if environment.get("docker_image"):
        raise HarborError("it needs a prebuilt image", hint="give an environment/Dockerfile")
    if found.get("steps") or found.get("multi_step_reward_strategy"):
        raise HarborError("it has several steps", hint="make a folder for each step: a task is one conversation")
    if environment.get("mcp_servers") or environment.get("skills_dir"):
        raise HarborError("it needs MCP servers or skills")
    if verifier.get("environment"):
        raise HarborError("its test needs an image of its own")
    if verifier.get("environment_mode") not in (None, "shared", "separate"):
        raise HarborError("verifier.environment_mode is unknown", hint='write "shared" or "separate"')
    for table, part in (("agent", agent), ("verifier", verifier)):
        _require_user(part, table)


def _require_user(part: Mapping[str, Any], table: str) -> None:
    if part.get("user") not in (None, "", "root", 0, "0"):
        raise HarborError(f"{table}.user is {str(part['user'])[:40]!a}: a sandbox has one ordinary user for everything")


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


def _artifacts(listed: Any) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Returns the sources of artifacts, and the patterns that each excludes."""
    rows = [one if isinstance(one, dict) else {"source": one} for one in _listed(listed)]
    found: list[str] = []
    excluded: list[tuple[str, str]] = []
    for row in rows:
        _require_known(row, "artifacts")
        if row.get("service") not in (None, "main"):
            raise HarborError("an artifact comes from another container")
        source, patterns = row.get("source"), _listed(row.get("exclude") or [])
        if not isinstance(source, str) or not all(isinstance(one, str) and one for one in patterns):
            hint = 'write artifacts = ["/app/a.txt"]'
            raise HarborError("the artifacts of its task.toml are not a list of paths", hint=hint)
        found.append(source)
        excluded += [(source, one) for one in patterns]
    return tuple(found), tuple(excluded)


def _collected(listed: Any) -> tuple[str, ...]:
    rows = _listed(listed)
    for row in rows:
        if isinstance(row, dict):
            _require_known(row, "verifier.collect")
            _require_user(row, "verifier.collect")
            _number(row, "timeout_sec", "verifier.collect")
            if row.get("service") not in (None, "main"):
                raise HarborError("verifier.collect runs in another container")
    return tuple(_command(row, "verifier.collect") for row in rows)


def _command(found: Any, what: str) -> str:
    if not found:
        return ""
    if isinstance(found, dict):
        _require_known(found, what)
        found = found.get("command")
    if not isinstance(found, str) or not found.strip() or len(found) > 4_000 or "\0" in found:
        raise HarborError(f"{what} has no command")
    return found


def _workdir(environment: Mapping[str, Any]) -> str:
    found = environment.get("workdir") or ""
    if not isinstance(found, str) or (found and not re.match(r"/[A-Za-z0-9_.][A-Za-z0-9_./-]*\Z", found)):
        raise HarborError("environment.workdir is not an absolute path")
    if {".", ".."} & {*found.split("/")}:
        raise HarborError("environment.workdir has . or .. in it")
    return found.rstrip("/")


def _number(table: Mapping[str, Any], name: str, where: str) -> float | None:
    """Returns a positive number of a table, None if unset. Raises HarborError for anything else."""
    found = table.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not found > 0:
        raise HarborError(f"{where}.{name} is not a number above 0")
    return float(min(found, 1 << 40))


def _most(environment: Mapping[str, Any], name: str, most: float) -> float | None:
    """Returns the size that an environment asks for, None if unset. Raises HarborError for more than `most`."""
    found = _number(environment, name, "environment")
    if found is not None and found > most:
        raise HarborError(f"environment.{name} is {found:g}: a terminal has at most {most:g}", hint=LOWER)
    return found


def _size(environment: Mapping[str, Any], name: str, most: float) -> float | None:
    """Returns the MiB of a size in the old notation (`2G`), None if unset. Raises HarborError as `_most` does."""
    if not (found := environment.get(name)):
        return None
    parts = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([KMG])", str(found).strip().upper())
    if parts is None:
        raise HarborError(f"environment.{name} is not a size", hint='write it as "2G" or "512M"')
    return _most({name: float(parts[1]) * {"K": 1 / 1_024, "M": 1, "G": 1_024}[parts[2]]}, name, most)


def _listed(found: Any) -> Sequence[Any]:
    return found if isinstance(found, list) else [found]


def _texts(table: Mapping[str, Any], name: str) -> list[str]:
    """Returns the texts in a list, or the names in a list of tables."""
    rows = _listed(table.get(name) or [])
    return [str(row.get("name", "") if isinstance(row, dict) else row) for row in rows]


def _table(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns a table of the file, empty if absent. Raises HarborError if it is none, or has an unknown field."""
    found = settings.get(name, {})
    if not isinstance(found, dict):
        raise HarborError(f"[{name}] of its task.toml is not a table")
    _require_known(found, name)
    return found
