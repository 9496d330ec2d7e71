"""The ways to hand weights to an engine's processes, beside each other: seconds for a GB, with the digest and without.

    python -m benchmarks.transfers [--gigabytes 1] [--readers 1 2] [--repeats 3] [--json FILE]

What is handed over are tensors in float32 as of a small model's layers. `offer` is what the offering side does first,
`read` what both sides do until all readers have read each byte once, `digest` what the SHA-256 takes that each reader
computes for the proof, and that the trainer computes, too, whatever the way. All are seconds of processors, of all
sides together, median and range, ways in turn. Only processors are used: the broadcast goes through gloo. What a GPU's
memory gives, `assay selftest gpu --only G2` says.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.inference.vllm.transfers import WAYS, OfferSettings, offer_tensors

READER = """
import json, sys, time, torch
from appliance.inference.vllm.server.worker import tensors_digest
from appliance.inference.vllm.transfers import received_tensors
torch.set_num_threads(1)
print("ready", flush=True)
for line in sys.stdin:
    started = time.process_time()
    with received_tensors(json.loads(line), int(sys.argv[1])) as tensors:
        total = sum(int(one.view(-1).view(torch.int64).sum()) for one in tensors.values())
        read = time.process_time()
        digest = tensors_digest(tensors, {})
    del tensors
    print(json.dumps([total, read - started, time.process_time() - read]), flush=True)
"""


def make_tensors(gigabytes: float) -> dict[str, torch.Tensor]:
    layers = max(1, round(gigabytes * 1e9 / (4 * 4 * 1024 * 1024)))
    return {f"layers.{layer:03}.{part}.weight": torch.randn(1024, 1024) for layer in range(layers) for part in "qkvo"}


class Readers:
    def __init__(self, count: int) -> None:
        command = [sys.executable, "-c", READER]
        self._processes = [
            subprocess.Popen([*command, str(one)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for one in range(count)
        ]
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.readline()

    def read(self, told: dict[str, Any]) -> list[list[float]]:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(told) + "\n")
            process.stdin.flush()
        found = []
        for process in self._processes:
            assert process.stdout is not None
            found.append(json.loads(process.stdout.readline()))
        return found

    def close(self) -> None:
        for process in self._processes:
            process.communicate()


def once(way: str, tensors: dict[str, torch.Tensor], readers: Readers, count: int, shared: Path) -> dict[str, float]:
    started = time.process_time()
    offer = offer_tensors(way, tensors, OfferSettings(shared, "cpu"))
    offered = time.process_time() - started
    try:
        with offer.taken(count) as told:
            answers = readers.read(told)
        sent = time.process_time() - started - offered
    finally:
        offer.remove()
    (total,) = {answer[0] for answer in answers}
    assert total == sum(int(one.view(-1).view(torch.int64).sum()) for one in tensors.values())
    read, digest = (sum(one[part] for one in answers) for part in (1, 2))
    return {"offer": offered, "read": sent + read, "digest": digest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    tensors = make_tensors(asked.gigabytes)
    size = sum(one.nbytes for one in tensors.values()) / 1e9
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shared:
        for count in asked.readers:
            readers = Readers(count)
            found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for repeat in range(asked.repeats + 1):  # the first warms up
                for way in WAYS:
                    one = once(way, tensors, readers, count, Path(shared))
                    found[way] += [one] if repeat else []
            readers.close()
            for way, ones in found.items():
                row: dict[str, Any] = {"way": way, "readers": count}
                for part in ("offer", "read", "digest"):
                    seconds = [one[part] / size for one in ones]
                    row[part] = [round(value, 3) for value in (statistics.median(seconds), min(seconds), max(seconds))]
                rows.append(row)
                print(row, flush=True)
    if asked.json:
        figures = {"gigabytes": size, "load": os.getloadavg()[0], "processor_seconds_per_gb": rows}
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
