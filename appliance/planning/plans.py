"""Plan of one way of training: bytes of each phase, and hours.

Invariants: hours are an upper bound on tokens (every conversation at its maximum, every group refilled) and an estimate
of speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from appliance.learning.recipes.recipe import Recipe, TrainingRecipe
from appliance.planning.shapes import ONE, VLLM_SHARE, Gpu, Hardware, Layout, Shape
from appliance.planning.sizes import (
    GPU_CONTEXT,
    GPU_USABLE,
    HALF_KERNELS,
    PROCESS,
    SLACK,
    bytes_again,
    engine_bytes,
    engine_weight_bytes,
    half_copies,
    held_by_engines,
    learner_parts,
    moment_bytes,
    offered_bytes,
    offloaded_bytes,
    packed_bytes,
    pushed_copy_bytes,
    read_bytes,
    restored_bytes,
    split_parts,
    trained_parameters,
)


def left_for_engines(
    shape: Shape, gpu: Gpu, recipe: TrainingRecipe, max_tokens: int, layout: Layout, *, sleeps: bool
) -> int:
    """Returns the bytes of a GPU available to each engine beside a learner: the rest beside a step, or beside weights
    and moments if engines sleep during steps (`sleeps`), minus contexts."""
    whole = learner_parts(shape, recipe, max_tokens, gpu=True)
    parts, copies = split_parts(shape, recipe, whole, layout.learners), half_copies(shape, recipe)
    if sleeps:
        held = parts["weights"] - copies + parts["moments"]
    else:  # each of several has the whole weights once, before they are split
        held = max(sum(parts.values()), whole["weights"] - copies if layout.learners > 1 else 0)
    left = int(gpu.free * GPU_USABLE) - int((GPU_CONTEXT + held) * SLACK)
    return left // layout.together - GPU_CONTEXT


def least_of_engine(shape: Shape, gpu: Gpu, max_tokens: int, layout: Layout) -> int:
    """Returns an engine's minimum bytes: one conversation, and at least a hundredth of the GPU."""
    needed = int(engine_bytes(shape, max_tokens, 1, gpu=True, layout=layout) * SLACK) // layout.tensor_parallel
    return max(needed, -(-gpu.total // 100))


def share_of(gpu: Gpu, room: int, needed: int) -> float:
    """Returns `room` bytes as a share of a GPU, in whole hundredths; 0 if below `needed`."""
    return 100 * room // gpu.total / 100 if room >= needed else 0.0


CORE_FLOPS = 25e9
"""Float32 operations per second of a CPU core, for matrix products of this size."""
CPU_BANDWIDTH = HOST_BANDWIDTH = 12e9
"""Bytes per second at which a CPU reads weights, and at which a GPU and main memory exchange numbers."""
BFLOAT16 = {True: 2.5, False: 1 / 12}
"""Speed of a CPU in bfloat16 as a multiple of that in float32, by whether it multiplies bfloat16 itself. Measured."""
GPU_SHARE = (0.3, 0.5)
"""Achieved share of a GPU's arithmetic in training, and of its bandwidth in sampling."""


@dataclass(frozen=True)
class Plan:
    """One way of training and the memory and time it requires."""

    recipe: TrainingRecipe
    max_tokens: int
    rows: int
    device: str
    """`cpu` or `gpu`: location of the learner's weights."""
    parts: Mapping[str, int]
    """Bytes of each part during a training step."""
    phases: Mapping[str, int]
    """Peak bytes of each phase of a cycle."""
    available: int
    beside: Mapping[str, int]
    """Bytes of main memory in each phase beside a GPU; empty on a CPU."""
    memory: int
    """Bytes of main memory available."""
    hours: float
    """Hours of sampling and learning in a cycle."""
    engine_share: float
    """Engines' share of main memory, or of a GPU's."""
    layout: Layout = ONE
    positions: int = 0
    """Maximum tokens of the model; 0: unknown."""
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Other limits: required and available bytes."""
    handed: int = 0
    """Bytes of weights in transit through /dev/shm."""

    @property
    def needed(self) -> int:
        return max(self.phases.values())

    @property
    def largest(self) -> str:
        """Name of the phase that needs the most memory."""
        return max(self.phases, key=lambda name: self.phases[name])

    @property
    def tightest(self) -> tuple[str, int, int]:
        """Name of the phase that needs the most memory, with its required and available bytes; main memory or another
        limit, if that is exceeded."""
        name = max(self.beside, key=lambda one: self.beside[one], default="")
        if name and self.beside[name] > self.memory:
            return f"{name} (beside)", self.beside[name], self.memory
        for limit, (needed, available) in self.limits.items():
            if needed > available:
                return limit, needed, available
        return self.largest, self.needed, self.available

    @property
    def too_long(self) -> str:
        """Sentence on why the conversation length is too long for the model; empty if the model supports it."""
        long = 0 < self.positions < self.max_tokens
        return f"the model supports {self.positions} tokens, not {self.max_tokens}" if long else ""

    @property
    def fits(self) -> bool:
        _, needed, available = self.tightest
        return needed <= available and not self.too_long


def plan(
    shape: Shape,
    machine: Hardware,
    recipe: TrainingRecipe,
    *,
    max_tokens: int,
    rows: int,
    extra_tokens: int = 0,
    layout: Layout = ONE,
    teacher: Shape | None = None,
) -> Plan:
    """Plans the memory and time of one way of training. `max_tokens` limits a conversation, `rows` is the engine's
    batch, `extra_tokens` are sampled outside training (evaluation, validation), `teacher` scores in an engine of its
    own. GPU figures are those of the fullest GPU."""
    gpu = min(machine.gpus, key=lambda one: one.free, default=None)  # then it fits on any GPU
    layout = layout if gpu else Layout(engines=layout.engines, vllm=layout.vllm, dtype=layout.dtype)
    if layout.vllm:
        share = VLLM_SHARE if layout.vllm.given is None else layout.vllm.given
        if layout.vllm.given is None and gpu and not layout.apart(len(machine.gpus)):
            room = left_for_engines(shape, gpu, recipe, max_tokens, layout, sleeps=layout.vllm.sleep > 0)
            share = share_of(gpu, room, least_of_engine(shape, gpu, max_tokens, layout))
        layout = replace(layout, vllm=replace(layout.vllm, memory_share=share))
    vllm, alone = layout.vllm, layout.apart(len(machine.gpus))
    engine = held_by_engines(shape, max_tokens, rows, gpu, layout, layout.together)
    scoring = held_by_engines(teacher, max_tokens, rows, gpu, layout, 1) if teacher else 0
    asleep = gpu is not None and not alone and vllm is not None and vllm.sleep > 0
    whole = learner_parts(shape, recipe, max_tokens, gpu=gpu is not None)
    offers = offered_bytes(shape, recipe, layout, teacher)
    resting = engine_weight_bytes(shape, gpu=False, layout=layout) * layout.engines
    beside_step = resting if gpu is None and vllm is None and not recipe.max_staleness else engine
    kernels = 0 if vllm or layout.number_bytes(gpu=False) == 4 else HALF_KERNELS
    parts = {
        "process": GPU_CONTEXT if gpu else PROCESS + kernels,
        **split_parts(shape, recipe, whole, layout.learners),
        "engine": 0 if alone else layout.together * GPU_CONTEXT if asleep else beside_step,
        **({} if alone or teacher is None else {"teacher": scoring}),
        **({"offered": offers} if gpu is None and offers else {}),
    }
    limits: dict[str, tuple[int, int]] = {}
    handed = offers + bytes_again(shape, recipe, layout) if vllm and vllm.files else 0
    if gpu is None:
        phases, beside = phases_of_processor(shape, recipe, parts, layout, engine), {}
    else:
        opened = whole["weights"] - half_copies(shape, recipe) if layout.learners > 1 else 0
        resting = parts["weights"] - half_copies(shape, recipe) + parts["moments"]
        held = engine + scoring
        phases = phases_of_gpu(parts, held, opened, resting, alone=alone, asleep=asleep, exact=vllm is not None)
        offloaded = offloaded_bytes(shape, recipe, max_tokens, layout.learners)
        beside = phases_beside(shape, recipe, whole, layout, offers, offloaded)
        # Learner processes on a GPU always transfer weights through /dev/shm.
        given = max(shape.file_bytes, trained_parameters(shape, recipe) * 4)
        handed = max(handed, (offers if handed else 0) + given)
        if machine.shared:
            limits["weights in /dev/shm"] = given, machine.shared
        if vllm:
            limits["vllm.memory_share"] = engine + scoring if alone else engine, gpu.free
            own = engine_bytes(shape, max_tokens, rows, gpu=True, layout=layout) // layout.tensor_parallel
            limits["sampling in vllm.memory_share"] = own, engine // layout.together
    return Plan(
        recipe=recipe,
        max_tokens=max_tokens,
        rows=rows,
        device="cpu" if gpu is None else "gpu",
        parts=parts,
        phases=phases,
        available=machine.memory if gpu is None else int(gpu.free * GPU_USABLE),
        beside=beside,
        memory=machine.memory,
        hours=_hours(shape, machine, recipe, max_tokens, rows, extra_tokens, layout),
        engine_share=(engine + scoring) / (machine.memory if gpu is None else gpu.total),
        layout=layout,
        positions=shape.positions,
        limits=limits,
        handed=handed,
    )


def evaluated_items(recipe: Recipe, anchors: Mapping[str, str], champion: str | None) -> int:
    """Returns the conversations of a cycle outside its training steps, at most: validation, two models that answer all
    sealed questions sampled and greedy, unsolvable questions, and each anchor's own tasksets. `anchors` are models by
    taskset; those of tasksets that are not trained on add sealed questions."""
    training, asked = recipe.training, recipe.evaluation.sealed_items
    beside = [name for name in anchors if name not in recipe.tasksets]
    sealed = asked + min(asked, asked * len(beside) // len(recipe.tasksets))
    others = sum(model != champion for model in anchors.values())
    again = sealed * others // len({*recipe.tasksets, *beside})
    watched = training.watch_items * (2 + training.steps // training.watch_every)
    return 4 * sealed + again + recipe.evaluation.unsolvable_items + watched


def least(shape: Shape, machine: Hardware, recipe: TrainingRecipe, layout: Layout = ONE) -> dict[str, tuple[int, int]]:
    """Returns the minimum bytes that training needs, with the shortest conversations and passes, and those available,
    by place. If these do not fit, no plan does. Counts the largest GPU as empty, since its current load may end."""
    whole = learner_parts(shape, recipe, 1, gpu=bool(machine.gpus))
    own = split_parts(shape, recipe, whole, layout.learners if machine.gpus else 1)
    step = sum(own.get(name, 0) for name in ("weights", "gradients", "moments", "gathered"))
    if not machine.gpus:
        return {"memory": (step, machine.memory)}
    gpu, vllm = max(machine.gpus, key=lambda one: one.total), layout.vllm
    engine = engine_weight_bytes(shape, gpu=True, layout=layout) // layout.tensor_parallel
    sampling = engine if layout.engine_gpus else 0
    alone = layout.apart(len(machine.gpus))
    if vllm and vllm.given is None and not alone:
        share = sampling
    else:
        share = int((vllm.given or VLLM_SHARE) * gpu.total) if vllm else gpu.total
    if vllm and not vllm.sleep and not alone:
        step += layout.together * share
    read = (read_bytes(shape, recipe) + shape.file_bytes) * (1 + layout.learners)
    return {"gpu": (step, gpu.total), "engine": (sampling, share), "memory": (read, machine.memory)}


def _hours(
    shape: Shape,
    machine: Hardware,
    recipe: TrainingRecipe,
    max_tokens: int,
    rows: int,
    extra_tokens: int,
    layout: Layout,
) -> float:
    gpu = machine.gpus[0] if machine.gpus else None
    flops = gpu.flops * GPU_SHARE[0] if gpu else machine.cores * CORE_FLOPS
    bandwidth = gpu.bandwidth * GPU_SHARE[1] if gpu else CPU_BANDWIDTH
    rounds = 1 + recipe.refills
    sampled = rounds * recipe.steps * recipe.tasks_per_step * recipe.rollouts_per_task * max_tokens + extra_tokens
    trained = recipe.steps * recipe.tasks_per_step * recipe.keep * max_tokens
    # Operations per weight and token: 2 forward, 2 for the inputs' gradients, 2 for the weights'.
    each = (4 if recipe.adapts else 6) + (2 if recipe.gradient_checkpointing else 0)
    learning = each * shape.parameters * trained / flops / layout.learners
    if gpu is None and recipe.precision == "bfloat16":
        learning /= BFLOAT16[machine.bfloat16]
    if gpu and recipe.offloads("moments"):
        learning += 2 * moment_bytes(shape, recipe) * recipe.steps * recipe.minibatches / HOST_BANDWIDTH
    read = shape.parameters * layout.number_bytes(gpu=gpu is not None) / bandwidth / max(1, rows)
    sampling = sampled * max(read, 2 * shape.parameters / flops)
    return (learning + sampling / layout.tensor_parallel * layout.together / layout.engines) / 3600


def phases_of_processor(
    shape: Shape, recipe: TrainingRecipe, parts: Mapping[str, int], layout: Layout, engine: int
) -> dict[str, int]:
    """Returns the peak bytes of each phase of a cycle on a CPU, where one process has everything but vLLM. Loading has
    the files beside the weights; resuming has file and tensors of moments, then of weights. Publishing an adapter has
    its file and tensors, the base's files, the tensors in them, a float32 model, which float32 tensors become, weights
    in 4 bits, and a copy of the largest, beside the engine's copy. A built-in engine has old and new weights during a
    push; vLLM does not, but its old offer stays. While sampling, engines take `engine` bytes; torch's keep only weights
    in a step that nothing is sampled in. Gradients, and copies in half precision, exist during a step only."""
    files, weights = shape.file_bytes, parts["weights"] - half_copies(shape, recipe)
    held = parts["process"] + weights
    engines = parts["engine"] + parts.get("teacher", 0) + parts.get("offered", 0)
    new = bytes_again(shape, recipe, layout) if layout.vllm else engine_weight_bytes(shape, gpu=False, layout=layout)
    found = {
        "loading": parts["process"] + max(weights, read_bytes(shape, recipe)) + 2 * files,
        "sampling": held + parts["moments"] + engine + parts.get("teacher", 0) + parts.get("offered", 0),
        "training": sum(parts.values()),
        "resuming": held + restored_bytes(shape, recipe) + engines,
        "pushing": held + parts["moments"] + engines + new + pushed_copy_bytes(shape, recipe),
    }
    if recipe.adapts:
        offered = parts.get("offered", 0)
        model, copy = shape.parameters * 4, shape.vocabulary * shape.hidden * 4
        tensors, adapter = files if files < model else 0, 2 * trained_parameters(shape, recipe) * 4
        merged = files + tensors + model + copy + adapter + packed_bytes(shape, recipe)
        found["publishing"] = parts["process"] + parts["engine"] + offered + merged
    return {name: int(value * SLACK) for name, value in found.items()}


def phases_of_gpu(
    parts: Mapping[str, int], engine: int, opened: int, resting: int, *, alone: bool, asleep: bool, exact: bool
) -> dict[str, int]:
    """Returns the peak bytes of each phase of a cycle on a GPU. Weights arrive there as they are and a step takes most.

    Each of several learners first has the whole weights, `opened` bytes, before sharding. `engine` is the bytes of
    sampling engines, which have GPUs of their own if `alone`; torch's engine drops its old weights before the step. An
    engine `asleep` during a step otherwise shares the GPU with weights and moments, `resting` bytes. An `exact` one,
    such as vLLM, takes exactly its share: it needs neither slack nor the unplanned pages, so it is scaled like the
    available memory; alone it is a limit and not a phase.
    """

    def taken(held: int, engines: int) -> int:
        return int(held * SLACK + engines * GPU_USABLE) if exact else int((held + engines) * SLACK)

    beside = parts["engine"] + parts.get("teacher", 0)
    found = {"training": taken(sum(parts.values()) - beside, beside)}
    if opened:
        found["loading"] = taken(parts["process"] + opened, 0 if alone else engine)
    if asleep:
        found["sampling"] = taken(parts["process"] + resting, engine)
    elif alone and not exact:
        found["sampling"] = taken(parts["process"], engine)
    return found


def phases_beside(
    shape: Shape, recipe: TrainingRecipe, parts: Mapping[str, int], layout: Layout, offers: int, offloaded: int
) -> dict[str, int]:
    """Returns the peak bytes of main memory in each phase of a cycle that trains on a GPU.

    The worker has the model and its files, and each learner process reads both before they go to the GPU; so does one
    that resumes from a checkpoint. Trained weights return after each step as a file in memory, its content and its
    tensors, and are then pushed. The worker merges an adapter into a float32 model. Added are vLLM's processes, their
    offered weights, the weights of sleeping engines, and from the first step `offloaded` bytes of learners' state.
    """
    files, learners = shape.file_bytes, layout.learners
    worker = PROCESS + parts["weights"] + files
    if layout.vllm:
        kept = engine_weight_bytes(shape, gpu=True, layout=layout) if layout.vllm.sleep == 1 else 0
        worker += offers + layout.engines * (PROCESS + kept)
    back = 3 * trained_parameters(shape, recipe) * 4
    found = {
        "loading": worker + files + learners * (PROCESS + max(parts["weights"], read_bytes(shape, recipe)) + files),
        "resuming": worker
        + learners * (PROCESS + restored_bytes(shape, recipe))
        + (offloaded if learners > 1 else 0),  # one has its moments from the checkpoint
        "pushing": worker
        + learners * PROCESS
        + offloaded
        + max(back, bytes_again(shape, recipe, layout) + pushed_copy_bytes(shape, recipe)),
    }
    if recipe.adapts:
        found["publishing"] = worker + learners * PROCESS + offloaded + files + shape.parameters * 4
    return {name: int(value * SLACK) for name, value in found.items()}
