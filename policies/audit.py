"""The audit log's form: entries that are chained by their hashes and signed, and how to find the first bad one.

    {"entry":{"at":..., "kind":..., "number":n, "previous":"<sha256 of the line before>", "what":{...}},"signature":...}

What always holds: a line is JSON in its one form and ends with a line feed; `number` counts from 0; `previous` is the
SHA-256 of the whole line before, 64 zeros for the first; the signature (Ed25519, hexadecimal) is over `DOMAIN` and the
entry's JSON. So each line is a signed head of everything before it, and a change, a deletion, an insertion or another
order breaks the chain at a place that can be named. That lines are missing at the end is seen only by somebody who
knows the head from elsewhere: the ledger keeps the newest line, an export ends with it, and a person can write down
`number:sha256` of any line. Pure.

A head by itself (`write_head`) is signed too, with the digest of the log's first line: it is kept where whoever can
write the log cannot, and shows that an end was cut off, or that an old copy of everything was put back.

Not promised: whoever has the daemon's key can write another history.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field, JsonValue, ValidationError

from policies.contract.decision import PolicyRecord
from policies.envelopes import canonical

DOMAIN = b"assay-audit-1\n"
"""Before what is signed, so that no signature made for anything else passes here."""
EXPORT_DOMAIN = b"assay-audit-export-1\n"
HEAD_DOMAIN = b"assay-audit-head-1\n"
HEAD_BYTES = 512
"""Of a head by itself: one sector, so that it is overwritten whole."""
START = "0" * 64
MAX_LINE = 4 << 20


class AuditEntry(PolicyRecord):
    number: int = Field(ge=0)
    previous: str = Field(pattern=r"^[0-9a-f]{64}$")
    at: str
    """UTC, ISO 8601."""
    kind: str = Field(pattern=r"^[a-z_]+(\.[a-z_]+)*$")
    what: dict[str, JsonValue]


@dataclass(frozen=True)
class Head:
    """Which line is the newest: its number and the SHA-256 of its bytes."""

    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"

    @classmethod
    def read(cls, text: str) -> Head:
        """Reads `number:sha256`. Raises ValueError."""
        number, separator, digest = text.partition(":")
        if not (separator and number.isascii() and number.isdigit() and len(digest) == 64 and _is_hex(digest)):
            raise ValueError("a head is written NUMBER:SHA256, with 64 hexadecimal digits")
        return cls(int(number), digest)

    @classmethod
    def of(cls, line: bytes) -> Head:
        """Gives the head of a line that this program wrote. Raises ValueError."""
        return cls(_read(line)[0].number, digest_of(line))


@dataclass(frozen=True)
class LogCheck:
    """What a check of a log came to."""

    entries: int
    """Good entries from the beginning on."""
    head: Head | None
    """The newest good one."""
    bad: int | None = None
    """The number of the first entry that is bad or missing; None when everything holds."""
    problem: str = ""
    back: int | None = None
    """The first entry whose time is before an earlier one's: the clock was set back. It is no fault of the log."""

    @property
    def holds(self) -> bool:
        return self.bad is None


