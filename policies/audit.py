"""Audit log format: hash-chained, signed entries, and the search for the first bad one.

    {"entry":{"at":..., "kind":..., "number":n, "previous":"<sha256 of the line before>", "what":{...}},"signature":...}

Invariants: a line is canonical JSON that ends with a line feed; `number` counts from 0; `previous` is the SHA-256 of
the whole previous line, 64 zeros for the first; the signature (Ed25519, hexadecimal) covers `DOMAIN` and the entry's
JSON. Each line thus signs everything before it, and a change, deletion, insertion or reordering breaks the chain at a
known entry. Missing lines at the end are visible only to a reader who knows the head from elsewhere: the ledger keeps
the newest line, an export ends with it, and a person can write down `number:sha256` of any line. Pure.

A detached head (`write_head`) is signed together with the digest of the log's first line. It is stored where writers of
the log have no access, and reveals a truncated log or a restored old copy.

Not promised: the holder of the daemon's key can write another history.
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

from common.bounded_models import first_fault
from policies.contract.decision import PolicyRecord
from policies.envelopes import canonical

DOMAIN = b"assay-audit-1\n"
"""Signature domain prefix: a signature made for anything else never verifies here."""
EXPORT_DOMAIN = b"assay-audit-export-1\n"
HEAD_DOMAIN = b"assay-audit-head-1\n"
HEAD_BYTES = 512
"""Size of a detached head in bytes: one sector, so that an overwrite is atomic."""
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
    """Head of an audit log: the number of its newest line and the SHA-256 of that line's bytes."""

    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"

    @classmethod
    def read(cls, text: str) -> Head:
        """Parses an audit log's head from `number:sha256`. Raises ValueError for any other text."""
        number, separator, digest = text.partition(":")
        if not (separator and number.isascii() and number.isdigit() and len(digest) == 64 and _is_hex(digest)):
            raise ValueError("invalid head: write NUMBER:SHA256 with 64 hexadecimal digits")
        return cls(int(number), digest)

    @classmethod
    def of(cls, line: bytes) -> Head:
        """Returns the head of an audit log that ends with this line. Raises ValueError for an invalid line."""
        return cls(_read(line)[0].number, digest_of(line))


@dataclass(frozen=True)
class LogCheck:
    """Result of an audit log check."""

    entries: int
    """Number of good entries from the beginning."""
    head: Head | None
    """Head of the newest good entry."""
    bad: int | None = None
    """Number of the first bad or missing entry; None if the log is intact."""
    problem: str = ""
    back: int | None = None
    """First entry with a time before an earlier entry's: the clock was set back, which is not a fault of the log."""

    @property
    def holds(self) -> bool:
        return self.bad is None


