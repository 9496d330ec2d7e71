"""Rows 67, 68 and 72 of the catalogue: keys, persons, approvals, grants and tokens, attacked by those who have some.

The attacker is a registered person who wants to be two, a worker that wants to choose its exam or speak as the core, or
a program on this machine that guesses the gateway's token. Every attack is refused and leaves what counts as it was.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import ledger_records as made
import pytest
import test_daemon_governance as built
from people import admission, admit, approval_envelope, newest, reject, revocation, signer
from test_daemon_trust import PACKAGED, Clock, put_night, sign_policy
from test_policies_keys import line_of

from appliance.audit.machine_keys import load_key
from appliance.config.configuration import Settings
from appliance.daemon.contract import RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.gateway.server import GatewayDoor
from appliance.gateway.tokens import PREFIX, new_token, read_tokens, revoke_token, token_of
from appliance.ledger.grants import grant_of
from appliance.ledger.ledger import Ledger, LedgerError
from appliance.ledger.remote import RemoteLedger, serve_ledger
from appliance.records.cycles import SEALED, CycleState, Event
from policies.curve import ORDER
from policies.envelopes import Signer, add_signature, canonical, sign_envelope
from policies.register import KEY_TYPE

TWO = PACKAGED.replace(b"people = 1 ", b"people = 2 ")
AT = built.AT
Attack = Callable[[Core], object]


def machine(core: Core, name: str) -> Signer:
    return Signer.of(load_key(core.data, name))  # type: ignore[arg-type]


def key_statement(core: Core, **fields: str) -> bytes:
    statement = {"format": "assay-key-1", "action": "admit", "person": "eve", "reason": "", "at": AT, **fields}
    return sign_envelope(canonical(statement), KEY_TYPE, signer("ada"))


def candidate(core: Core) -> str:
    return core.ledger.checkpoints()[0].manifest


def approves(core: Core, person: str, key: str = "", nonce: str = "7" * 32) -> object:
    digest = candidate(core)
    return core.governance.approve(digest, approval_envelope(core, newest(core, digest), person, key=key, nonce=nonce))


def changed(change: Callable[[bytes], bytes]) -> Attack:
    """An approval by ada whose envelope was changed after she signed it."""

    def attack(core: Core) -> object:
        digest = candidate(core)
        envelope = approval_envelope(core, newest(core, digest), nonce="8" * 32)
        return core.governance.approve(digest, change(envelope))

    return attack


def edited(**changes: object) -> Callable[[bytes], bytes]:
    return lambda envelope: canonical(json.loads(envelope) | changes)


def second_form(envelope: bytes) -> bytes:
    whole = json.loads(envelope)
    (one,) = whole["signatures"]
    raw = base64.b64decode(one["sig"])
    scalar = int.from_bytes(raw[32:], "little") + ORDER
    one["sig"] = base64.b64encode(raw[:32] + scalar.to_bytes(32, "little")).decode()
    return canonical(whole)


def as_eve(envelope: bytes) -> bytes:
    return envelope.replace(signer("ada").public.fingerprint.encode(), signer("eve").public.fingerprint.encode())


def vouched_alone(core: Core) -> object:
    return core.trust.change_key(add_signature(admission("eve"), machine(core, "daemon")))


def with_the_trainer(core: Core) -> object:
    return core.trust.change_key(add_signature(admission("eve", "ada"), machine(core, "trainer")))


def lowers(core: Core) -> object:
    return core.governance.change_policy(PACKAGED, sign_policy(core, PACKAGED, "ada"))


def admits(person: str, *by: str, key: str = "") -> Attack:
    return lambda core: core.trust.change_key(admission(person, *by, key=key))


ONE_WHO_IS_TWO: dict[str, Attack] = {
    "the same name in capitals": admits("Ada", "ada"),
    "the same name with a dot": admits("a.d.a", "ada"),
    "another name, admitted alone": admits("eve", "ada"),
    "another name, by itself": admits("eve"),
    "another name, with an own second key": admits("eve", "ada", "ada.two"),
    "another name, with the trainer's key": with_the_trainer,
    "the daemon's key alone": vouched_alone,
    "a second key that counts as another": admits("ada", "ada", key="ada.two"),
    "an edit that lowers the number": lowers,
    "an approval": lambda core: approves(core, "ada"),
    "another approval": lambda core: approves(core, "ada", nonce="9" * 32),
    "an approval in another's name": lambda core: approves(core, "bob", "ada"),
    "an approval by nobody": lambda core: approves(core, "eve"),
}
"""Before anybody else is there: the policy asks for two."""
BESIDE_ANOTHER: dict[str, Attack] = {
    "a key in the other's name": admits("bob", "ada", key="bob.two"),
    "the other's key under an own name": admits("eve", "ada", key="bob"),
    "the owner's word once it is not needed": lambda core: core.trust.change_key(
        add_signature(admission("eve", "ada"), machine(core, "daemon"))
    ),
    "an edit by one of two": lowers,
    "an approval by one of two": lambda core: approves(core, "ada"),
    "a revocation that revokes nothing": lambda core: core.trust.change_key(revocation("bob", "ada", at="")),
}
ON_ENVELOPES: dict[str, Attack] = {
    "the second form of a signature": changed(second_form),
    "another's name on a signature": changed(as_eve),
    "a field more": changed(edited(more=1)),
    "another kind": changed(edited(payloadType=KEY_TYPE)),
    "no signature": changed(edited(signatures=[])),
    "a space more": changed(lambda envelope: envelope + b" "),
    "a key of small order": lambda core: core.trust.change_key(
        key_statement(core, key=line_of((1).to_bytes(32, "little")))
    ),
    "a key in a second encoding": lambda core: core.trust.change_key(
        key_statement(core, key=line_of((2**255 - 18).to_bytes(32, "little")))
    ),
    "a key with a comment": lambda core: core.trust.change_key(
        key_statement(core, key=f"{signer('ada').public.line} eve")
    ),
}


def state(core: Core) -> tuple[object, ...]:
    return (
        core.ledger.alias("champion"),
        core.trust.register,
        core.policy.digest,
        [one.id for one in core.ledger.canaries()],
    )


def succeeded(core: Core, attacks: dict[str, Attack]) -> list[str]:
    """The attacks that were not refused, or left something that counts."""
    found = []
    for name, attack in attacks.items():
        before = state(core)
        try:
            attack(core)
        except (RefusedByPolicyError, ValueError):
            if state(core) == before:
                continue
        found.append(name)
    return found


@contextmanager
def at(data: Path, policy: bytes, *persons: str) -> Iterator[Core]:
    data.mkdir()
    (data / "policy.toml").write_bytes(policy)
    with Core(Settings(data=data), now=Clock()) as core:
        put_night(core)
        admit(core, *persons)
        yield core


def test_one_person_is_not_two(tmp_path: Path) -> None:
    with at(tmp_path / "data", TWO, "ada") as core:
        assert succeeded(core, ONE_WHO_IS_TWO) == []
        admit(core, "bob")
        assert [key.vouched for key in core.trust.register.keys] == [False, True]
        assert succeeded(core, BESIDE_ANOTHER) == []
        core.trust.change_key(revocation("bob", "ada"))
        assert succeeded(core, {"a key in the name of who is gone": admits("bob", "ada", key="bob.two")}) == []
        register = core.trust.register
    with Core(Settings(data=tmp_path / "data"), now=Clock()) as again:
        assert again.trust.register == register, "the log says who was vouched for"


def test_what_was_changed_after_signing_counts_for_nothing(tmp_path: Path) -> None:
    with at(tmp_path / "data", PACKAGED, "ada") as core:
        assert succeeded(core, ON_ENVELOPES) == []


def test_a_rejection_is_not_taken_back_with_a_key_that_others_made_in_its_persons_name(tmp_path: Path) -> None:
    with at(tmp_path / "data", PACKAGED, "ada", "bob") as core:
        reject(core, candidate(core), "bob")
        core.trust.change_key(revocation("bob", "ada"))
        core.trust.change_key(admission("bob", "ada", key="of ada"))
        for person, key in (("bob", "of ada"), ("ada", "")):
            assert succeeded(core, {person: lambda core, who=(person, key): approves(core, *who)}) == []


NIGHT = "night-1"
PLAN: dict[str, Any] = {"recipe": {"tasksets": ["digits", "linear"]}}
EXAM: dict[str, Any] = {"again": None, "tasksets": ["digits", "linear"], "left_out": {}, SEALED: made.digest(99)}
Call = Callable[[Ledger], object]


def plans(**changes: object) -> Call:
    return lambda to: to.put_cycle(made.cycle(NIGHT, plan={**PLAN, **changes}))


OF_WORKERS: dict[str, tuple[str, Call]] = {
    "the trainer chooses easy tasksets": ("train", plans(**EXAM | {"tasksets": ["digits"]})),
    "the trainer leaves one out": ("train", plans(left_out={"linear": "too hard"})),
    "the trainer chooses the champion": ("train", plans(start=made.digest(3))),
    "the trainer asks again": ("train", plans(again=made.digest(3))),
    "the trainer names the sealed set": ("train", plans(sealed="0" * 64)),
    "the trainer forges a sealed set": ("train", lambda to: to.put_sealed_set("0" * 64, {"items": 1})),
    "the examiner forges a sealed set": ("evaluate", lambda to: to.put_sealed_set("0" * 64, {"items": 1})),
    "the trainer presents a model that is not its own": ("train", plans(**EXAM | {"candidate": made.digest(3)})),
    "another cycle's exam": ("train", lambda to: to.put_cycle(made.cycle("night-2", plan={**PLAN, **EXAM}))),
    "the examiner ends a cycle that it does not like": (
        "evaluate",
        lambda to: to.put_cycle(made.cycle(NIGHT, plan=PLAN, state=CycleState.CANCELLED)),
    ),
    "an event in a person's name": (
        "train",
        lambda to: to.put_event(Event(kind="governance", text="ada: approve", created=made.AT)),
    ),
    "an alias moved in a person's name": (
        "train",
        lambda to: to.set_aliases({"candidate": made.digest(2)}, "approve by ada", made.AT),
    ),
}


def test_a_worker_writes_nothing_that_its_examiner_reads(tmp_path: Path) -> None:
    with Core(Settings(data=tmp_path / "data"), now=Clock()) as core:
        for name in (NIGHT, "night-2"):
            core.ledger.put_cycle(made.cycle(name, plan=PLAN))
        written = []
        for name, (work, call) in OF_WORKERS.items():
            ours, theirs = Pipe()
            thread = threading.Thread(target=serve_ledger, args=(ours, core.ledger, grant_of((work, NIGHT))))
            thread.start()
            with theirs:
                try:
                    call(RemoteLedger(theirs))
                except LedgerError:
                    pass
                else:
                    written.append(name)
            thread.join(timeout=60)
        assert written == []
        assert core.ledger.sealed_sets() == {}
        named = [entry.what for entry in core.ledger.audit.entries() if entry.kind == "grant.refused"]
        assert len(named) == len(OF_WORKERS), "each is named"
        assert {what["call"] for what in named} == {"put_cycle", "put_sealed_set", "put_event", "set_aliases"}


def test_no_other_text_is_a_token(tmp_path: Path) -> None:
    _, secret = new_token(tmp_path, "laptop", consent=True, now=made.AT)
    known = read_tokens(tmp_path)
    guesses = [
        "", " ", "*", "\0", PREFIX, secret[:-1], f"{secret} ", f"{secret}\0", secret.swapcase(), secret.encode().hex(),
        known[0].sha256, known[0].name, f"{secret},{secret}", "\ud800", secret * 10,
    ]  # fmt: skip
    assert [guess for guess in guesses if token_of(guess, known)] == []
    assert token_of(secret, known) == known[0]
    revoke_token(tmp_path, "laptop", made.AT)
    new_token(tmp_path, "laptop", consent=True, now=made.AT)
    assert token_of(secret, read_tokens(tmp_path)) is None, "a new token of the name does not revive the old one"


@pytest.mark.parametrize("header", ["host", "authorization", "origin", "sec-fetch-site"])
def test_the_door_takes_no_request_with_a_second_or_strange_header(tmp_path: Path, header: str) -> None:
    _, secret = new_token(tmp_path, "laptop", consent=True, now=made.AT)
    right = [(b"host", b"127.0.0.1:8080"), (b"authorization", f"Bearer {secret}".encode())]
    strange = {
        "host": [b"127.0.0.1:8080", b"127.0.0.1:8080.evil.org", b"127.0.0.1", b"0.0.0.0:8080", b"evil.org"],
        "authorization": [b"Bearer x", b"bearer", secret.encode(), b"Basic x"],
        "origin": [b"null", b"http://127.0.0.1:8080", b""],
        "sec-fetch-site": [b"same-origin", b"cross-site", b"none "],
    }[header]
    reached: list[object] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["headers"])

    async def send(message: Any) -> None:
        return None

    door = GatewayDoor(app, lambda: read_tokens(tmp_path), 8080)

    def ask(headers: list[tuple[bytes, bytes]]) -> None:
        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "query_string": b""}
        with pytest.raises(StopIteration):
            door({**scope, "headers": headers}, None, send).send(None)  # type: ignore[arg-type]

    ask(right)
    assert len(reached) == 1
    without = [pair for pair in right if pair[0].decode() != header]
    for value in strange:
        ask([*right, (header.encode(), value)])
        if header in ("host", "authorization"):
            ask([*without, (header.encode(), value)] if value != b"127.0.0.1:8080" else without)
    assert len(reached) == 1
