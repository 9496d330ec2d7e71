"""Is every changed byte seen? In bundles of both forms by both checkers, in checkpoints, in the audit log, its export.

`python benchmarks/flips.py [--flips N] [--seed N] [--every N] [--large N] [--only SORT] [--json FILE]`. Of a small
object of each sort every bit of every byte is flipped, one at a time; of a large one N bytes at random get another
value, half of them anywhere and half outside of its largest file, where names, sizes and signatures are. A flip counts
as seen when the check that people use says no: for a bundle `assay verify` before it would run the verifier (with the
maker's key for every second flip, and without) and `docs/check_bundle.py`. Exit code 1 when one is missed. `--every N`
takes only each Nth byte of the small ones, `--large N` is the size of the large ones.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.jobs.attestation import write_seal
from appliance.jobs.bundle import pack, write_bundle
from appliance.jobs.check import check_bundle
from appliance.jobs.layout import BundleError
from appliance.jobs.statement import statement_of
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import verify, write_folder
from benchmarks.record import write_run
from policies.audit import START, AuditEntry, Head, check, check_export, digest_of, export, write
from policies.envelopes import Signer
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.predicate.spec import PredicateSpec

ROOT = Path(__file__).resolve().parents[1]
SORTS = ("bundle", "checkpoint", "audit")
AT = "2026-01-02T03:04:05+00:00"


def private(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


TRAINER, DAEMON = private("trainer"), private("daemon")
PUBLIC = Signer.of(TRAINER).public


class _Missed(Exception):
    """A changed bundle got as far as the verifier."""


class _Never:
    """In the verifier's place: it is never reached by bytes that were changed."""

    def check(self, spec: object, submission: str, seconds: float | None = None) -> Verdict:
        raise _Missed


@dataclass
class Row:
    what: str
    by: str
    bytes: int
    flips: int = 0
    missed: int = 0
    seconds: float = 0.0


def bundle(folder: Path, transcript_bytes: int) -> Path:
    spec = PredicateSpec(predicate="7*x + 3 == 45")
    verdict = Verdict(
        outcome=Outcome.PASS,
        score=1.0,
        reason="it holds",
        ground=Ground.PROVED,
        verifier="predicate",
        version="1",
        seconds=0.1,
    )
    nodes = [{"parent": None, "role": "user", "text": "find x with 7x+3=45", "sampled": False}]
    while transcript_bytes > 0:
        words = "".join(random.Random(len(nodes)).choices("abcdefghij \n", k=min(transcript_bytes, 3_000)))
        nodes.append({"parent": len(nodes) - 1, "role": "assistant", "text": words, "sampled": True})
        transcript_bytes -= len(words)
    write_bundle(
        folder,
        answer="6",
        question="find x with 7x+3=45",
        spec=spec,
        verdict=verdict,
        transcript=nodes,
        versions={"assay": "0", "weights": {"manifest": "ab" * 32}, "policy": "cd" * 32},
        files={"data.csv": b"7,45\n"},
        statement=statement_of(spec, verdict),
        solved_by="policy model",
        meaning=None,
    )
    write_seal(folder, Signer.of(TRAINER), made_at=AT)
    return folder


def ours(path: Path) -> Callable[[int], bool]:
    def seen(turn: int) -> bool:
        try:
            return not check_bundle(path, checker=_Never(), key=PUBLIC if turn % 2 else None).ok  # type: ignore[arg-type]
        except BundleError:
            return True
        except _Missed:
            return False

    return seen


