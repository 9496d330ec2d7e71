"""Supervises one vLLM process: proves that it has the trainer's weights, and replaces it on a fault.

Invariants: after each push the digest is read back, the version compared, and log-probabilities are compared with the
trainer's, also after cached prompts; only then is the engine used. An engine that fails a proof, dies, hangs or
contradicts itself is quarantined: its process group is killed, and another is started with the same weights and proved.
After `REPLACEMENTS` in a row without a success, InfrastructureError is raised. A LoRA adapter gets a new name for each
version; its base never changes.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from appliance.inference.adapters import (
    adapter_digest,
    adapter_files,
    adapter_parameters,
    frozen_digest,
    has_adapter,
    without_adapter,
)
from appliance.inference.engine import ModelError, NoProbabilitiesError, PushProof, PushUnderWay, SharedWeights
from appliance.inference.gpu_numbers import VISIBLE
from appliance.inference.vllm import proof
from appliance.inference.vllm.placement import VllmSettings, cache_bytes, rank_of
from appliance.inference.vllm.process import DivergedError, EngineFault, EngineProcess
from appliance.inference.vllm.proof import require_answer
from appliance.inference.vllm.transfers.folders import private_folder, remove_folder
from appliance.inference.vllm.weights import OfferedWeights, offer_weights, write_files, written_config
from runtime.errors import InfrastructureError

log = logging.getLogger(__name__)

REPLACEMENTS = 3
"""Maximum engines started in a row without a finished turn."""
Start = Callable[[dict[str, Any]], EngineProcess]
"""Starts a process with one engine of these settings."""


@dataclass(frozen=True)
class _Base:
    """Whole model that was pushed to the engine."""

    version: str
    weights: OfferedWeights
    config: str
    reference: proof.Reference


@dataclass(frozen=True)
class _Adapter:
    """LoRA adapter of the base that was pushed to the engine."""

    name: str
    """Name in vLLM: new for each push, since vLLM caches keys and weights by name."""
    version: str
    folder: Path
    digest: str
    layers: int
    """Layers of the model that use the adapter."""
    reference: proof.Reference


class VllmSupervisor:
    """Owner of an engine process: starts it, pushes and proves its weights, and replaces it. Not thread-safe."""

    def __init__(self, rows: int, slots: int, start: Start, *, dtype: str, gpu: bool, settings: VllmSettings) -> None:
        self._rows, self._slots, self._start = rows, slots, start
        self._dtype, self._gpu, self._settings = dtype, gpu, settings
        self._asleep = False
        self._process: EngineProcess | None = None
        self._shape: tuple[str, int] = ("", 0)
        self._folder: Path | None = None
        self._base: _Base | None = None
        self._adapters: dict[str, _Adapter] = {}
        self._rank = 0
        self._seen: dict[str, tuple[proof.Reference, torch.Tensor]] = {}
        """Answers of trainer and engine by adapter name: for whole weights, and for the adapter proved last."""
        self._pushes = self._numbers = self._failures = 0
        self._salt = ""
        self._preempted = 0
        self.vocabulary = 0
        self.quarantined: list[str] = []
        """Reasons of the replacements, in order."""
        self.worst_difference = math.nan
        """Largest difference of a log-probability from the trainer's in the last proof."""

    @property
    def version(self) -> str:
        """Weight version that answers new requests; empty before the first push, and while asleep."""
        if self._asleep:
            return ""
        if self._adapters:
            return self._newest.version
        return self._base.version if self._base else ""

    @property
    def base(self) -> str:
        """Digest of the current whole weights, or those below the adapters; empty before the first push."""
        return self._base.weights.digest if self._base else ""

    @property
    def pid(self) -> int | None:
        """Process id of the current engine process, which leads its group."""
        return self._process.pid if self._process else None

    @property
    def cache(self) -> tuple[int | None, int]:
        """Size of the KV cache in tokens, None without a process, and its block size."""
        return (self._process.cache_tokens, self._process.block) if self._process else (None, 1)

    def preemptions(self) -> int:
        """Number of preemptions in all its engine processes; a failed one counts as last reported."""
        return self._preempted + (self._process.count_preemptions() if self._process else 0)

    def push(self, model: Any, version: str) -> PushProof:
        """Pushes a transformers model's weights to the engine and proves them. With an adapter, frozen weights are sent
        only if not already there. Raises ModelError, InfrastructureError."""
        with SharedWeights(model) as weights:
            under_way = self.begin_push(weights, version)
            under_way.hand_over()
            return under_way.proved()

    def begin_push(self, weights: SharedWeights, version: str) -> PushUnderWay:
        """Prepares a push of weights: everything that needs the model or starts a process. Raises as `push`."""
        if not version:
            raise ValueError("weights need a version")
        expected = self._expected(weights, version)
        self._failures = 0
        try:
            if has_adapter(weights.model):
                return self._begin_adapter(weights, version, expected)
            self._set_base(weights, version, expected)
            self._start_some_engine()
        except BaseException:
            self.close()
            raise
        return _Push(self, PushProof(version, self.base), self._hand_over)

    def _begin_adapter(self, shared: SharedWeights, version: str, expected: proof.Reference) -> PushUnderWay:
        model = shared.model
        files = adapter_files(model)
        rank = rank_of(files)
        base = frozen_digest(model)
        if base != self.base:
            with without_adapter(model):
                self._set_base(shared, base, self._expected(shared, base, "base"))
        self._pushes += 1
        with _room():
            folder = write_files(files)
        weights = adapter_parameters(model).items()
        layers = sum(bool(one.any()) for name, one in weights if ".lora_A." in name)
        new = _Adapter(f"{version} {self._pushes}", version, folder, adapter_digest(files), layers, expected)
        drop = list(self._adapters)
        self._adapters[new.name] = new
        if self._process is None or self._asleep or rank > self._rank:
            self._rank = max(rank, self._rank)
            self._start_some_engine()
            hand_over = self._hand_over
        else:
            hand_over = partial(self._hand_over, partial(self._take_beside, new, drop))
        return _Push(self, PushProof(version, new.digest, base), hand_over)

    def sleep(self) -> None:
        """Puts the engine to sleep to free GPU memory, if so configured; the next push wakes it."""
        if self._settings.sleep == 0 or self._process is None or self._asleep:
            return
        self._asleep = True
        try:
            self.ask("sleep", level=self._settings.sleep)
        except EngineFault as fault:  # the next push replaces it
            self._quarantine(fault)
            self._asleep = True
        for name in list(self._adapters)[:-1]:
            remove_folder(self._adapters.pop(name).folder)

    def _set_base(self, shared: SharedWeights, version: str, expected: proof.Reference) -> None:
        """Offers the weights of this model to the engine and its replacements, instead of the previous ones."""
        model: Any = shared.model
        own = self._settings
        way, device = own.transfer, own.offering_device(os.environ.get(VISIBLE)) if self._gpu else "cpu"

        def offered() -> OfferedWeights:
            made = offer_weights(model, way, device=device)
            shared.callback(made.let_go)
            return made

        with _room():
            weights = shared.once(("weights", way, device), offered).held()
        old, self._base = self._base, _Base(version, weights, written_config(model), expected)
        if old is not None:
            old.weights.let_go()
        self._forget_adapters()
        self.vocabulary = model.get_input_embeddings().weight.shape[0]

    def ask(self, kind: str, **message: Any) -> dict[str, Any]:
        """Sends a request to the proved engine and returns its answer. Raises EngineFault, after which the caller must
        `replace` it, and ModelError."""
        return self._answered(kind, lambda process: process.ask(kind, **message))

    def begin(self, kind: str, **message: Any) -> None:
        """Sends a request to the engine without waiting; `answer` must follow, with this kind. Raises EngineFault."""
        if self._process is None:
            raise EngineFault("the engine is not running")
        self._process.begin(kind, **message)

    def answer(self, kind: str) -> dict[str, Any]:
        """Waits for the engine's answer to the begun request. Raises as `ask`."""
        return self._answered(kind, lambda process: process.answer())

    def _answered(self, kind: str, ask: Callable[[EngineProcess], dict[str, Any]]) -> dict[str, Any]:
        if self._process is None:
            raise EngineFault("the engine is not running")
        try:
            answer = ask(self._process)
        except DivergedError as error:
            version = self.version
            self.close()
            raise _diverged(version) from error
        require_answer(kind, answer)
        return answer

    def replace(self, fault: EngineFault) -> None:
        """Quarantines the failed engine, and gives its weights to another. Raises InfrastructureError."""
        try:
            self._quarantine(fault)
            self.prove_some_engine()
        except BaseException:
            self.close()
            raise

    def succeeded(self) -> None:
        """Resets the count of engine failures after a success."""
        self._failures = 0

    def request(
        self, ids: Sequence[int], stops: Sequence[int], tokens: int, temperature: float, seed: int
    ) -> dict[str, Any]:
        """Builds a numbered sampling request for the newest weights; its salt isolates other versions' keys."""
        self._numbers += 1
        return {
            "number": self._numbers,
            "ids": list(ids),
            "stops": list(stops),
            "tokens": tokens,
            "temperature": temperature,
            "seed": seed,
            "salt": self._salt,
            "adapter": self._newest.name if self._adapters else "",
        }

    def check_version(self, report: dict[str, Any], tokens: int) -> None:
        """Raises EngineFault unless vLLM itself reports that the current base drew all of a request's tokens."""
        wanted = self._base.version if self._base else ""
        if report["versions"] != [[wanted, 0, tokens]]:
            raise EngineFault(
                f"the engine reports {report['versions']} for {tokens} tokens that {wanted!r} should have drawn"
            )

    def close(self) -> None:
        """Ends the engine process and removes all files. Closing again does nothing."""
        self._stop()
        self._forget_adapters()
        if self._base is not None:
            self._base.weights.let_go()
        self._base = None

    @property
    def _newest(self) -> _Adapter:
        return next(reversed(self._adapters.values()))

    def _expected(self, shared: SharedWeights, version: str, of: str = "all") -> proof.Reference:
        """Returns the trainer's log-probabilities, which the engine must match; `of` names the active part of the
        model. Raises ModelError for too few positions or non-finite probabilities."""
        model: Any = shared.model
        positions = getattr(model.config, "max_position_embeddings", None)
        if positions is not None and positions < self._slots:
            raise ModelError(
                f"{type(model).__name__} has {positions} positions, and a conversation may have {self._slots} tokens",
                hint=f"set the budget of a conversation to at most {positions} tokens",
            )
        expected = shared.once(("reference", of, self._slots), lambda: proof.reference(model, self._slots))
        if not expected.finite:
            raise _diverged(version)
        return expected

    def prove_some_engine(self) -> None:
        """Loads the current weights into the engine and proves them; replaces an engine that fails."""
        self._start_some_engine()
        while not self._hand_over():
            self._start_some_engine()

    def _start_some_engine(self) -> None:
        """Ensures that an engine process runs. It dies with the thread that started it."""
        while True:
            base = self._base
            assert base is not None
            try:
                self._ready_process((base.config, self._rank))
                return
            except EngineFault as fault:
                self._quarantine(fault)

    def _hand_over(self, take: Callable[[], None] | None = None) -> bool:
        """Loads the current weights into the engine and proves them; False if the engine was quarantined."""
        try:
            (take or self._take_all)()
        except EngineFault as fault:
            self._quarantine(fault)
            return False
        return True

    def _take_all(self) -> None:
        base = self._base
        assert base is not None
        if self._asleep:
            self.ask("wake")
            self._asleep = False
        self._load(base)
        if self._adapters:
            self._adapt(self._newest, ())
            for name in list(self._adapters)[:-1]:
                remove_folder(self._adapters.pop(name).folder)

    def _take_beside(self, new: _Adapter, drop: Sequence[str]) -> None:
        """Loads a LoRA adapter beside the engine's frozen weights."""
        self._adapt(new, drop)
        for name in drop:
            remove_folder(self._adapters.pop(name).folder)

    def _load(self, base: _Base) -> None:
        """Loads a whole model into the engine and proves it. Raises EngineFault."""
        self._new_salt(base.version)
        weights = base.weights
        with _handing_over(weights.offer.taken(self._settings.tensor_parallel)) as told:
            found = self.ask("load", weights=told, aliases=weights.aliases, version=base.version)
        if found.get("digest") != weights.digest:
            raise EngineFault(f"the engine read other weights than those of {base.version}")
        if "refused" in found:
            raise ModelError(
                f"vLLM does not accept weights of this model: {found['refused']}", hint="set model.engine to torch"
            )
        if found.get("version") != base.version:
            raise EngineFault(f"the engine reports version {found.get('version')!r} instead of {base.version!r}")
        self._prove(base.reference, "")

    def _adapt(self, new: _Adapter, drop: Sequence[str]) -> None:
        """Loads a LoRA adapter into the engine and proves it. Raises EngineFault."""
        self._new_salt(new.version)
        found = self.ask("adapt", name=new.name, path=str(new.folder), drop=list(drop))
        if found.get("digest") != new.digest:
            raise EngineFault(f"the engine read another adapter than that of {new.version}")
        if found.get("bound") != new.layers:
            raise EngineFault(f"the engine put the adapter on {found.get('bound')} of {new.layers} layers")
        self._prove(new.reference, new.name)

    def _prove(self, wanted: proof.Reference, adapter: str) -> None:
        """Compares the engine's log-probabilities with the trainer's, and both with the last push and the weights below
        an adapter. Raises EngineFault."""
        formats = (self._dtype, wanted.dtype, *(["fp8"] if self._settings.fp8 else []))
        tolerance = max(proof.TOLERANCE[one] for one in formats)
        given = self.ask("score", conversations=wanted.prompts, temperature=1.0, adapter=adapter)["scores"]
        worst, seen = proof.compare_scores(wanted, given, list(self._seen.values()), tolerance)
        for lap in range(2):  # the second lap hits the first one's cached prompts
            drawn = self._sample_behind(wanted.prompts, adapter)
            worst = max(worst, proof.compare_sampled(wanted, [value for value, _ in drawn], tolerance))
            if lap == 0 and any(cached for _, cached in drawn):
                raise EngineFault("new weights hit a cached prompt, which was computed under others")
        base = {name: one for name, one in self._seen.items() if name == "" and adapter}
        self._seen, self.worst_difference = {**base, adapter: (wanted, seen)}, worst

    def _sample_behind(self, prompts: Sequence[tuple[int, ...]], adapter: str) -> list[tuple[float, int]]:
        """Samples one greedy token after each prompt; returns its log-probability and the prompt's cached tokens."""
        asked = [self.request(prompt, (), 1, 0.0, 0) | {"adapter": adapter} for prompt in prompts]
        reports = {report["number"]: report for report in self.ask("probe", submit=asked)["reports"]}
        found = []
        for one in asked:
            report = reports.get(one["number"])
            if report is None or len(report["logprobs"]) != 1:
                raise EngineFault("the engine did not sample the requested tokens")
            self.check_version(report, 1)
            found.append((report["logprobs"][0], report["cached"]))
        return found

    def _new_salt(self, version: str) -> None:
        """Sets a new salt for the prefix cache, so that a repeated push is another version to it."""
        self._pushes += 1
        self._salt = f"{version} {self._pushes}"

    def _ready_process(self, shape: tuple[str, int]) -> None:
        """Starts an engine process for this shape (config.json, adapter rank) unless it runs."""
        if self._process is not None and self._shape == shape:
            return
        self._stop()
        config, rank = shape
        self._folder = private_folder(len(config))
        (self._folder / "config.json").write_text(config)
        cache = None if self._gpu else cache_bytes(config, self._rows, self._slots)
        settings: dict[str, Any] = {"model": str(self._folder), "rows": self._rows, "slots": self._slots}
        settings |= {"dtype": self._dtype, "cache_bytes": cache}
        if rank:
            settings |= {"adapters": 1, "adapter_rank": rank}
        own = self._settings
        if own.needs_gpu:
            settings |= {"parallel": own.tensor_parallel, "memory_share": own.memory_share, "sleeps": own.sleep > 0}
            settings |= {"graphs": own.graphs, "fp8": own.fp8}
        try:
            self._process = self._start(settings)
        except BaseException:
            self._stop()
            raise
        self._shape = shape

    def _quarantine(self, fault: EngineFault) -> None:
        """Ends the failed engine for good. Raises InfrastructureError after too many failures."""
        self.quarantined.append(str(fault))
        log.warning("engine %s is quarantined: %s", self.pid, fault)
        self._stop()
        self._failures += 1
        if self._failures > REPLACEMENTS:
            raise InfrastructureError(
                f"{self._failures} engines in a row failed, the last with: {fault}",
                hint="check the machine's memory and load, or set model.engine = torch",
            ) from fault

    def _stop(self) -> None:
        if self._process is not None:
            self._preempted += self._process.preempted
            self._process.kill()
        if self._folder is not None:
            remove_folder(self._folder)
        self._process, self._folder, self._seen, self._asleep = None, None, {}, False

    def _forget_adapters(self) -> None:
        for adapter in self._adapters.values():
            remove_folder(adapter.folder)
        if self._adapters and self._process is not None:
            self._stop()  # drops its adapters; a new base below adapters is rare
        self._adapters, self._rank = {}, 0