def digest_of(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def write(entry: AuditEntry, key: Ed25519PrivateKey) -> bytes:
    """Returns the signed audit log line of an entry, with its line feed."""
    fields = entry.model_dump(mode="json")
    signature = key.sign(DOMAIN + canonical(fields)).hex()
    return canonical({"entry": fields, "signature": signature}) + b"\n"


def read(line: bytes) -> AuditEntry:
    """Parses an audit log line into its entry without checking the signature. Raises ValueError with the problem."""
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
    """Checks the hash chain and signatures of an audit log, from its first line or from the one after `after`.

    `known` are heads known from elsewhere, each of which must be in the log. Good entries are appended to `entries`.
    Without `signatures` only the last line's signature is checked, which is enough for a caller that holds its head.
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
            return stop(f"number is {entry.number}: entries were deleted, inserted or moved")
        if entry.previous != previous:
            return stop("does not follow the previous entry: one of the two, or an entry between them, was changed")
        if signatures and not _fits(public, signature, DOMAIN + signed):
            return stop("invalid signature: the entry was changed, or written with another key")
        digest = digest_of(line)
        if expected.get(number, digest) != digest:
            return stop("differs from the entry known from elsewhere")
        if back is None and entry.at < latest:
            back = number
        latest = max(latest, entry.at)
        if entries is not None:
            entries.append(entry)
        number, before, previous, last = number + 1, previous, digest, line
    if missing := sorted(one for one in expected if one >= number):
        return stop(f"the log ends here, but entry {missing[0]} is known from elsewhere: the log was truncated")
    if number == 0:
        return stop("the log is empty")
    if not signatures:
        _, signature, signed = _read(last)
        if not _fits(public, signature, DOMAIN + signed):
            number, previous = number - 1, before
            return stop("invalid signature: the entry was changed, or written with another key")
    return LogCheck(number, Head(number - 1, previous), back=back)


def export(lines: Iterable[bytes], key: Ed25519PrivateKey, at: str) -> Iterator[bytes]:
    """Yields the lines of an audit log, then a signed line with its head, which makes a truncated export detectable."""
    head = None
    for line in lines:
        head = Head.of(line)
        yield line
    if head is not None:
        fields = {"at": at, "digest": head.digest, "number": head.number}
        yield canonical({"head": fields, "signature": key.sign(EXPORT_DOMAIN + canonical(fields)).hex()}) + b"\n"


def check_export(content: Iterable[bytes], public: Ed25519PublicKey, *, known: Iterable[Head] = ()) -> LogCheck:
    """Checks an exported audit log, whose last line must be a signed head that marks its end."""
    lines = list(content)
    tail = lines.pop() if lines else b""
    try:
        head = _read_tail(tail, public)
    except ValueError as error:
        found = check([*lines, tail] if lines or tail else [], public, known=known)
        if not found.holds:
            return found
        return LogCheck(found.entries, found.head, found.entries, f"the closing line of the export is missing: {error}")
    found = check(lines, public, known=(*known, head))
    if found.holds and found.head != head:
        return LogCheck(found.entries, found.head, head.number + 1, "comes after the end of the export")
    return found


def write_head(log: str, head: Head, key: Ed25519PrivateKey) -> bytes:
    """Returns an audit log's head as a signed text of `HEAD_BYTES` bytes, to be kept outside the log. `log` is the
    SHA-256 of the log's first line."""
    fields = {"digest": head.digest, "log": log, "number": head.number}
    signature = key.sign(HEAD_DOMAIN + canonical(fields)).hex()
    return canonical({"head": fields, "signature": signature}).ljust(HEAD_BYTES - 1) + b"\n"


def read_head(content: bytes, public: Ed25519PublicKey) -> tuple[str, Head]:
    """Parses an audit log's signed head, kept outside the log: the digest of the log's first line, and the head. Raises
    ValueError unless this key signed it."""
    fields, signature = _tail(content.rstrip(), {"digest", "log", "number"})
    if not _fits(public, signature, HEAD_DOMAIN + canonical(fields)):
        raise ValueError("invalid signature: the head was changed, or the daemon's key was replaced")
    return str(fields["log"]), Head.read(f"{fields['number']}:{fields['digest']}")


def is_export(last_line: bytes) -> bool:
    return last_line.startswith(b'{"head":')


def _read(line: bytes) -> tuple[AuditEntry, bytes, bytes]:
    """Parses an audit log line into its entry, the signature and the signed bytes. Raises ValueError."""
    if len(line) > MAX_LINE:
        raise ValueError(f"longer than {MAX_LINE} bytes")
    if not line.endswith(b"\n"):
        raise ValueError("no line end: truncated")
    value = _json(line[:-1])
    if not isinstance(value, dict) or value.keys() != {"entry", "signature"}:
        raise ValueError("not an audit log entry")
    try:
        entry = AuditEntry.model_validate(value["entry"])
    except ValidationError as error:
        raise ValueError(f"not an audit log entry: {first_fault(error).where}") from error
    return entry, _signature(value["signature"]), canonical(value["entry"])


def _read_tail(line: bytes, public: Ed25519PublicKey) -> Head:
    if not line.endswith(b"\n"):
        raise ValueError("truncated")
    fields, signature = _tail(line[:-1], {"at", "digest", "number"})
    if not _fits(public, signature, EXPORT_DOMAIN + canonical(fields)):
        raise ValueError("invalid signature")
    return Head.read(f"{fields['number']}:{fields['digest']}")


def _tail(text: bytes, names: set[str]) -> tuple[dict[str, Any], bytes]:
    """Parses an audit log's signed head into fields, which must be `names`, and signature. Raises ValueError."""
    value = _json(text)
    fields = value.get("head") if isinstance(value, dict) and value.keys() == {"head", "signature"} else None
    if not isinstance(fields, dict) or fields.keys() != names:
        raise ValueError("the last line is not a head")
    return fields, _signature(value["signature"])


def _json(text: bytes) -> Any:
    try:
        value = json.loads(text)
        again = canonical(value)
    except (ValueError, RecursionError) as error:
        raise ValueError("unreadable: changed or damaged") from error
    if again != text:
        raise ValueError("not canonical JSON: it was changed")
    return value


def _signature(text: Any) -> bytes:
    if not isinstance(text, str) or len(text) != 128 or not _is_hex(text):
        raise ValueError("malformed signature")
    return bytes.fromhex(text)


def _is_hex(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)


def _fits(public: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        public.verify(signature, message)
    except InvalidSignature:
        return False
    return True
