"""Updates a model's weights within the available memory, for any kind of training.

Invariants: a pass that runs out of memory is retried once at half size, restarting the update's gradient; from then on
no pass has more tokens, including padding, except a single longer conversation, and the checkpoint records the limit. A
gradient that is not finite never reaches a weight.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from appliance.inference.adapters import whole
from appliance.inference.engine import ModelFiles
from appliance.inference.folder import open_model
from appliance.inference.nf4 import quantise
from appliance.learning.errors import LearningError, NotFiniteError
from appliance.learning.muon import Muon
from appliance.learning.offloading import hosted, offload_inputs
from appliance.learning.packing import Tokens
from appliance.learning.ranks import ALONE, Ranks
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.scoring import Scorer, Scores
from appliance.learning.state import Learner
from appliance.learning.trained_weights import add_adapter
from appliance.records.record import Record


class SharedScorer(nn.Module):
    """Model and scorer as one module, so that sharded weights are gathered before scoring."""

    def __init__(self, model: nn.Module, scorer: Scorer) -> None:
        super().__init__()
        self.model = model
        self._scorer = scorer

    def forward(self, ids: Tensor, mask: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        found = self._scorer(ids, mask, temperature)
        return found.logprobs, found.entropy


def split(model: Any, scorer: Scorer, *, offload: bool = False) -> SharedScorer:
    """Shards the model's weights over the ranks in place: block by block, then the rest. Requires torch's process
    group. The scorer locates the output layer first, while it is whole. With `offload`, shards rest in main memory."""
    from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, OffloadPolicy, fully_shard

    scorer.look()
    policy = CPUOffloadPolicy(pin_memory=next(model.parameters()).is_cuda) if offload else OffloadPolicy()
    whole_model = SharedScorer(model, scorer)
    for block in _blocks(model):
        fully_shard(block, offload_policy=policy)
    fully_shard(whole_model, offload_policy=policy)
    for module in whole_model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # a loss is divided by the total over all ranks
            module.set_force_sum_reduction_for_comms(True)
    return whole_model


def scored(shared: SharedScorer, ids: Tensor, mask: Tensor, temperature: float) -> Scores:
    """Computes log-probability and entropy of the masked tokens, as `Scorer` does."""
    return Scores(*shared(ids, mask, temperature))


def _blocks(model: nn.Module) -> list[nn.Module]:
    """Returns the transformer blocks of a causal language model: its longest module list."""
    lists = [one for one in model.modules() if isinstance(one, nn.ModuleList) and len(one)]
    longest = max(lists, key=len, default=None)
    return list(longest) if longest is not None else []


B = TypeVar("B", bound=Tokens)
T = TypeVar("T")


class UpdatingLearner(Learner):
    rows: ClassVar[str]
    """Unit of a padded pass in messages."""
    named: ClassVar[str]
    """Name of a step in messages."""
    rate: ClassVar[str]
    """Key of the learning rate."""

    def __init__(
        self,
        model: nn.Module,
        recipe: Record,
        way: TrainingRecipe,
        seed: int,
        companions: Mapping[str, bytes] | None,
        ranks: Ranks = ALONE,
        **optimizer: Any,
    ) -> None:
        """Prepares the model for training in place and creates its optimizer. `recipe` identifies checkpoints, `way`
        decides how weights are trained: an adapter is added here. `optimizer` are settings beside the usual ones;
        with several `ranks` each keeps its shard. Raises LearningError for a model that does not support this."""
        way.require_learners(ranks.world)
        prepare(model, way, seed)
        scorer = Scorer(model, packing=way.packing, precision=way.precision)
        device, moments = next(model.parameters()).device, way.offloads("moments")
        self._score: Callable[..., Scores] = scorer
        if not ranks.alone:
            self._score = partial(scored, split(model, scorer, offload=moments))
        made = make_optimizer(model, way, rests=moments and ranks.alone, **optimizer)
        super().__init__(model, recipe, seed, made, companions, ranks)
        self._device = device  # shards may rest elsewhere
        self._way = way
        self.on_pass: Callable[[int, int], None] | None = None
        """Called after each forward pass of an update, with its number and their count."""

    def _shared(self, passes: Sequence[Sequence[B]]) -> Iterator[tuple[Sequence[B], bool]]:
        """Yields this rank's forward passes of an update, as `Ranks.share`, and calls `on_pass` after each."""
        for number, one in enumerate(self._ranks.share(passes), 1):
            yield one
            if self.on_pass is not None:
                self.on_pass(number, len(passes))

    def require_finite(self, ids: Sequence[int]) -> None:
        """Raises NotFiniteError if a trained weight, or a score of these tokens, is not finite."""
        require_finite(self.model, self._score, ids, self.step)

    def _in_memory(self, update: Callable[[Sequence[B]], T], batch: Sequence[B]) -> T:
        """Runs `update`, one optimizer step, on `batch`, and repeats it once with halved forward passes if memory runs
        out."""
        try:
            return update(batch)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            self._optimizer.zero_grad(set_to_none=True)
            size = self._pass_size(batch)
            if self._halved or size < 2 or not self._ranks.alone:
                raise self._too_small(error, size) from error
        self._halved, self._pass_tokens = True, size // 2 * self._row_tokens(batch)
        return self._in_memory(update, batch)

    def _row_tokens(self, batch: Sequence[Tokens]) -> int:
        """Returns the tokens per unit of a forward pass's size: 1 if packed, else the longest sample's."""
        return 1 if self._way.packing else max(len(one.ids) for one in batch)

    def _whole_pass(self, batch: Sequence[Tokens]) -> int:
        """Returns the recipe's size of a forward pass, capped by the batch, so that halving has an effect."""
        if self._way.packing:
            return min(self._way.micro_batch_tokens, sum(len(one.ids) for one in batch))
        return min(self._way.micro_batch, len(batch))

    def _pass_size(self, batch: Sequence[Tokens]) -> int:
        """Returns the current size of a forward pass, in rows, or in tokens if packed; smaller after memory ran out."""
        size = self._whole_pass(batch)
        if not self._halved:
            return size
        return max(1, min(size, self._pass_tokens // self._row_tokens(batch)) if self._pass_tokens else size // 2)

    def _limited(self) -> dict[str, float]:
        """Returns the figure `pass_tokens`, the maximum tokens per forward pass with padding; empty unless memory ran
        out."""
        return {"pass_tokens": float(self._pass_tokens)} if self._pass_tokens else {}

    def _take_step(self, longest: float) -> float:
        """Clips the gradient to norm `longest`, takes the optimizer step, and returns the norm before clipping. Raises
        NotFiniteError before any weight changes, LearningError if the moments do not fit."""
        norm = float(whole(nn.utils.clip_grad_norm_(self.model.parameters(), longest)))
        self._require_finite_value("gradient", norm)
        try:
            self._optimizer.step()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            # Some weights may have been updated: no retry from here.
            raise self._no_moments(error) from error
        self._optimizer.zero_grad(set_to_none=True)  # sampling and pushing follow, for which memory is needed
        return norm

    def _no_moments(self, error: BaseException) -> LearningError:
        smaller = ", or training.offload to moments" if self._could_offload("moments") else ""
        smaller += ", or training.optimizer to adamw_8bit" if self._ranks.alone else ""
        return LearningError(
            f"the memory is too small for the optimizer's moments: {_reason(error)}",
            hint=f"set training.method to lora{smaller}; see `assay plan`",
        )

    def _could_offload(self, part: Literal["activations", "moments"]) -> bool:
        there = self._device.type == "cuda" and not self._way.offloads(part)
        return there and (part == "moments" or self._way.gradient_checkpointing)

    def _require_finite_value(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            self._optimizer.zero_grad(set_to_none=True)
            raise NotFiniteError(
                f"the {what} of {self.named} {self.step} is {value}",
                hint=f"return to the last checkpoint and lower {self.rate}",
            )

    def _too_small(self, error: BaseException, size: int) -> LearningError:
        key, unit = ("micro_batch_tokens", "tokens") if self._way.packing else ("micro_batch", self.rows)
        reason = _reason(error)
        if not self._ranks.alone:
            reason += " (several learners cannot halve it: the others wait inside the pass)"
        ways = [
            *((f"set training.{key} lower{' still' if self._halved else ''}",) if size > 1 else ()),
            *(() if self._way.gradient_checkpointing else ("set training.gradient_checkpointing to true",)),
            *(("set training.offload to activations",) if self._could_offload("activations") else ()),
            *(() if self._way.adapts else ("set training.method to lora",)),
            "lower recipe.agent.max_tokens",
        ]
        return LearningError(
            f"the memory is too small for a pass of {size} {unit}"
            f"{', even after halving passes' if self._halved else ''}: {reason}",
            hint=f"{', or '.join(ways)}; see `assay plan`",
        )


def halving(figures: Mapping[str, float], way: TrainingRecipe) -> str:
    """Returns the warning that a step's forward passes were halved for lack of memory; empty without that."""
    most = int(figures.get("pass_tokens", 0))
    key = f"training.micro_batch{'_tokens' * way.packing}"
    said = f"memory is too small for a pass of the size that {key} allows: passes now have at most {most} tokens"
    return f"{said}, padding included; lower {key} so that no cycle tries a larger one first" if most else ""


def require_finite(model: nn.Module, score: Callable[..., Scores], ids: Sequence[int], step: int) -> None:
    """Raises NotFiniteError if a trained weight, or a score of these tokens, is not finite; `step` is the next one to
    take."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with torch.no_grad():
        sound = all(bool(torch.isfinite(parameter).all()) for parameter in trained)
        read = torch.tensor([list(ids)], dtype=torch.long, device=trained[0].device)
        scores = score(read, torch.ones_like(read, dtype=torch.bool), 1.0)
        sound = sound and bool(torch.isfinite(scores.logprobs).all() and torch.isfinite(scores.entropy).all())
    if not sound:
        raise NotFiniteError(
            f"the weights after step {step - 1} give no finite probabilities",
            hint="return to the last checkpoint and lower training.learning_rate",
        )


def _reason(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0][:200]


def is_out_of_memory(error: BaseException) -> bool:
    """True if a GPU or CPU allocator failed; the CPU's has no exception class of its own."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


BETAS = (0.9, 0.95)


def make_optimizer(
    model: nn.Module, recipe: TrainingRecipe, *, rests: bool = False, **others: Any
) -> torch.optim.Optimizer:
    """Creates the model's optimizer, without weight decay unless set in `others`. With `rests`, its moments rest in
    main memory. Raises LearningError if 8-bit moments are unavailable."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    settings: dict[str, Any] = {"lr": recipe.learning_rate, "betas": BETAS, "weight_decay": 0.0} | others
    if recipe.optimizer == "adamw":
        return (hosted(torch.optim.AdamW) if rests else torch.optim.AdamW)(trained, **settings)
    if recipe.optimizer == "muon":
        tables = {id(weight) for one in model.modules() if isinstance(one, nn.Embedding) for weight in one.parameters()}
        if (head := model.get_output_embeddings()) is not None:  # type: ignore[operator]
            tables.add(id(head.weight))
        hidden = [weight for weight in trained if weight.ndim == 2 and id(weight) not in tables]
        inside = set(map(id, hidden))
        return Muon(hidden, [weight for weight in trained if id(weight) not in inside], **settings)
    try:
        optim = importlib.import_module("bitsandbytes.optim")
    except (ImportError, OSError, RuntimeError) as error:
        raise LearningError(
            f"training.optimizer is adamw_8bit, but bitsandbytes cannot be loaded: {error}",
            hint="set training.optimizer to adamw, or install bitsandbytes 0.50 or later",
        ) from error
    made: torch.optim.Optimizer = (hosted(optim.AdamW8bit) if rests else optim.AdamW8bit)(trained, **settings)
    return made


LARGE = 50_000_000
"""Minimum parameters of a large model."""
THRESHOLD = 1 << 20
"""Minimum bytes of a block with pages of its own."""
_M_MMAP_THRESHOLD = -3


def return_freed_memory(model: nn.Module) -> bool:
    """Makes malloc return freed memory of a large model to the system, by fixing its mmap threshold for this process;
    True if done. C libraries other than glibc lack the call and are left alone."""
    if sum(one.numel() for one in (*model.parameters(), *model.buffers())) < LARGE:  # packed weights are buffers
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, THRESHOLD))


def open_for(files: ModelFiles, recipe: TrainingRecipe) -> Any:
    """Opens a model in the numeric type that the recipe trains in: float32, unless frozen; `qlora` packs it. Raises
    ModelError."""
    dtype = torch.bfloat16 if recipe.adapts and recipe.precision == "bfloat16" else torch.float32
    if recipe.method != "qlora":
        return open_model(files, dtype=dtype)
    model = open_model(files)  # packing sees what float32 has more
    return_freed_memory(model)
    quantise(model, dtype, recipe.lora_rank)
    return model


def prepare(model: Any, recipe: TrainingRecipe, seed: int) -> None:
    """Prepares a transformers model for training in place: packs frozen weights, adds the LoRA adapter and gradient
    checkpointing if the recipe asks for them. Equal seeds give equal adapters. Raises LearningError or ModelError for a
    model that does not support the recipe."""
    return_freed_memory(model)
    if recipe.method == "qlora":
        quantise(model, model.dtype, recipe.lora_rank)
    if recipe.adapts:
        add_adapter(model, recipe.lora_rank, recipe.lora_alpha, seed)
    if recipe.gradient_checkpointing:
        # transformers 5.23 renamed it, and the old name warns.
        enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
        try:
            enable({"use_reentrant": False})
        except ValueError as error:
            raise LearningError(
                f"{type(model).__name__} does not support gradient checkpointing: {error}",
                hint="set training.gradient_checkpointing to false",
            ) from error
        if recipe.offloads("activations"):
            offload_inputs(model)
