"""Drives one vLLM engine in this process: opens it, loads weights, samples, scores.

Invariants: each call returns plain values (numbers, strings, lists) that fit in a message. Weights change only while no
request runs. A request's `salt` isolates its prefix cache entries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

EXTENSION = "appliance.inference.vllm.server.worker.WeightsExtension"
BLOCK = 32
"""Tokens per KV block: vLLM's CPU build requires multiples of it."""

DECODING_GRAPHS = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}
"""CUDA graphs of whole decoding steps, without the compiler, whose cache would outlive a push."""
FP8 = "fp8_per_channel"
"""vLLM's name for linear layers quantised as they load: weights by output channel, inputs by token."""
PREEMPTIONS = "vllm:num_preemptions"

NEEDED = {
    "vllm": ("EngineArgs", "SamplingParams", "LLMEngine"),
    "vllm.lora.request": ("LoRARequest",),
    "vllm.model_executor.layers.attention": ("is_deferred_attention_layer",),
    "vllm.model_executor.model_loader.reload.layerwise": ("get_layerwise_info",),
    "vllm.model_executor.model_loader.reload.meta": ("SKIP_LOAD_TENSORS",),
    "vllm.model_executor.model_loader.reload.utils": ("get_layer_tensors", "get_tensor_load_numel"),
    "vllm.sampling_params": ("RequestOutputKind",),
}
"""vLLM names that this program uses, by module."""
NEEDED_OF_ARGUMENTS = (
    "logprobs_mode",
    "worker_extension_cls",
    "kv_cache_memory_bytes",
    "async_scheduling",
    "hf_overrides",
    "enable_sleep_mode",
    "quantization",
)
NEEDED_OF_ENGINE = (
    "add_request",
    "abort_request",
    "step",
    "has_unfinished_requests",
    "collective_rpc",
    "reset_prefix_cache",
    "get_metrics",
    "sleep",
    "wake_up",
)
NEEDED_OF_CORE = ("set_weight_version", "get_weight_version")


class UnfitError(Exception):
    """Unusable vLLM, or a model that it does not support; a retry is useless."""


class Diverged(Exception):
    """The weights give no finite probabilities."""


def missing_features() -> list[str]:
    """Lists the features that this engine requires and the installed vLLM lacks."""
    import importlib

    lacks = []
    for module, names in NEEDED.items():
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            lacks.append(f"{module} ({error})")
            continue
        lacks += [f"{module}.{name}" for name in names if not hasattr(found, name)]
    if lacks:
        return lacks
    import vllm
    from vllm.v1.engine.core_client import EngineCoreClient
    from vllm.v1.engine.llm_engine import LLMEngine

    known = getattr(vllm.EngineArgs, "__dataclass_fields__", {})
    lacks += [f"EngineArgs.{name}" for name in NEEDED_OF_ARGUMENTS if name not in known]
    lacks += [f"LLMEngine.{name}" for name in NEEDED_OF_ENGINE if not hasattr(LLMEngine, name)]
    return lacks + [f"EngineCoreClient.{name}" for name in NEEDED_OF_CORE if not hasattr(EngineCoreClient, name)]


