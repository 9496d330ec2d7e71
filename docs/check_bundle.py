"""A second checker of bundles, after docs/bundle.md alone: the standard library and `cryptography`, nothing of Assay.

    python check_bundle.py BUNDLE PUBLIC_KEY

Says whether the holder of that key sealed exactly these bytes, a folder or one file, and exits with 0 or 1. It does not
run the verification again: `assay verify` does.
"""

import base64
import hashlib
import io
import json
import os
import re
import struct
import sys
import zipfile
import zlib
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_ssh_public_key

LARGEST = {
    "artifact.txt": 1 << 20,
    "question.txt": 1 << 20,
    "spec.json": 4 << 20,
    "verdict.json": 1 << 20,
    "transcript.json": 64 << 20,
    "versions.json": 1 << 20,
    "statement.json": 1 << 18,
    "meaning.json": 2 << 20,
    "manifest.json": 1 << 14,
    "seal.json": 1 << 20,
}
ALWAYS = set(LARGEST) - {"meaning.json"}
CAME = re.compile(r"files/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
LARGEST_THAT_CAME, MOST_THAT_CAME, LARGEST_TOGETHER = 8 << 20, 16, 32 << 20
LARGEST_ARCHIVE = sum(LARGEST.values()) + LARGEST_TOGETHER + (1 << 14)


def problem(bundle: Path, public_key: bytes) -> str:
    """Why it does not hold; empty where it does."""
    try:
        found = from_folder(bundle) if bundle.is_dir() else from_archive(bundle)
        check(found, public_key)
    except Exception as error:  # noqa: BLE001 - whoever made it chose every byte: whatever goes wrong is a no
        return f"not sealed with that key, or changed since: {type(error).__name__}: {error}"
    return ""


def require(holds: object, else_why: str) -> None:
    if not holds:
        raise ValueError(else_why)


def from_folder(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in [*os.scandir(folder), *(os.scandir(folder / "files") if (folder / "files").is_dir() else ())]:
        name = Path(entry.path).relative_to(folder).as_posix()
        if name == "files" and entry.is_dir(follow_symlinks=False) and any((folder / "files").iterdir()):
            continue
        known = entry.stat(follow_symlinks=False)
        require(entry.is_file(follow_symlinks=False) and known.st_nlink == 1, f"{name!a} is no plain file")
        with Path(entry.path).open("rb") as source:
            found[name] = source.read(largest(name) + 1)
        within_limits(found)
    return found


def largest(name: str) -> int:
    require(name in LARGEST or CAME.fullmatch(name), f"{name!a} does not belong there")
    return LARGEST.get(name, LARGEST_THAT_CAME)


def within_limits(found: dict[str, bytes]) -> None:
    for name, data in found.items():
        require(len(data) <= largest(name), f"{name} is too large")
    came = [len(data) for name, data in found.items() if name not in LARGEST]
    require(len(came) <= MOST_THAT_CAME and sum(came) <= LARGEST_TOGETHER, "too many files came with the question")


def from_archive(file: Path) -> dict[str, bytes]:
    require(file.is_file() and file.stat().st_size <= LARGEST_ARCHIVE, "it is no file, or too large")
    whole = file.read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = archive.infolist()
        require(len(members) <= len(LARGEST) + MOST_THAT_CAME, "it has too many members")
        require(sum(one.file_size for one in members) < len(whole), "it is compressed, or names a byte twice")
        require(not any(one.compress_type for one in members), "it is compressed")
        found = {one.filename: archive.read(one) for one in members}
    require(packed(found) == whole, "the archive is not written in its one form")
    return found


def packed(found: dict[str, bytes]) -> bytes:
    """The one archive with these contents."""
    out, directory = b"", b""
    for name, data in sorted(found.items()):
        same = struct.pack("<5H3I2H", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(name), 0)
        rest = struct.pack("<3H2I", 0, 0, 0, 0o100644 << 16, len(out))
        directory += b"PK\1\2" + struct.pack("<H", 0x314) + same + rest + name.encode()
        out += b"PK\3\4" + same + name.encode() + data
    end = struct.pack("<4H2IH", 0, 0, len(found), len(found), len(directory), len(out), 0)
    return out + directory + b"PK\5\6" + end


def check(found: dict[str, bytes], public_key: bytes) -> None:
    """Raises an exception of some kind unless the key's holder sealed exactly these contents."""
    within_limits(found)
    require(set(found) >= ALWAYS, "these are not the files of a bundle")
    envelope = json.loads(found["seal.json"])
    payload, (signature,) = base64.b64decode(envelope["payload"]), envelope["signatures"]
    statement, raw = json.loads(payload), base64.b64decode(signature["sig"])
    line = b" ".join(public_key.split()[:2])
    fingerprint = base64.b64encode(hashlib.sha256(base64.b64decode(line.split()[1])).digest()).decode().rstrip("=")
    require(signature["keyid"] == f"SHA256:{fingerprint}", "another key sealed it")
    kind = "application/vnd.in-toto+json"
    again = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": kind,
        "signatures": [{"keyid": signature["keyid"], "sig": base64.b64encode(raw).decode()}],
    }
    require(one_form(again) == found["seal.json"], "the seal is not in canonical form")
    require(one_form(statement) == payload, "what is signed is not written in its one form")
    load_ssh_public_key(line).verify(raw, b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload))
    require(set(statement) == {"_type", "subject", "predicateType", "predicate"}, "it states something else")
    require(statement["_type"] == "https://in-toto.io/Statement/v1", "it is no statement")
    require(statement["predicateType"] == "urn:assay:bundle:2", "it is of another format")
    require(statement["predicate"]["key"] == line.decode(), "it names another key")
    here = [(name, hashlib.sha256(data).hexdigest()) for name, data in sorted(found.items()) if name != "seal.json"]
    named = [{"name": name, "digest": {"sha256": digest}} for name, digest in here]
    require(statement["subject"] == named, "the files are not those that were sealed")
    files = [
        {"bytes": len(found[name]), "name": name, "sha256": digest} for name, digest in here if name != "manifest.json"
    ]
    manifest = one_form({"files": files, "schema_version": 2}) + b"\n"
    require(manifest == found["manifest.json"], "the manifest does not list these files")
    for name, value in said(found).items():
        require(statement["predicate"].get(name, "") == value, f"the seal contradicts the files: {name}")


