"""Keeps one vLLM process that is proved to hold the trainer's weights, and replaces it when it is not to be trusted.

What always holds. After each push the digest is read back, the version is compared, and log-probabilities are compared
with the trainer's own, also behind a prompt that lies in the cache; until then nobody gets at the engine. An engine
that fails a proof, dies, hangs or contradicts itself is put aside: its process group is killed, and another one is
started, given the same weights and proved. After `REPLACEMENTS` in a row without a success the infrastructure has
failed (InfrastructureError). A LoRA adapter comes under a new name for each version; the base below it never changes.
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
from appliance.inference.vllm.answers import require_answer
from appliance.inference.vllm.placement import VllmSettings
from appliance.inference.vllm.process import DivergedError, EngineFault, EngineProcess
from appliance.inference.vllm.sizes import cache_bytes, rank_of
from appliance.inference.vllm.transfers.folders import private_folder, remove_folder
from appliance.inference.vllm.weights import OfferedWeights, offer_weights, write_files, written_config
from runtime.errors import InfrastructureError

log = logging.getLogger(__name__)

REPLACEMENTS = 3
"""Engines that are started in a row, without one turn in between, before the infrastructure has failed."""
Start = Callable[[dict[str, Any]], EngineProcess]
"""Starts a process with one engine of these settings."""


@dataclass(frozen=True)
class _Base:
    """A whole model."""

    version: str
    weights: OfferedWeights
    config: str
    reference: proof.Reference


@dataclass(frozen=True)
class _Adapter:
    """A LoRA adapter for it."""

    name: str
    """What vLLM calls it: a new one with each push, for it keeps keys and weights by the name."""
    version: str
    folder: Path
    digest: str
    layers: int
    """Of the model, that compute with it."""
    reference: proof.Reference


class VllmSupervisor:
    """Owns the process. Not thread-safe."""

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
        """What trainer and engine answered: for whole weights, and for the adapter that was proved last, by name."""
        self._pushes = self._numbers = self._failures = 0
        self._salt = ""
        self._preempted = 0
        self.vocabulary = 0
        self.quarantined: list[str] = []
        """Why engines were put aside, in order."""
        self.worst_difference = math.nan
        """Of a log-probability from the trainer's, in the last proof."""

    @property
    def version(self) -> str:
        """What new requests are answered with; empty before the first push, and while it sleeps."""
        if self._asleep:
            return ""
        if self._adapters:
            return self._newest.version
        return self._base.version if self._base else ""

    @property
    def base(self) -> str:
        """Digest of the whole weights at hand, or of those below the adapters; empty before the first push."""
        return self._base.weights.digest if self._base else ""

    @property
    def pid(self) -> int | None:
        """Of the process at hand, which leads its group."""
        return self._process.pid if self._process else None

    @property
    def cache(self) -> tuple[int | None, int]:
        """Tokens that its key-value cache holds, None before there is one, and those of a block."""
        return (self._process.cache_tokens, self._process.block) if self._process else (None, 1)

    def preemptions(self) -> int:
        """Counts those of all its processes; of one that fails, as many as it has said."""
        return self._preempted + (self._process.count_preemptions() if self._process else 0)

    def push(self, model: Any, version: str) -> PushProof:
        """Has an engine hold a transformers model's weights, and proves it. Of one with an adapter, the frozen weights
        are handed over only where they are not at hand.

        Raises ModelError, InfrastructureError."""
        with SharedWeights(model) as weights:
            under_way = self.begin_push(weights, version)
            under_way.hand_over()
            return under_way.proved()

    def begin_push(self, weights: SharedWeights, version: str) -> PushUnderWay:
        """Does what of a push needs the model, or starts a process. Raises as `push`."""
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
        """Has the engine give back what it holds of a GPU, where that is asked for; the next push wakes it."""
        if self._settings.sleep == 0 or self._process is None or self._asleep:
            return
        self._asleep = True
        try:
            self.ask("sleep", level=self._settings.sleep)
        except EngineFault as fault:  # which the next push replaces
            self._quarantine(fault)
            self._asleep = True
        for name in list(self._adapters)[:-1]:
            remove_folder(self._adapters.pop(name).folder)

    def _set_base(self, shared: SharedWeights, version: str, expected: proof.Reference) -> None:
        """Has the weights of this model be those that the next engine is given."""
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
        """Asks the proved engine. Raises EngineFault, which is an order to `replace` it, and ModelError."""
        return self._answered(kind, lambda process: process.ask(kind, **message))

    def begin(self, kind: str, **message: Any) -> None:
        """Asks it without waiting: `answer` is called next, with this kind. Raises EngineFault."""
        if self._process is None:
            raise EngineFault("there is no engine")
        self._process.begin(kind, **message)

    def answer(self, kind: str) -> dict[str, Any]:
        """Returns the answer to what was begun. Raises as `ask`."""
        return self._answered(kind, lambda process: process.answer())

    def _answered(self, kind: str, ask: Callable[[EngineProcess], dict[str, Any]]) -> dict[str, Any]:
        if self._process is None:
            raise EngineFault("there is no engine")
        try:
            answer = ask(self._process)
        except DivergedError as error:
            version = self.version
            self.close()
            raise _diverged(version) from error
        require_answer(kind, answer)
        return answer

    def replace(self, fault: EngineFault) -> None:
        """Puts the engine aside, and has another one hold the weights in use. Raises InfrastructureError."""
        try:
            self._quarantine(fault)
            self.prove_some_engine()
        except BaseException:
            self.close()
            raise

    def succeeded(self) -> None:
        """Says that the engine is of use: failures are counted anew."""
        self._failures = 0

    def request(
        self, ids: Sequence[int], stops: Sequence[int], tokens: int, temperature: float, seed: int
    ) -> dict[str, Any]:
        """A new request, with a number of its own, for the newest version; its salt keeps other versions' keys away."""
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
        """Raises EngineFault unless vLLM itself says that the base at hand drew all of a request's tokens."""
        wanted = self._base.version if self._base else ""
        if report["versions"] != [[wanted, 0, tokens]]:
            raise EngineFault(
                f"the engine says {report['versions']} of {tokens} tokens that {wanted!r} should have drawn"
            )

    def close(self) -> None:
        """Ends the process and removes all files. Closing again does nothing."""
        self._stop()
        self._forget_adapters()
        if self._base is not None:
            self._base.weights.let_go()
        self._base = None

    @property
    def _newest(self) -> _Adapter:
        return next(reversed(self._adapters.values()))

    def _expected(self, shared: SharedWeights, version: str, of: str = "all") -> proof.Reference:
        """`of` names what of the model computes now."""
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
        """Has the engine at hand, or else a fresh one, take the weights in use and prove it."""
        self._start_some_engine()
        while not self._hand_over():
            self._start_some_engine()

    def _start_some_engine(self) -> None:
        """Has a process be there. The kernel ends it with the thread that started it."""
        while True:
            base = self._base
            assert base is not None
            try:
                self._ready_process((base.config, self._rank))
                return
            except EngineFault as fault:
                self._quarantine(fault)

    def _hand_over(self, take: Callable[[], None] | None = None) -> bool:
        """Has the engine at hand take the weights in use and prove it; says whether it did, or was put aside."""
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
        """Has it take an adapter beside the frozen weights that it holds."""
        self._adapt(new, drop)
        for name in drop:
            remove_folder(self._adapters.pop(name).folder)

    def _load(self, base: _Base) -> None:
        """Hands over a whole model and proves it. Raises EngineFault."""
        self._new_salt(base.version)
        weights = base.weights
        with _handing_over(weights.offer.taken(self._settings.tensor_parallel)) as told:
            found = self.ask("load", weights=told, aliases=weights.aliases, version=base.version)
        if found.get("digest") != weights.digest:
            raise EngineFault(f"the engine read other weights than it was given as {base.version}")
        if "refused" in found:
            raise ModelError(
                f"vLLM has no place for weights of this model: {found['refused']}", hint="set model.engine to torch"
            )
        if found.get("version") != base.version:
            raise EngineFault(f"the engine claims to hold {found.get('version')!r}, and was given {base.version!r}")
        self._prove(base.reference, "")

    def _adapt(self, new: _Adapter, drop: Sequence[str]) -> None:
        """Hands over an adapter and proves it. Raises EngineFault."""
        self._new_salt(new.version)
        found = self.ask("adapt", name=new.name, path=str(new.folder), drop=list(drop))
        if found.get("digest") != new.digest:
            raise EngineFault(f"the engine read another adapter than it was given as {new.version}")
        if found.get("bound") != new.layers:
            raise EngineFault(f"the engine put the adapter on {found.get('bound')} of {new.layers} layers")
        self._prove(new.reference, new.name)

    def _prove(self, wanted: proof.Reference, adapter: str) -> None:
        """Compares the engine with the trainer, and both with the last push and with the weights below an adapter."""
        tolerance = max(proof.TOLERANCE[self._dtype], proof.TOLERANCE[wanted.dtype])
        given = self.ask("score", conversations=wanted.prompts, temperature=1.0, adapter=adapter)["scores"]
        worst, seen = proof.compare_scores(wanted, given, list(self._seen.values()), tolerance)
        for lap in range(2):  # the second finds the first one's prompts in the cache
            drawn = self._sample_behind(wanted.prompts, adapter)
            worst = max(worst, proof.compare_sampled(wanted, [value for value, _ in drawn], tolerance))
            if lap == 0 and any(cached for _, cached in drawn):
                raise EngineFault("new weights found a prompt in the cache: it was computed under others")
        base = {name: one for name, one in self._seen.items() if name == "" and adapter}
        self._seen, self.worst_difference = {**base, adapter: (wanted, seen)}, worst

    def _sample_behind(self, prompts: Sequence[tuple[int, ...]], adapter: str) -> list[tuple[float, int]]:
        """The likeliest token's log-probability behind each prompt, and how many tokens came from the cache."""
        asked = [self.request(prompt, (), 1, 0.0, 0) | {"adapter": adapter} for prompt in prompts]
        reports = {report["number"]: report for report in self.ask("probe", submit=asked)["reports"]}
        found = []
        for one in asked:
            report = reports.get(one["number"])
            if report is None or len(report["logprobs"]) != 1:
                raise EngineFault("the engine sampled something else than it was asked for")
            self.check_version(report, 1)
            found.append((report["logprobs"][0], report["cached"]))
        return found

    def _new_salt(self, version: str) -> None:
        """The same weights pushed again are another version to the cache."""
        self._pushes += 1
        self._salt = f"{version} {self._pushes}"

    def _ready_process(self, shape: tuple[str, int]) -> None:
        """Starts a process whose engine has this shape (config.json, rank of adapters) unless it is there."""
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
            settings |= {"graphs": own.graphs}
        try:
            self._process = self._start(settings)
        except BaseException:
            self._stop()
            raise
        self._shape = shape

    def _quarantine(self, fault: EngineFault) -> None:
        """Puts the engine aside for good. Raises InfrastructureError when it was one too many."""
        self.quarantined.append(str(fault))
        log.warning("engine %s is put aside: %s", self.pid, fault)
        self._stop()
        self._failures += 1
        if self._failures > REPLACEMENTS:
            raise InfrastructureError(
                f"{self._failures} engines in a row failed, the last one so: {fault}",
                hint="look at the machine's memory and load; model.engine = torch works without vLLM",
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
            self._stop()  # with its adapters; a new base rarely comes below them
        self._adapters, self._rank = {}, 0


class _Push:
    """Is a `PushUnderWay`."""

    def __init__(self, supervisor: VllmSupervisor, proof: PushProof, hand_over: Callable[[], bool]) -> None:
        self._supervisor, self._proof, self._hand_over = supervisor, proof, hand_over
        self._taken = False
        self._error: BaseException | None = None

    def hand_over(self) -> None:
        try:
            self._taken = self._hand_over()
        except BaseException as error:  # noqa: BLE001 - raised by who waits for it
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
            hint="make room in /dev/shm or in the folder for temporary files",
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
