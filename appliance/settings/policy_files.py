"""A data folder's policy: locates the file and validates it against known tasksets and kinds of checks.

Invariants: tasksets and checks are known by name here, and none of them is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from appliance.settings.data_schema import require_current_policy
from common.plugins.installed import Pin
from common.plugins.table import distribution_of, names_from_outside
from curriculum.names import NAME, OWN, built_in_names
from policies.errors import PolicyError
from policies.permissions import require_known_checks, require_known_families, require_trainable
from policies.policy import Policy, parse, plugins_in, read_content
from verifiers.registry import KINDS

_BUILT_IN_CHECKS = frozenset([*KINDS.data, *(kind.job for kind in KINDS.data.values()), "question", "data"])
"""Names that every policy's job rules may use: kinds of checks, and their job kinds."""


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
    checks, and if nothing is left to train on. Nothing from outside is asked for that it does not name."""
    policy = parse(content, name, outside=outside)
    checks = {rule.check for rule in policy.jobs.rules}
    require_known_checks(policy, [*_BUILT_IN_CHECKS, *_from_outside(policy, checks, "kinds", outside)], name)
    families = _families_of(policy, outside)
    require_known_families(policy, families, name)
    require_trainable(policy, families, name)
    return policy


def _from_outside(policy: Policy, named: Iterable[str], seam: str, outside: bool) -> list[str]:
    """Returns the rows from outside among the names of a policy, if it lists their distributions: the others are gone
    at the next start. Without `outside`, nobody is asked whether a distribution has its row."""
    kept = {row.distribution for row in policy.plugins}
    wanted = sorted(one for one in named if distribution_of(one) in kept)
    return wanted if not (wanted and outside) else sorted({*wanted} & {*names_from_outside(seam)})


def _families_of(policy: Policy, outside: bool) -> list[str]:
    """Lists built-in tasksets, and those named in the policy: of other distributions, and the owner's, which may not
    exist at the moment."""
    named = {*policy.data.families, *policy.data.shares, *policy.sandboxes.tiers.families}
    own = sorted(one for one in named if re.fullmatch(f"{OWN}/{NAME}", one))
    return [*built_in_names(), *_from_outside(policy, named, "tasksets", outside), *own]