def said(found: dict[str, bytes]) -> dict[str, object]:
    """What the seal has to say of these files: text, empty where they have none."""
    verdict, versions, statement = (plain(found[name]) for name in ("verdict.json", "versions.json", "statement.json"))
    weights = within(versions, "weights")
    return {
        "verdict": {name: text(within(verdict, name)) for name in ("outcome", "verifier", "version")},
        "solvedBy": text(within(statement, "solved_by")),
        "model": text(within(weights, "manifest") if isinstance(weights, dict) else weights),
        "policy": text(within(versions, "policy")),
        "environment": text(within(within(versions, "environment"), "digest")),
    }


def within(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def plain(data: bytes) -> object:
    """JSON in any form, but with no name twice, no NaN and at most 100 levels."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        require(len(dict(pairs)) == len(pairs), "a name stands twice")
        return dict(pairs)

    found = json.loads(data.decode(), object_pairs_hook=once, parse_constant=lambda name: require(False, name))
    level, levels = [found], 0
    while level:
        require((levels := levels + 1) <= 100, "it is nested too deeply")
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [each for one in inner for each in one]
    return found


def one_form(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


if __name__ == "__main__":
    if len(sys.argv) != 3 or not all(Path(each).exists() for each in sys.argv[1:]):
        sys.exit("python check_bundle.py BUNDLE PUBLIC_KEY: name a bundle and a key that are there")
    found = problem(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes())
    sys.stdout.write(f"{found or 'these bytes were sealed with that key'}\n")
    sys.exit(1 if found else 0)