class VllmCore:
    """One vLLM engine with one model; `model` is a folder with a config.json, and weights come by `load`."""

    extension = EXTENSION

    def __init__(
        self,
        model: str,
        *,
        rows: int,
        slots: int,
        dtype: str,
        cache_bytes: int | None,
        adapters: int = 0,
        adapter_rank: int = 16,
        parallel: int = 1,
        memory_share: float | None = None,
        sleeps: bool = False,
        graphs: bool = False,
        fp8: bool = False,
    ) -> None:
        """Builds the vLLM engine with dummy weights, and scores two tokens to try it. Raises UnfitError if this vLLM
        lacks a needed feature or does not support the model; RuntimeError if memory was short, which a retry may cure.
        """
        lacks = missing_features()
        if lacks:
            raise UnfitError(f"unsupported vLLM: it lacks {', '.join(lacks)}")
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        self._adapters: dict[str, Any] = {}
        self._reports: dict[int, dict[str, Any]] = {}
        self._running: dict[int, str] = {}
        """Running requests, with their adapter."""
        self._made = 0
        self._loaded = False
        lora: dict[str, Any] = {}
        gpu = {"gpu_memory_utilization": memory_share} if memory_share else {}
        if adapters:
            lora = {
                "enable_lora": True,
                "max_loras": adapters,
                "max_cpu_loras": adapters,
                "max_lora_rank": adapter_rank,
            }
        try:
            self._engine = LLMEngine.from_engine_args(
                EngineArgs(
                    model=model,
                    skip_tokenizer_init=True,
                    load_format="dummy",
                    dtype=dtype,
                    enforce_eager=not graphs,
                    **({"compilation_config": DECODING_GRAPHS} if graphs else {}),
                    **({"quantization": FP8} if fp8 else {}),
                    # One more than a conversation: scoring a full one samples another token.
                    max_model_len=slots + 1,
                    max_num_seqs=rows,
                    block_size=BLOCK,
                    kv_cache_memory_bytes=cache_bytes,
                    tensor_parallel_size=parallel,
                    logprobs_mode="processed_logprobs",
                    async_scheduling=False,
                    enable_prefix_caching=True,
                    disable_log_stats=False,
                    generation_config="vllm",
                    hf_overrides={"head_dtype": "float32"},
                    worker_extension_cls=self.extension,
                    enable_sleep_mode=sleeps,
                    **gpu,
                    **lora,
                )
            )
            # An unsupported model fails at its first token at the latest.
            self.score([[0, 0]], 1.0)
        except (MemoryError, OSError):
            raise
        except Exception as error:
            said = in_one_line(error)
            if "memory" in said.lower():  # a retry may find more memory
                raise RuntimeError(said) from error
            raise UnfitError(said) from error

    def load(self, weights: dict[str, Any], aliases: dict[str, str], version: str) -> dict[str, Any]:
        """Replaces the engine's weights, clears the prefix cache, then sets the version. Returns a refusal of the first
        weights instead of raising, since no other engine would accept them."""
        self.drain()
        found = self._engine.collective_rpc("assay_load", kwargs={"weights": weights, "aliases": aliases})
        self.forget()
        if len({one["digest"] for one in found}) != 1:
            raise RuntimeError("the workers read different weights")
        if refused := next((one for one in found if "refused" in one), None):
            if self._loaded:
                raise RuntimeError(refused["refused"])
            return {**refused}
        self._loaded = True
        self._label(version)
        return {**found[0], "version": self._version()}

    def forget(self) -> None:
        """Clears vLLM's prefix cache."""
        self._engine.reset_prefix_cache()

    def adapt(self, name: str, path: str, drop: Sequence[str]) -> dict[str, Any]:
        """Adds a LoRA adapter under a new name and removes others. Aborts requests that use those, which have no caller
        any more: a running one would make vLLM load its adapter again."""
        from vllm.lora.request import LoRARequest

        if name in self._adapters:
            raise RuntimeError(f"adapter {name} exists already")
        files = [(Path(path) / one).read_bytes() for one in ("adapter_config.json", "adapter_model.safetensors")]
        digest = hashlib.sha256(b"".join(files)).hexdigest()
        self._made += 1
        request = LoRARequest(lora_name=name, lora_int_id=self._made, lora_path=path)
        self.abort([number for number, adapter in self._running.items() if adapter in drop])
        for old in drop:
            self._engine.remove_lora(self._adapters.pop(old).lora_int_id)
        if not self._engine.add_lora(request):
            raise RuntimeError(f"adapter {name} was not accepted")
        self._adapters[name] = request
        if self._engine.list_loras() != {one.lora_int_id for one in self._adapters.values()}:
            raise RuntimeError(f"after {name}, vLLM has other adapters than expected")
        return {"digest": digest, "bound": min(self._engine.collective_rpc("assay_bound", args=(self._made,)))}

    def sleep(self, level: int) -> None:
        """Frees the engine's GPU memory and all adapters; see `wake`."""
        self.drain()
        for old in list(self._adapters):
            self._engine.remove_lora(self._adapters.pop(old).lora_int_id)
        self.forget()
        self._label("asleep")
        self._engine.sleep(level)

    def wake(self) -> None:
        """Allocates the engine's GPU memory again after sleep. The weights are undefined until the next load."""
        self._engine.wake_up()

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
        """Begins to sample at most `tokens` after `ids`. vLLM always draws from the start of a seed's numbers, so a
        continued conversation gets a derived seed."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=temperature,
            seed=continued_seed(seed, len(ids)),
            max_tokens=tokens,
            stop_token_ids=stops,
            ignore_eos=True,
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        self._add(f"s{number}", ids, params, salt, adapter)

    def probe(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Samples these requests to their end and returns their reports; other requests' reports stay."""
        numbers = {request["number"] for request in requests}
        for request in requests:
            self.submit(**request)
        while numbers & self._running.keys():
            self.step()
        return [self._reports.pop(number) for number in numbers]

    def abort(self, numbers: Sequence[int]) -> None:
        self._engine.abort_request([f"s{number}" for number in numbers])
        for number in numbers:
            self._running.pop(number, None)

    def drain(self) -> None:
        """Aborts every sampling request; sampled tokens stay in the reports."""
        self._engine.abort_request([f"s{number}" for number in self._running])
        self._running.clear()

    def figures(self) -> dict[str, int]:
        """Returns the KV cache's tokens, the block size, and the preemptions since the engine was created, from vLLM's
        metrics."""
        counted = [int(metric.value) for metric in self._engine.get_metrics() if metric.name == PREEMPTIONS]
        if not counted:
            raise UnfitError(f"this vLLM does not count {PREEMPTIONS}")
        cache = self._engine.vllm_config.cache_config
        blocks = cache.num_gpu_blocks - 1  # one is reserved for empty slots
        return {"tokens": blocks * cache.block_size, "block": cache.block_size, "preemptions": sum(counted)}

    def step(self) -> bool:
        """Takes one decoding step for all requests; False without any. Raises Diverged."""
        if not self._running:
            return False
        for output in self._engine.step():
            self._take(output)
        return True

    def reports(self) -> list[dict[str, Any]]:
        """Returns and clears the new reports of sampling: new tokens by request, and how it ended."""
        found = list(self._reports.values())
        self._reports = {}
        return found

    @property
    def working(self) -> bool:
        """True if a sampling request is running."""
        return bool(self._running)

    @property
    def ended(self) -> bool:
        """True if a reported sampling request has ended."""
        return any(report["ended"] for report in self._reports.values())

    def score(self, conversations: Sequence[Sequence[int]], temperature: float, adapter: str = "") -> list[list[float]]:
        """Returns the log-probability of each token but the first of these conversations, without the prefix cache."""
        from vllm import SamplingParams

        self._engine.collective_rpc("assay_score_at", args=(temperature,))
        params = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0, ignore_eos=True, detokenize=False)
        for place, ids in enumerate(conversations):
            self._made += 1
            self._add(f"p{place}", list(ids), params.clone(), f"score {self._made}", adapter)
        found: dict[int, list[float]] = {}
        while len(found) < len(conversations):
            for output in self._engine.step():
                if output.request_id[0] == "s":
                    self._take(output)
                elif output.finished:
                    place = int(output.request_id[1:])
                    ids = conversations[place]
                    rows = output.prompt_logprobs[1:]
                    found[place] = [row[token].logprob for row, token in zip(rows, ids[1:], strict=True)]
        scores = [found[place] for place in range(len(conversations))]
        if not all(math.isfinite(value) for row in scores for value in row):
            raise Diverged
        return scores

    def _add(self, name: str, ids: list[int], params: Any, salt: str, adapter: str) -> None:
        prompt = {"prompt_token_ids": ids, "cache_salt": salt}
        lora = self._adapters[adapter] if adapter else None
        self._engine.add_request(name, prompt, params, lora_request=lora)
        if name[0] == "s":
            self._running[int(name[1:])] = adapter

    def _take(self, output: Any) -> None:
        number, made = int(output.request_id[1:]), output.outputs[0]
        report = self._reports.setdefault(
            number, {"number": number, "ids": [], "logprobs": [], "ended": "", "cached": 0, "versions": []}
        )
        for token, row in zip(made.token_ids, made.logprobs or (), strict=True):
            value = row[token].logprob
            if not math.isfinite(value):
                raise Diverged
            report["ids"].append(token)
            report["logprobs"].append(value)
        report["cached"] = output.num_cached_tokens or 0
        if output.finished:
            self._running.pop(number, None)
            report["ended"] = made.finish_reason or "abort"
            report["versions"] = [[span.version, span.start, span.end] for span in made.weight_versions or ()]

    def _label(self, version: str) -> None:
        self._engine.engine_core.set_weight_version(version)

    def _version(self) -> str:
        return str(self._engine.engine_core.get_weight_version())


def continued_seed(seed: int, known: int) -> int:
    """Derives the seed of a request that continues after `known` tokens: no two parts of a conversation share one."""
    digest = hashlib.sha256(f"{seed} {known}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def in_one_line(error: BaseException) -> str:
    """Formats an error as one line of bounded length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