class _Push:
    """`PushUnderWay` of a supervisor."""

    def __init__(self, supervisor: VllmSupervisor, proof: PushProof, hand_over: Callable[[], bool]) -> None:
        self._supervisor, self._proof, self._hand_over = supervisor, proof, hand_over
        self._taken = False
        self._error: BaseException | None = None

    def hand_over(self) -> None:
        try:
            self._taken = self._hand_over()
        except BaseException as error:  # noqa: BLE001 - raised in `proved`
            self._error = error

    def proved(self) -> PushProof:
        try:
            if self._error is not None:
                raise self._error
            if not self._taken:
                self._supervisor.prove_some_engine()
        except BaseException:
            self._supervisor.close()
            raise
        return self._proof


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfrastructureError(
            f"the weights cannot be handed to the engine: {error.strerror or error}",
            hint="free space in /dev/shm or in the temporary folder",
        ) from error


@contextmanager
def _handing_over(taken: AbstractContextManager[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    try:
        with taken as told:
            yield told
    except (RuntimeError, OSError) as error:
        raise EngineFault(f"the weights cannot be handed to the engine: {error}") from error


def _diverged(version: str) -> NoProbabilitiesError:
    return NoProbabilitiesError(
        f"the weights {version} give no finite probabilities",
        hint="training diverged or the file is damaged: return to an earlier checkpoint",
    )
