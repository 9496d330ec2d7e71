"""A key is a point of prime order in one encoding: nothing else is read as a key, so no signature is valid for all."""

from __future__ import annotations

import base64
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from signing_kit import admission, register_of, signer
from tables import table

from policies.curve import ORDER, PRIME, has_prime_order
from policies.envelopes import PublicKey, Signer, canonical, open_envelope, sign_envelope
from policies.errors import Refusal, StatementRefused
from policies.register import KEY_TYPE

OF_ORDER_EIGHT = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7
SMALL = (0, 1, PRIME - 1, OF_ORDER_EIGHT, PRIME - OF_ORDER_EIGHT)
WEAK = {
    **{f"small order, y = {y % 1000}, sign {sign}": y | sign << 255 for y in SMALL for sign in (0, 1)},
    **{f"not canonical, y = p + {more}": PRIME + more | sign << 255 for more in range(19) for sign in (0, 1)},
    "not on the curve": 2,
}


def line_of(raw: bytes) -> str:
    packed = b"".join(struct.pack(">I", len(part)) + part for part in (b"ssh-ed25519", raw))
    return f"ssh-ed25519 {base64.b64encode(packed).decode()}"


@table("name", WEAK)
def test_a_key_that_proves_nothing_is_not_read(name: str) -> None:
    line = line_of(WEAK[name].to_bytes(32, "little"))
    for use in (lambda: PublicKey.read(line), lambda: PublicKey(line).key(), lambda: PublicKey(line).fingerprint):
        with pytest.raises(ValueError, match="key"):
            use()


def test_a_key_with_a_part_of_small_order_is_not_read() -> None:
    from policies.curve import _decoded, _sum

    honest = _decoded(signer("ada").public.key().public_bytes_raw())
    two = _decoded((PRIME - 1).to_bytes(32, "little"))
    assert honest is not None
    assert two is not None
    x, y, z, _ = _sum(honest, two)
    inverse = pow(z, -1, PRIME)
    x, y = x * inverse % PRIME, y * inverse % PRIME
    assert not has_prime_order((y | (x & 1) << 255).to_bytes(32, "little"))


def test_a_key_for_which_one_signature_fits_every_statement_is_not_admitted() -> None:
    neutral = (1).to_bytes(32, "little")
    always = neutral + bytes(32)
    Ed25519PublicKey.from_public_bytes(neutral).verify(always, b"any statement")  # the library accepts it
    statement = canonical(
        {
            "format": "assay-key-1",
            "action": "admit",
            "person": "eve",
            "key": line_of(neutral),
            "reason": "",
            "at": "2026-01-02T03:04:05+00:00",
        }
    )
    honest = sign_envelope(statement, KEY_TYPE, signer("ada"))
    forged = honest.replace(open_envelope(honest).signers[0].encode(), b"SHA256:any")
    with pytest.raises(StatementRefused) as met:
        register_of().after(forged, people=1)
    assert met.value.name is Refusal.SHAPE


@pytest.mark.parametrize("times", [1, 2, 8])
def test_a_signature_has_one_form(times: int) -> None:
    def longer(message: bytes) -> bytes:
        made = signer("ada").sign(message)
        scalar = int.from_bytes(made[32:], "little") + times * ORDER
        return made[:32] + scalar.to_bytes(32, "little")

    envelope = sign_envelope(b"{}", KEY_TYPE, Signer(signer("ada").public, longer))
    assert not open_envelope(envelope).signed_by(signer("ada").public)
    assert open_envelope(admission("ada")).signed_by(signer("ada").public)
