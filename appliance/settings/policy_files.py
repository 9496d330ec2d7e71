"""The policy of a data folder: which file it is, and reading it against the tasksets and kinds of checks there are.

What always holds: both are known by name here, and none of them is loaded.
"""

from __future__ import annotations

import re
from pathlib import Path

from curriculum.names import NAME, OWN, taskset_names
from policies.data import require_trainable
from policies.errors import PolicyError
from policies.isolation import require_known_families
from policies.jobs import require_known_checks
from policies.policy import Policy, parse, read_content
from verifiers.registry import KINDS

KNOWN_CHECKS = frozenset(name for kind in KINDS for name in (kind.name, kind.job, *kind.retired)) | {"question", "data"}
"""What a policy's rules on jobs may name: kinds of checks, also of earlier versions, and what people call jobs."""


def policy_file(data: Path) -> Path | None:
    """The owner's policy, as it is written now; None where there is only the packaged one."""
    path = data / "policy.toml"
    return path if path.exists() else None


def in_force_file(data: Path) -> Path:
    """The policy that was signed, or that was there at the very first start. The daemon writes it."""
    return data / "policy" / "in-force.toml"


def written_policy(data: Path) -> tuple[bytes, str]:
    """The owner's policy as it is written now, otherwise the packaged one, and what messages call it. Raises
    PolicyError."""
    return read_content(policy_file(data))


def read_policy(data: Path, file: Path | None = None) -> tuple[Policy, str]:
    """The policy in that file, and what messages call it; without a file the one that the owner has written in the data
    folder, else the one in force there, else the packaged one. One that is in force is read in an earlier version, too.
    Raises PolicyError."""
    in_force = in_force_file(data)
    current = read_content(in_force) if in_force.exists() else None
    file = file or policy_file(data)
    content, name = current if current is not None and file is None else read_content(file)
    return parse_policy(content, name, in_force=current is not None and current[0] == content), name


def load_policy(data: Path, digest: str = "") -> Policy:
    """The policy in force for a data folder: an edited file is not, before it is signed; before the very first start it
    is the file as it is written. Raises PolicyError, also for rules about families that do not exist, and for another
    than that of the `digest` where one is given."""
    path = in_force_file(data)
    policy = read_policy(data, path if path.exists() else None)[0]
    if digest not in ("", policy.digest):
        raise PolicyError(
            f"{path} is not the policy in force", hint="start the daemon again: it puts the file right from its log"
        )
    return policy


def parse_policy(content: bytes, name: str, *, in_force: bool = False) -> Policy:
    """The policy in these bytes. Raises PolicyError, also for rules about families and checks that do not exist, or
    that leave nothing to train on. One of an earlier version is read where it is `in_force`."""
    policy = parse(content, name, in_force=in_force)
    require_known_checks(policy, KNOWN_CHECKS, name)
    families = _families_of(policy)
    require_known_families(policy, families, name)
    require_trainable(policy, families, name)
    return policy


def _families_of(policy: Policy) -> list[str]:
    """The tasksets of the code, and those of the owner that the policy speaks of: they come and go, and a rule about
    one that is not there says nothing."""
    named = {*policy.data.families, *policy.data.shares, *policy.sandboxes.tiers.families}
    return [*taskset_names(), *sorted(one for one in named if re.fullmatch(f"{OWN}/{NAME}", one))]
