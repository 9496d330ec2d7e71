"""A second checker of bundles, after docs/bundle.md alone: the standard library and `cryptography`, nothing of Assay.

    python check_bundle.py BUNDLE SEAL PUBLIC_KEY

Says whether the holder of that key sealed exactly these bytes, and exits with 0 or 1. It does not run the verification
again: `assay verify` does.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_ssh_public_key


def problem(bundle: Path, seal: bytes, public_key: bytes) -> str:
    """Why it does not hold; empty where it does."""
    try:
        envelope = json.loads(seal)
        kind, payload = envelope["payloadType"], base64.b64decode(envelope["payload"], validate=True)
        (signature,) = envelope["signatures"]
        raw = base64.b64decode(signature["sig"], validate=True)
        statement = json.loads(payload)
    except (ValueError, KeyError, TypeError):
        return "the seal is no envelope"
    again = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": kind,
        "signatures": [{"keyid": signature.get("keyid"), "sig": base64.b64encode(raw).decode()}],
    }
    if one_form(again) != seal or one_form(statement) != payload:
        return "the seal is not written in its one form"
    blob = base64.b64decode(public_key.split()[1])
    fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    if signature["keyid"] != fingerprint:
        return f"another key sealed it: {signature['keyid']!r}"
    try:
        head = b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)
        load_ssh_public_key(public_key).verify(raw, head)
    except InvalidSignature:
        return "the signature does not fit"
    if kind != "application/vnd.in-toto+json" or statement.get("predicateType") != "urn:assay:bundle:1":
        return "it states something else"
    named = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    here = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in bundle.iterdir()}
    listed = {one["name"]: one["sha256"] for one in json.loads((bundle / "manifest.json").read_bytes())["files"]}
    if here != named or {**listed, "manifest.json": named["manifest.json"]} != named:
        return "the files are not those that were sealed"
    return ""


def one_form(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


if __name__ == "__main__":
    found = problem(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes(), Path(sys.argv[3]).read_bytes())
    sys.stdout.write(f"{found or 'these bytes were sealed with that key'}\n")
    sys.exit(1 if found else 0)
