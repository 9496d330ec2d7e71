"""The policy in force, which follows from the audit log alone.

Invariants: an edit takes effect only after its signed statement was verified and logged. The file
`policy/in-force.toml` is a copy for other processes; it is restored from the log at the next start if it differs.
People are shown the log's version, not the file's. This process and its children load the plug-ins of the log's version
at its start.

Trust on first use: the policy file of the very first start is accepted, and logged as such (`policy.first_use`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from appliance.audit.log import AuditLog
from appliance.client.messages import PolicyInForce
from appliance.daemon.contract.errors import BrokenError
from appliance.settings.data_schema import require_current_policy
from appliance.settings.policy_files import in_force_file, parse_policy, policy_file, written_policy
from appliance.system.durable_file import replace_file
from common.plugins.allowed import allow
from policies.errors import PolicyError
from policies.in_force import POLICY_FIRST_USE, POLICY_SIGNED
from policies.policy import Policy, plugins_in, read_content


class PolicyStore:
    """The policy in force and all earlier ones, read from the audit log. Creating it restores a differing policy file,
    and logs a first policy. Raises AuditError, PolicyError, and BrokenError for an exchanged file."""

    def __init__(self, audit: AuditLog, data: Path, logged: Iterable[str]) -> None:
        self._audit = audit
        self._data = data
        contents = [text.encode() for text in logged]
        self._digests = [_digest(content) for content in contents]
        self._known = dict(zip(self._digests, contents, strict=True))
        self.policy = self._from_log(contents[-1]) if contents else self._first()

    def in_force(self) -> PolicyInForce:
        own = policy_file(self._data)
        written = _digest(read_content(own)[0]) if own is not None else self._digests[-1]
        return PolicyInForce(
            log=self._audit.first,
            digest=self._digests[-1],
            content=self._content.decode(),
            number=len(self._digests),
            people=self.policy.approval.people,
            unsigned="" if written == self._digests[-1] else written,
        )

    def of(self, digest: str) -> Policy:
        """Returns the policy with that digest; the current one if it is not in the log or no longer valid."""
        content = self._known.get(digest)
        if content is None or digest == self.policy.digest:
            return self.policy
        try:
            return parse_policy(content, f"the policy {digest[:12]}")
        except PolicyError:
            return self.policy

    def change(
        self, content: bytes, envelope: bytes, signers: Callable[[PolicyInForce, Policy], tuple[str, ...]]
    ) -> Policy:
        """Logs a signed policy file and puts it into force. `signers` returns the names of the signers, or raises.
        Raises PolicyError for an invalid file, BrokenError if it is in force but its copy could not be written."""
        policy = parse_policy(content, "the signed file")
        names = signers(self.in_force(), policy)
        self._audit.append(
            POLICY_SIGNED,
            file=policy.digest,
            replaces=self._digests[-1],
            by=list(names),
            envelope=envelope.decode("ascii"),
            content=content.decode(),
        )
        self._digests.append(policy.digest)
        self.policy = policy
        try:
            self._write(content)
        except OSError as error:
            raise BrokenError(
                f"the policy {policy.digest[:12]} is signed and in force, and its file could not be written: "
                f"{error.strerror}",
                hint="free some space, and start the daemon again: it writes the file, which the broker reads",
            ) from error
        return policy

    def _first(self) -> Policy:
        """Logs the first policy. A renewed log continues with the policy in force, not with an unsigned edit."""
        file, note = in_force_file(self._data), "trusted on first use: nobody signed it"
        content, name = read_content(file) if file.exists() else written_policy(self._data)
        if file.exists():
            require_current_policy(content, file)
        allow(plugins_in(content))
        policy = parse_policy(content, name)
        self._audit.append(POLICY_FIRST_USE, file=policy.digest, origin=name, note=note, content=content.decode())
        self._digests.append(policy.digest)
        self._write(content)
        return policy

    def _from_log(self, content: bytes) -> Policy:
        path = in_force_file(self._data)
        require_current_policy(content, path)
        allow(plugins_in(content))
        self._content = content
        found = _digest(path.read_bytes()) if path.exists() else ""
        if found != self._digests[-1]:
            self._audit.append("policy.restored", file=self._digests[-1], found=found)
            self._write(content)
            if found and found not in self._digests[-2:]:  # a kill may have come before the file was written
                raise BrokenError(
                    f"{path} differed from the signed policy: it was restored from the audit log",
                    hint="start it again; an edit takes effect through `assay policy sign`",
                )
        return parse_policy(content, str(path))

    def _write(self, content: bytes) -> None:
        self._content = content
        self._known[_digest(content)] = content
        path = in_force_file(self._data)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