def theirs(path: Path) -> Callable[[int], bool]:
    spec = importlib.util.spec_from_file_location("check_bundle", ROOT / "docs" / "check_bundle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda _: bool(module.problem(path, PUBLIC.line.encode()))


def checkpoint(folder: Path) -> Callable[[int], bool]:
    known = verify(folder)

    def seen(turn: int) -> bool:
        try:
            verify(folder, expect=known if turn % 2 else None)
        except CheckpointError:
            return True
        return False

    return seen


def audit_lines(count: int, text: str) -> list[bytes]:
    lines: list[bytes] = []
    previous = START
    for number in range(count):
        entry = AuditEntry(number=number, previous=previous, at=AT, kind="decision", what={"text": text})
        lines.append(write(entry, DAEMON))
        previous = digest_of(lines[-1])
    return lines


def audit(file: Path, lines: list[bytes]) -> Callable[[int], bool]:
    file.write_bytes(b"".join(lines))
    heads = [Head.of(lines[-1])]
    return lambda _: not check(_lines(file), DAEMON.public_key(), known=heads).holds


def audit_export(file: Path, lines: list[bytes]) -> Callable[[int], bool]:
    file.write_bytes(b"".join(export(lines, DAEMON, AT)))
    return lambda _: not check_export(_lines(file), DAEMON.public_key()).holds


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def files_of(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def every_bit(path: Path, every: int) -> Iterator[tuple[Path, int, int]]:
    for file in files_of(path):
        for place in range(0, file.stat().st_size, every):
            for bit in range(8):
                yield file, place, 1 << bit


def at_random(path: Path, flips: int, chance: random.Random) -> Iterator[tuple[Path, int, int]]:
    """Half anywhere; half outside of the largest file, or in the first and last 2 KiB where there is only one."""
    files = files_of(path)
    sizes = [file.stat().st_size for file in files]
    largest = sizes.index(max(sizes))
    others = [0 if index == largest else size for index, size in enumerate(sizes)]
    for number in range(flips):
        if number % 2 and any(others):
            (index,) = chance.choices(range(len(files)), others)
            place = chance.randrange(sizes[index])
        elif number % 2:
            index, near = 0, min(2_048, sizes[0])
            place = chance.choice([chance.randrange(near), sizes[0] - 1 - chance.randrange(near)])
        else:
            (index,) = chance.choices(range(len(files)), sizes)
            place = chance.randrange(sizes[index])
        yield files[index], place, chance.randrange(1, 256)


def measured(
    what: str, path: Path, checks: dict[str, Callable[[int], bool]], places: Iterable[tuple[Path, int, int]]
) -> list[Row]:
    """Each flip is written, looked at by every check, and taken back; at the end all checks have to say yes."""
    size = sum(file.stat().st_size for file in files_of(path))
    rows = {by: Row(what, by, size) for by in checks}
    for turn, (file, place, mask) in enumerate(places):
        with file.open("r+b", buffering=0) as at:
            at.seek(place)
            before = at.read(1)
            at.seek(place)
            at.write(bytes([before[0] ^ mask]))
            for by, seen in checks.items():
                began = time.perf_counter()
                rows[by].missed += not seen(turn)
                rows[by].seconds += time.perf_counter() - began
                rows[by].flips += 1
            at.seek(place)
            at.write(before)
    for by, seen in checks.items():
        if seen(0) or seen(1):
            raise SystemExit(f"{what}: {by} says no to what nobody changed, so that its word on flips means nothing")
    return list(rows.values())


def rows_of(work: Path, flips: int, every: int, large: int, seed: int, only: str = "") -> Iterator[Row]:
    """All figures, or those of one sort. `large` is about how many bytes the large objects have."""
    chance = random.Random(seed)
    for size, kind, path, checks in objects(work, large, only):
        where = every_bit(path, every) if size == "small" else at_random(path, flips, chance)
        yield from measured(f"{size} {kind}", path, checks, where)


def objects(work: Path, large: int, only: str) -> Iterator[tuple[str, str, Path, dict[str, Callable[[int], bool]]]]:
    """Small or large, what it is, where it lies, and who looks at it."""
    if only in ("", "bundle"):
        for size, room in (("small", 400), ("large", large)):
            folder = bundle(work / size, room)
            for form, path in (("folder", folder), ("one file", pack(folder, folder.with_suffix(".zip")))):
                yield size, f"bundle, {form}", path, {"assay verify": ours(path), "check_bundle.py": theirs(path)}
    if only in ("", "checkpoint"):
        for size, weights in (("small", bytes(range(256)) * 4), ("large", random.Random(0).randbytes(large))):
            folder = work / f"step-{size}"
            write_folder(folder, {"model.safetensors": weights, "config.json": b"{}\n"})
            yield size, "checkpoint", folder, {"folders.verify": checkpoint(folder)}
    if only in ("", "audit"):
        for size, lines in (
            ("small", audit_lines(6, "x")),
            ("large", audit_lines(max(6, large // 40_000), "y" * 39_000)),
        ):
            for kind, make in (("audit log", audit), ("audit export", audit_export)):
                file = work / f"{size} {kind}"
                yield size, kind, file, {"audit.check": make(file, lines)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Flips bits, and counts those that nobody sees.")
    parser.add_argument("--flips", type=int, default=10_000, help="random flips in each large object")
    parser.add_argument("--every", type=int, default=1, help="take each Nth byte of the small objects")
    parser.add_argument("--large", type=int, default=4_000_000, help="bytes of the large objects, about")
    parser.add_argument("--only", default="", choices=SORTS, help="objects of this sort alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as work:
        print(f"{'object':<24}{'seen by':<20}{'bytes':>10}{'flips':>8}{'missed':>8}{'ms each':>9}")
        for row in rows_of(Path(work), given.flips, given.every, given.large, given.seed, given.only):
            rows.append(row)
            each = 1e3 * row.seconds / max(1, row.flips)
            print(f"{row.what:<24}{row.by:<20}{row.bytes:>10}{row.flips:>8}{row.missed:>8}{each:>9.2f}", flush=True)
    found: dict[str, Any] = {"rows": [vars(row) for row in rows], "missed": sum(row.missed for row in rows)}
    write_run(found, given.json)
    return 1 if found["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
