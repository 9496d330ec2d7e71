"""A data folder that was used for a while, and somebody who can write every file in it and has no key."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import test_daemon_governance as built
from people import admit, approval_envelope, approve, newest, revocation

from appliance.audit.machine_keys import attestation_file, load_key
from appliance.cli.audit.read import verified
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import status_of
from appliance.daemon.coordination.core import Core
from appliance.learning.folders import MANIFEST
from appliance.ledger.ledger import Ledger
from appliance.settings.client_config import AuditSettings
from common.errors import HintedError
from policies.attestation import Lineage, attest
from policies.envelopes import Signer
from policies.errors import PolicyError

NOW = "2026-01-02T04:04:05.000+00:00"


@dataclass
class Used:
    """What was in force when the folder was left, and what the attacker wants."""

    data: Path
    head: Path
    champion: str
    """In service."""
    waiting: str
    """A good candidate that waits for a word, with an attestation."""
    taken_back: str
    """It was in service and was taken out."""
    evil: str
    """It was evaluated, and refused."""
    word: bytes
    """The approval that put `taken_back` into service; it was used."""
    bobs: bytes
    """Bob's approval of `waiting`; his key was revoked."""
    before: Path
    """A copy of the folder from before bob's key was revoked."""
    said: list[str] = field(default_factory=list)
    """What anybody was told since."""

    @property
    def settings(self) -> Settings:
        return Settings(data=self.data, audit=AuditSettings(head=self.head))

    def core(self) -> Core:
        return Core(self.settings, now=lambda: NOW)

    @contextmanager
    def sql(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.data / "ledger.sqlite3", timeout=120)) as connection:
            connection.execute("PRAGMA foreign_keys=OFF")
            yield connection
            connection.commit()

    def copied(self, folder: Path) -> Used:
        folder.mkdir(parents=True)
        shutil.copytree(self.data, folder / "data")
        shutil.copy(self.head, folder / "head")
        return Used(**{**vars(self), "data": folder / "data", "head": folder / "head", "said": []})

    def lines(self) -> list[bytes]:
        return (self.data / "audit" / "log.jsonl").read_bytes().splitlines(keepends=True)

    def cut(self, left: int) -> None:
        """The log as it was then, and the ledger's copy of its newest line with it."""
        lines = self.lines()[:left]
        (self.data / "audit" / "log.jsonl").write_bytes(b"".join(lines))
        with self.sql() as sql:
            sql.execute("UPDATE audit_head SET line = ?", (lines[-1].decode(),))

    def change(self, table: str, key: str, how: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
        """Edits the JSON of a row."""
        with self.sql() as sql:
            (payload,) = sql.execute(f"SELECT payload FROM {table} WHERE key = ?", (key,)).fetchone()
            value = json.loads(payload)
            how(value)
            sql.execute(
                f"UPDATE {table} SET payload = ? WHERE key = ?", (json.dumps(value, separators=(",", ":")), key)
            )

    def decision(self, of: str) -> str:
        with self.sql() as sql:
            return str(sql.execute("SELECT key FROM decisions WHERE candidate = ? ORDER BY 1", (of,)).fetchone()[0])

    def first(self, table: str) -> str:
        with self.sql() as sql:
            return str(sql.execute(f"SELECT key FROM {table}").fetchone()[0])

    # what follows
    def use(self, core: Core) -> None:
        """Everything that could put a model into service, and everything that shows one to a person."""

        def signed() -> None:
            for envelope in (self.word, self.bobs):
                for model in (self.taken_back, self.waiting, self.evil):
                    self.trying(lambda model=model, envelope=envelope: core.governance.approve(model, envelope))

        self.trying(core.governance.reconcile)
        self.trying(core.governance.check_canary)
        self.trying(signed)
        self.trying(core.readiness.require)
        self.said.append(status_of(core).tampered)
        for model in (self.waiting, self.evil, self.taken_back):
            self.trying(lambda model=model: core.ledger.decisions(candidate=model))
            self.trying(lambda model=model: core.ledger.evaluations(candidate=model))
            self.trying(lambda model=model: core.ledger.checkpoint(model))
        self.trying(lambda: core.ledger.approvals())
        self.trying(lambda: core.ledger.cycles())
        with suppress(ValueError):  # a log that was cut
            self.said += [str(entry.what) for entry in core.ledger.audit.entries() if entry.kind.startswith("ledger.")]

    def trying(self, act: Callable[[], object]) -> None:
        try:
            act()
        except (HintedError, PolicyError) as error:
            self.refused(error)

    def refused(self, error: HintedError | PolicyError) -> None:
        assert error.hint, error
        self.said.append(str(error))

    def in_service(self, core: Core) -> set[str]:
        return {str(core.ledger.alias(name)) for name in ("champion", "canary", "previous")} - {"None"}

    def started(self, most: int = 2) -> bool:
        """Starts and uses it; whether it could be. A ledger that is put right ends the first start."""
        for _ in range(most):
            try:
                with self.core() as core:
                    self.use(core)
                    self.require_nothing_new(core)
                    return True
            except (HintedError, PolicyError) as error:
                self.refused(error)
        return False

    def require_nothing_new(self, core: Core) -> None:
        assert self.in_service(core) <= {self.champion}, self.said
        assert core.ledger.alias("champion") == self.champion, self.said

    def audit(self) -> None:
        """What `assay audit verify` says."""
        with suppress(HintedError):
            checked = verified(self.data, None, None, [], [self.head])
            self.said += [checked.found.problem, *checked.differs]


def put_attested(data: Path, ledger: Ledger, content: bytes) -> str:
    """A checkpoint as a cycle leaves it."""
    digest = built.write_by_digest(data / "models", {"model.safetensors": content, "config.json": b"{}"})
    lineage = Lineage(
        stage="training",
        step=1,
        cycle="c",
        seed=0,
        sources=(),
        code="1",
        machine={},
        builder="b",
        started="",
        finished="",
    )
    files = json.loads((data / "models" / digest / MANIFEST).read_bytes())["files"]
    path = attestation_file(data, digest)
    path.parent.mkdir(exist_ok=True)
    signer = Signer.of(load_key(data, "trainer"))
    path.write_bytes(attest(digest, {name: line["sha256"] for name, line in files.items()}, lineage, signer))
    return built.put_model(data, ledger, content)


def used_folder(folder: Path) -> Used:
    """A champion, a model that was taken back, one that was refused, one that waits; bob's key is revoked."""
    data, head = folder / "data", folder / "head"
    with Core(Settings(data=data, audit=AuditSettings(head=head)), now=lambda: NOW) as core:
        champion = built.put_model(data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", built.AT)
        admit(core, "ada", "bob")
        put_attested(data, core.ledger, b"first better")
        taken_back = built.put_decided(core, champion, b"first better")
        word = approval_envelope(core, newest(core, "candidate"))
        core.governance.approve("candidate", word)
        core.governance.rollback("ada", "it is rude")
        evil = built.put_decided(core, champion, b"evil", after=1)
        put_attested(data, core.ledger, b"better")
        waiting = built.put_decided(core, champion, b"better")
        bobs = approval_envelope(core, newest(core, "candidate"), "bob")
        assert core.ledger.alias("candidate") == waiting
    shutil.copytree(data, folder / "before")
    with Core(Settings(data=data, audit=AuditSettings(head=head)), now=lambda: NOW) as core:
        core.trust.change_key(revocation("bob", "ada"))
    return Used(data, head, champion, waiting, taken_back, evil, word, bobs, folder / "before")


__all__ = ["NOW", "Used", "approve", "put_attested", "used_folder"]
