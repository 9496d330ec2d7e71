"""Checks that 32 bytes are the canonical encoding of a point of prime order on Ed25519's curve (RFC 8032, 5.1).

OpenSSL accepts every encoding as a public key. A point of small order makes one fixed signature valid for many
messages, one with a component of small order lets verifiers disagree, and a second encoding gives a key two
fingerprints. Honest keys have prime order, so nothing else is accepted. The input is public, so timing reveals nothing.
"""

from __future__ import annotations

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, PRIME) % PRIME
_ROOT = pow(2, (PRIME - 1) // 4, PRIME)

_Point = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T with x = X/Z, y = Y/Z and x * y = T/Z."""


def has_prime_order(encoded: bytes) -> bool:
    """True if the bytes are the canonical encoding of a curve point whose order is the large prime."""
    point = _decoded(encoded)
    if point is None or _is_neutral(point):
        return False
    total: _Point = (0, 1, 1, 0)
    for bit in f"{ORDER:b}":
        total = _sum(total, total)
        if bit == "1":
            total = _sum(total, point)
    return _is_neutral(total)


def _decoded(encoded: bytes) -> _Point | None:
    number = int.from_bytes(encoded, "little")
    y, odd = number & (2**255 - 1), number >> 255
    if len(encoded) != 32 or y >= PRIME:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if x * x % PRIME != square:
        x = x * _ROOT % PRIME
    if x * x % PRIME != square or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = PRIME - x
    return x, y, 1, x * y % PRIME


def _sum(one: _Point, other: _Point) -> _Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % PRIME
    b = (one[1] + one[0]) * (other[1] + other[0]) % PRIME
    c, d = 2 * one[3] * other[3] * _D % PRIME, 2 * one[2] * other[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def _is_neutral(point: _Point) -> bool:
    return point[0] == 0 and (point[1] - point[2]) % PRIME == 0
