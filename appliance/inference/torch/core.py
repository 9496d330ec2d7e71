"""Runs torch engines in a process of their own, with the protocol of the vLLM process.

So torch has vLLM's supervision: each push is proved, a failed process is replaced, and rollouts resume from their
tokens (`appliance.inference.vllm`). Invariants: each call returns plain values; weights come from the one named file,
and the digest is of the bytes read.

A conversation whose turn ended keeps its row until the row or its memory is needed, so it continues after a tool result
without being read again. Draws depend on weights, tokens and seed, as in an in-process engine. Each adapter has an
engine with a copy of the frozen weights; the engine without an adapter, which is then never used, is closed for it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from appliance.inference.adapters import adapter_parameters
from appliance.inference.device import choose_placement
from appliance.inference.engine import (
    ADAPTER,
    ADAPTER_CONFIG,
    GenerationRequest,
    ModelError,
    NoProbabilitiesError,
    Turn,
)
from appliance.inference.folder import open_model
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.vllm.server import serve
from appliance.inference.vllm.server.core import Diverged, UnfitError
from appliance.inference.vllm.server.worker import tensors_digest

NOBODY = -1
"""Not a token: the stop of a request without one."""


class _Sampled:
    """Sampling request, its row in the engine, and the reported part of its turn."""

    def __init__(self, engine: TorchEngine, row: int, known: list[int], how: tuple[object, ...]) -> None:
        """Records the request that samples on a row, whose tokens are `known`. `how` is everything else that decides
        the draws: a conversation continues only in a row with an equal one."""
        self.engine, self.row, self.known, self.how = engine, row, known, how
        self.reported = 0


class TorchCore:
    """Torch sampling engine with one model and its adapters; `model` is a folder with a config.json, and weights come
    by `load`."""

    def __init__(
        self,
        model: str,
        *,
        rows: int,
        slots: int,
        dtype: str,
        cache_bytes: int | None = None,
        adapters: int = 0,
        adapter_rank: int = 0,
        device: str = "auto",
    ) -> None:
        """Prepares a torch engine for a model whose weights come later. Ignores memory and adapter limits, which vLLM
        needs in advance. Raises UnfitError."""
        try:
            self._placement = choose_placement(device, dtype)
        except ModelError as error:
            raise UnfitError(f"{error}; {error.hint}") from error
        self._config = (Path(model) / "config.json").read_bytes()
        self._rows, self._slots = rows, slots
        self._base: Any = None
        self._version = ""
        self._engines: dict[str, TorchEngine] = {}
        """Engines by adapter name; empty for none."""
        self._running: dict[int, _Sampled] = {}
        self._waiting: dict[int, _Sampled] = {}
        """Rows whose turn ended, oldest first."""
        self._ended: dict[int, dict[str, Any]] = {}
        self._made = 0

    def load(self, weights: dict[str, Any], aliases: dict[str, str], version: str) -> dict[str, Any]:
        """Loads a whole model's weights into the engine from a file; drops adapters."""
        content = Path(weights["path"]).read_bytes()
        digest = tensors_digest(safetensors.torch.load(content), aliases)
        self.drain()
        for name in [name for name in self._engines if name]:
            self._engines.pop(name).close()
        self._base = open_model({"config.json": self._config, "model.safetensors": content}, version[:12])
        self._push("", self._base, version)
        self._version = version
        return {"digest": digest, "version": version}

    def adapt(self, name: str, path: str, drop: Sequence[str]) -> dict[str, Any]:
        """Adds a LoRA adapter to the engine under a new name; drops adapters not requested any more, and the plain
        engine."""
        from peft import LoraConfig, inject_adapter_in_model

        files = {one: (Path(path) / one).read_bytes() for one in (ADAPTER_CONFIG, ADAPTER)}
        known = json.loads(files[ADAPTER_CONFIG])
        shared = {id(one): one for one in self._base.parameters()}
        model = copy.deepcopy(self._base, shared)
        config = LoraConfig(r=known["r"], lora_alpha=known["lora_alpha"], target_modules=known["target_modules"])
        inject_adapter_in_model(config, model)
        given, layers = safetensors.torch.load(files[ADAPTER]), 0
        own = adapter_parameters(model)
        if own.keys() != given.keys():
            raise RuntimeError(f"adapter {name} has other layers")
        with torch.no_grad():
            for key, parameter in own.items():
                parameter.copy_(given[key])
                layers += ".lora_A." in key and bool(given[key].any())
        for old in ("", *drop):
            if old in self._engines:
                self._forget(old)
        self._push(name, model.eval(), self._version)
        return {"digest": hashlib.sha256(b"".join(files.values())).hexdigest(), "bound": layers}

    def sleep(self, level: int) -> None:
        """Frees the memory of the engine's weights and rows."""
        self.drain()
        for engine in self._engines.values():
            engine.close()
        self._engines, self._base = {}, None

    def wake(self) -> None:
        """Accepts a wake request to the engine without effect: weights are pushed before sampling."""

    def submit(
        self,
        number: int,
        ids: list[int],
        stops: list[int],
        tokens: int,
        temperature: float,
        seed: int,
        salt: str,
        adapter: str,
    ) -> None:
        """Begins to sample at most `tokens` after `ids`, on a waiting row that already has their beginning, if any.
        `salt` separates versions; here a push leaves no row."""
        most = len(ids) + tokens
        how = (adapter, most, seed, temperature, *stops)
        for row, one in self._waiting.items():
            known = len(one.known)
            if (
                one.how == how and known < len(ids) and one.known == ids[:known]
            ):  # another conversation may have an equal beginning
                del self._waiting[row]
                one.engine.resume(row, ids[known:])
                one.known, one.reported = ids, 0
                self._running[number] = one
                return
        engine = self._engines[adapter]
        while self._waiting and len(self._waiting) + len(self._running) >= self._rows:
            self._finish(next(iter(self._waiting)))
        self._made += 1
        first, *others = stops or [NOBODY]
        request = GenerationRequest(self._made, tuple(ids), first, most, temperature, seed, tuple(others))
        engine.submit(request)
        self._running[number] = _Sampled(engine, self._made, ids, how)

    def probe(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Samples these requests to their end and returns their reports; other requests' reports stay."""
        numbers = [request["number"] for request in requests]
        for request in requests:
            self.submit(**request)
        while self._running.keys() & numbers:
            self.step()
        return [self._ended.pop(number) for number in numbers]

    def abort(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if (one := self._running.pop(number, None)) is not None:
                one.engine.finish(one.row)

    def drain(self) -> None:
        """Ends every sampling request; sampled tokens stay in the reports."""
        self._ended |= {report["number"]: report for report in self._under_way()}
        self.abort(list(self._running))
        for row in list(self._waiting):
            self._finish(row)

    def figures(self) -> dict[str, int | None]:
        """Returns the engine's KV cache figures: `preemptions` counts rows recomputed for lack of memory, `tokens` is
        None, because the engine limits admission itself."""
        return {"tokens": None, "block": 1, "preemptions": sum(one.preemptions() for one in self._engines.values())}

    def step(self) -> bool:
        """Takes one decoding step for all requests; False without any. Raises Diverged."""
        if not self._running:
            return False
        self._give_way()
        by_row = {one.row: number for number, one in self._running.items()}
        try:
            turns = [turn for engine in self._engines.values() if engine.runnable for turn in engine.step()]
        except NoProbabilitiesError as error:
            raise Diverged from error
        for turn in turns:
            self._take(by_row[turn.request], turn)
        return True

    def reports(self) -> list[dict[str, Any]]:
        """Returns and clears the new reports of sampling: new tokens by request, and how it ended."""
        found, self._ended = [*self._ended.values(), *self._under_way()], {}
        return found

    @property
    def working(self) -> bool:
        """True if a sampling request is running."""
        return bool(self._running)

    @property
    def ended(self) -> bool:
        """True if a reported sampling request has ended."""
        return any(report["ended"] for report in self._ended.values())

    def score(self, conversations: Sequence[Sequence[int]], temperature: float, adapter: str = "") -> list[list[float]]:
        """Returns the log-probability of each token but the first of these conversations. Raises Diverged."""
        scores = [list(row) for row in self._engines[adapter].score(conversations, temperature)]
        if not all(math.isfinite(value) for row in scores for value in row):
            raise Diverged
        return scores

    def _push(self, name: str, model: Any, version: str) -> None:
        engine = self._engines.get(name) or TorchEngine(self._rows, self._slots, placement=self._placement)
        engine.push(model, version)
        self._engines[name] = engine

    def _forget(self, adapter: str) -> None:
        for row in [row for row, one in self._waiting.items() if one.engine is self._engines[adapter]]:
            del self._waiting[row]
        self._engines.pop(adapter).close()

    def _give_way(self) -> None:
        """Ends waiting rows, oldest first, if a running request needs their memory."""
        for engine in {one.engine for one in self._running.values()}:
            rows = [row for row, one in self._waiting.items() if one.engine is engine]
            while rows and not engine.runnable:
                self._finish(rows.pop(0))

    def _finish(self, row: int) -> None:
        self._waiting.pop(row).engine.finish(row)

    def _take(self, number: int, turn: Turn) -> None:
        one = self._running.pop(number)
        self._ended[number] = _report(number, turn, one.reported) | {
            "ended": turn.ended,
            "versions": [[span.version, span.start, span.end] for span in turn.weights],
        }
        if turn.ended == "stop":
            one.known = [*one.known, *turn.ids]
            self._waiting[one.row] = one

    def _under_way(self) -> list[dict[str, Any]]:
        found = []
        for number, one in self._running.items():
            turn = one.engine.under_way(one.row)
            if len(turn.ids) > one.reported:
                found.append(_report(number, turn, one.reported))
                one.reported = len(turn.ids)
        return found


def _report(number: int, turn: Turn, reported: int) -> dict[str, Any]:
    return {
        "number": number,
        "ids": list(turn.ids[reported:]),
        "logprobs": list(turn.logprobs[reported:]),
        "ended": "",
        "cached": 0,
        "versions": [],
    }


def main() -> None:
    """Runs the server process of a torch engine until its connection ends."""
    serve.main(TorchCore)