def digest_of(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def write(entry: AuditEntry, key: Ed25519PrivateKey) -> bytes:
    """The line of this entry, with its line feed."""
    fields = entry.model_dump(mode="json")
    signature = key.sign(DOMAIN + canonical(fields)).hex()
    return canonical({"entry": fields, "signature": signature}) + b"\n"


def read(line: bytes) -> AuditEntry:
    """The entry of a line, whose signature is not checked. Raises ValueError, with what is wrong, for another form."""
    return _read(line)[0]


def check(
    lines: Iterable[bytes],
    public: Ed25519PublicKey,
    *,
    known: Iterable[Head] = (),
    signatures: bool = True,
    entries: list[AuditEntry] | None = None,
    after: Head | None = None,
) -> LogCheck:
    """Reads a log line by line, from the first one on or from the one that follows `after`. `known` are heads that are
    known from elsewhere: each must be in it as it is. The good entries go into `entries`.

    Without `signatures` only those of the last line are checked, which is enough for somebody who holds its head.
    """
    expected = {head.number: head.digest for head in known}
    number, previous = (0, START) if after is None else (after.number + 1, after.digest)
    latest, before, last = "", previous, b""
    back: int | None = None

    def stop(problem: str) -> LogCheck:
        return LogCheck(number, Head(number - 1, previous) if number else None, number, problem, back)

    for line in lines:
        try:
            entry, signature, signed = _read(line)
        except ValueError as error:
            return stop(str(error))
        if entry.number != number:
            return stop(f"it has the number {entry.number}: entries were deleted, inserted or moved")
        if entry.previous != previous:
            return stop("it does not follow from the entry before: one of the two was changed, or something between")
        if signatures and not _fits(public, signature, DOMAIN + signed):
            return stop("its signature does not fit: it was changed, or written with another key")
        digest = digest_of(line)
        if expected.get(number, digest) != digest:
            return stop("it is another entry than the one that is known from elsewhere")
        if back is None and entry.at < latest:
            back = number
        latest = max(latest, entry.at)
        if entries is not None:
            entries.append(entry)
        number, before, previous, last = number + 1, previous, digest, line
    if missing := sorted(one for one in expected if one >= number):
        return stop(f"the log ends here, and entry {missing[0]} is known from elsewhere: the end was cut off")
    if number == 0:
        return stop("the log is empty")
    if not signatures:
        _, signature, signed = _read(last)
        if not _fits(public, signature, DOMAIN + signed):
            number, previous = number - 1, before
            return stop("its signature does not fit: it was changed, or written with another key")
    return LogCheck(number, Head(number - 1, previous), back=back)


def export(lines: Iterable[bytes], key: Ed25519PrivateKey, at: str) -> Iterator[bytes]:
    """The lines of a log, and then one that says which was the last: whoever has the file sees if some are missing."""
    head = None
    for line in lines:
        head = Head.of(line)
        yield line
    if head is not None:
        fields = {"at": at, "digest": head.digest, "number": head.number}
        yield canonical({"head": fields, "signature": key.sign(EXPORT_DOMAIN + canonical(fields)).hex()}) + b"\n"


def check_export(content: Iterable[bytes], public: Ed25519PublicKey, *, known: Iterable[Head] = ()) -> LogCheck:
    """Checks an exported log, in which only the end says that it is the end."""
    lines = list(content)
    tail = lines.pop() if lines else b""
    try:
        head = _read_tail(tail, public)
    except ValueError as error:
        found = check([*lines, tail] if lines or tail else [], public, known=known)
        if not found.holds:
            return found
        return LogCheck(found.entries, found.head, found.entries, f"the line that ends an export is not there: {error}")
    found = check(lines, public, known=(*known, head))
    if found.holds and found.head != head:
        return LogCheck(found.entries, found.head, head.number + 1, "it comes after the end of the export")
    return found


def write_head(log: str, head: Head, key: Ed25519PrivateKey) -> bytes:
    """A head by itself, in `HEAD_BYTES`; `log` is the SHA-256 of the log's first line."""
    fields = {"digest": head.digest, "log": log, "number": head.number}
    signature = key.sign(HEAD_DOMAIN + canonical(fields)).hex()
    return canonical({"head": fields, "signature": signature}).ljust(HEAD_BYTES - 1) + b"\n"


def read_head(content: bytes, public: Ed25519PublicKey) -> tuple[str, Head]:
    """The log's first digest, and the head. Raises ValueError for anything that this key did not sign as one."""
    fields, signature = _tail(content.rstrip(), {"digest", "log", "number"})
    if not _fits(public, signature, HEAD_DOMAIN + canonical(fields)):
        raise ValueError("its signature does not fit: it, or the daemon's key, is another one")
    return str(fields["log"]), Head.read(f"{fields['number']}:{fields['digest']}")


def is_export(last_line: bytes) -> bool:
    return last_line.startswith(b'{"head":')


def _read(line: bytes) -> tuple[AuditEntry, bytes, bytes]:
    """Entry, signature, and the bytes that were signed. Raises ValueError."""
    if len(line) > MAX_LINE:
        raise ValueError(f"it is longer than {MAX_LINE} bytes")
    if not line.endswith(b"\n"):
        raise ValueError("it has no end: it was cut off")
    value = _json(line[:-1])
    if not isinstance(value, dict) or value.keys() != {"entry", "signature"}:
        raise ValueError("it is no entry of an audit log")
    try:
        entry = AuditEntry.model_validate(value["entry"])
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"it is no entry of an audit log: {'.'.join(map(str, fault['loc']))}") from error
    return entry, _signature(value["signature"]), canonical(value["entry"])


def _read_tail(line: bytes, public: Ed25519PublicKey) -> Head:
    if not line.endswith(b"\n"):
        raise ValueError("it was cut off")
    fields, signature = _tail(line[:-1], {"at", "digest", "number"})
    if not _fits(public, signature, EXPORT_DOMAIN + canonical(fields)):
        raise ValueError("its signature does not fit")
    return Head.read(f"{fields['number']}:{fields['digest']}")


def _tail(text: bytes, names: set[str]) -> tuple[dict[str, Any], bytes]:
    """The fields of a head, and the signature that stands beside them. Raises ValueError."""
    value = _json(text)
    fields = value.get("head") if isinstance(value, dict) and value.keys() == {"head", "signature"} else None
    if not isinstance(fields, dict) or fields.keys() != names:
        raise ValueError("the file does not end with it")
    return fields, _signature(value["signature"])


def _json(text: bytes) -> Any:
    try:
        value = json.loads(text)
        again = canonical(value)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not readable: it was changed or damaged") from error
    if again != text:
        raise ValueError("it is not written in the one form that is read: it was changed")
    return value


def _signature(text: Any) -> bytes:
    if not isinstance(text, str) or len(text) != 128 or not _is_hex(text):
        raise ValueError("its signature is none")
    return bytes.fromhex(text)


def _is_hex(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)


def _fits(public: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        public.verify(signature, message)
    except InvalidSignature:
        return False
    return True
