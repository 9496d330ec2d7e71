"""A data folder's policy: locates the file and validates it against known tasksets and kinds of checks.

Invariants: tasksets and checks are known by name here, and none of them is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from appliance.settings.data_schema import require_current_policy
from common.plugins.installed import Pin
from common.plugins.table import distribution_of
from curriculum.names import NAME, OWN, taskset_names
from policies.errors import PolicyError
from policies.permissions import require_known_checks, require_known_families, require_trainable
from policies.policy import Policy, parse, plugins_in, read_content
from verifiers.registry import KINDS


def known_checks() -> frozenset[str]:
    """Returns the names that a policy's job rules may use: kinds of checks, and job kinds of the built-in ones."""
    return frozenset([*KINDS, *(kind.job for kind in KINDS.data.values()), "question", "data"])


def policy_file(data: Path) -> Path | None:
    """Returns the path of the owner's policy file; None if only the packaged policy exists."""
    path = data / "policy.toml"
    return path if path.exists() else None


def in_force_file(data: Path) -> Path:
    """Returns the path of the policy in force: the signed one, or the one present at the first start. Written by the
    daemon."""
    return data / "policy" / "in-force.toml"


def written_policy(data: Path) -> tuple[bytes, str]:
    """Returns the owner's policy file as it is now, else the packaged one, with its name for messages. Raises
    PolicyError."""
    return read_content(policy_file(data))


def read_policy(data: Path, file: Path | None = None, *, outside: bool = True) -> tuple[Policy, str]:
    """Returns the policy in `file` and its name for messages; `outside` as in `policies.policy.parse`. Raises
    PolicyError.

    Without a file: the owner's policy in the data folder, else the one in force there, else the packaged one.
    """
    in_force = in_force_file(data)
    file = file or policy_file(data) or (in_force if in_force.exists() else None)
    content, name = read_content(file)
    if file == in_force:
        require_current_policy(content, in_force)
    return parse_policy(content, name, outside=outside), name


def plugins_in_force(data: Path) -> tuple[Pin, ...]:
    """Returns the distributions that the policy in force admits; before the first start, those of the file as written.
    Raises PolicyError."""
    path = in_force_file(data)
    return plugins_in(read_content(path)[0] if path.exists() else written_policy(data)[0])


def load_policy(data: Path, digest: str = "", *, outside: bool = True) -> Policy:
    """Returns the policy in force, which ignores unsigned edits; before the first start, the file as written. Raises
    PolicyError, also for unknown tasksets and if the policy does not have the `digest` given."""
    path = in_force_file(data)
    policy = read_policy(data, path if path.exists() else None, outside=outside)[0]
    if digest not in ("", policy.digest):
        raise PolicyError(
            f"{path} is not the policy in force", hint="restart the daemon: it restores the file from its log"
        )
    return policy


def parse_policy(content: bytes, name: str, *, outside: bool = True) -> Policy:
    """Parses a policy; `outside` as in `policies.policy.parse`. Raises PolicyError, also for unknown tasksets and
    checks, and if nothing is left to train on."""
    policy = parse(content, name, outside=outside)
    require_known_checks(policy, _listed(policy, known_checks()), name)
    families = _families_of(policy)
    require_known_families(policy, families, name)
    require_trainable(policy, families, name)
    return policy


def _listed(policy: Policy, names: Iterable[str]) -> list[str]:
    """Returns the names without those of distributions that the policy does not list: they are gone at the next
    start."""
    kept = {"", *(row.distribution for row in policy.plugins)}
    return [name for name in names if distribution_of(name) in kept]


def _families_of(policy: Policy) -> list[str]:
    """Lists built-in tasksets and the owner's tasksets named in the policy, which may not exist at the moment."""
    named = {*policy.data.families, *policy.data.shares, *policy.sandboxes.tiers.families}
    return [*_listed(policy, taskset_names()), *sorted(one for one in named if re.fullmatch(f"{OWN}/{NAME}", one))]
