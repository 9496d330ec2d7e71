"""Works out what of training a model fits into a machine: arithmetic, and nothing else.

What always holds: nothing is looked up here (`hardware` finds the machine, `model_shape` the model) and nothing is
measured: every figure follows from the arguments and the constants below, which are the assumptions. Memory is the
most that is held at once in each phase of a night; the largest phase is what has to fit. Beside a GPU the machine's own
memory has phases as well, for files are read there and adapters merged. A layer is that of the Llama
family: four matrices of attention, three of a gated multilayer perceptron, two norms; other families are near it. Hours
are an upper bound for the tokens (every conversation as long as it may be, every group refilled) and a guess for the
speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from appliance.inference.memory import SHORT, WINDOW
from appliance.inference.vllm.sizes import CACHE_BYTES
from appliance.learning.recipe import SFT_PASS_TOKENS, TrainingRecipe, WarmStartRecipe

GIB = 1 << 30
PROCESS = int(0.55 * GIB)
"""Interpreter, torch, transformers and peft, before a model is opened."""
GPU_CONTEXT = int(0.75 * GIB)
"""What CUDA, its kernels and its allocator's gaps take of a GPU."""
GPU_USABLE = 0.95
"""Share of a GPU that is planned with: allocators do not fill the last pages."""
SLACK = 1.05
"""Everything that is counted, times this: fragments, small tensors, buffers of matrix products."""
TILE = 3 * (1 << 25)
"""Logits and what is made of them in the log-prob head, which works tile by tile."""
MOST_LOGITS = 1 << 26
"""Up to so many logits a padded pass computes at once (`learning.scoring`)."""
CONTEXTS = tuple(1 << power for power in range(8, 18))
"""Lengths of a conversation that are tried: 256 to 131,072 tokens."""
MOST_PASS, MOST_ROWS = 1 << 17, 1 << 12
"""Tokens of a pass and conversations at once beyond which nothing is looked for."""
CORE_FLOPS = 25e9
"""Of one processor core, in float32, as matrix products of this size reach them."""
CPU_BANDWIDTH = 12e9
"""Bytes a second that a processor reads weights with."""
VLLM_SHARE = 0.92
"""Of each of its GPUs, what vLLM takes by itself."""
GPU_SHARE = (0.3, 0.5)
"""Of a GPU's arithmetic in training, and of its bandwidth in sampling, that is reached."""


@dataclass(frozen=True)
class Shape:
    """What of a model decides what it takes."""

    parameters: int
    """Tied weights counted once."""
    linear: tuple[tuple[int, int], ...]
    """Outputs and inputs of every linear layer that takes an adapter."""
    layers: int
    hidden: int
    intermediate: int
    attention: int
    """Query heads times the size of one."""
    key_value: int
    """Key/value heads times the size of one."""
    vocabulary: int
    tied: bool
    positions: int
    """The most tokens that it reads; 0: not known."""
    file_bytes: int
    """Of its weights on disk."""


@dataclass(frozen=True)
class Gpu:
    name: str
    total: int
    free: int
    flops: float
    """Of bfloat16, a second."""
    bandwidth: float
    """Bytes a second."""


@dataclass(frozen=True)
class Hardware:
    memory: int
    """Bytes that this process may ever have."""
    cores: int
    gpus: tuple[Gpu, ...] = ()
    shared: int = 0
    """Bytes that are free in /dev/shm; 0: not known."""


@dataclass(frozen=True)
class Vllm:
    """What of `[vllm]` decides what an engine takes. Each is a process of its own."""

    given: float | None = None
    """The part of each of its GPUs that was settled; None: what a learner there leaves it, or `VLLM_SHARE`."""
    sleep: int = 0
    """What it gives back while a learner works: 0 nothing, 1 its cache, and its weights wait in memory, 2 both."""
    files: bool = True
    """Whether weights come to it through files in /dev/shm."""
    memory_share: float = VLLM_SHARE
    """The part that it takes, whatever it needs of that; a plan says it."""


@dataclass(frozen=True)
class Layout:
    """How the GPUs of a machine are shared out; on a processor `engines` and `vllm` count."""

    learners: int = 1
    """Each on a GPU of its own, with its part of weights, gradients and moments (FSDP2)."""
    engines: int = 1
    """Each with all rows; on GPUs of its own where those of engines suffice, otherwise all on the same."""
    tensor_parallel: int = 1
    """GPUs that hold an engine together."""
    engine_gpus: int = 1
    """That learners leave to engines where there are enough others; 0 where engines are on other hosts."""
    vllm: Vllm | None = None
    """Where engines are vLLM's."""

    @property
    def together(self) -> int:
        """Engines that are on the same GPUs."""
        return 1 if self.engines * self.tensor_parallel <= self.engine_gpus else self.engines

    def apart(self, gpus: int) -> bool:
        """Whether no learner is on a GPU of an engine's."""
        return self.learners + self.engine_gpus <= gpus


ONE = Layout()


@dataclass(frozen=True)
class Plan:
    """One way of training, and what it takes."""

    recipe: TrainingRecipe
    max_tokens: int
    rows: int
    device: str
    """`cpu` or `gpu`: where the learner's weights lie."""
    parts: Mapping[str, int]
    """Bytes of each thing that is held while a step is learned."""
    phases: Mapping[str, int]
    """Bytes that each phase of a night holds at its highest."""
    available: int
    beside: Mapping[str, int]
    """Beside a GPU: bytes of the machine's memory that each phase holds; empty on a processor."""
    memory: int
    """Bytes that the machine has for that."""
    hours: float
    """Of a night's sampling and learning."""
    engine_share: float
    """Of the memory, or of a GPU's, for what engines hold there."""
    layout: Layout = ONE
    positions: int = 0
    """The most tokens that the model reads; 0: not known."""
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """What else has to fit: bytes, and those that there are."""
    handed: int = 0
    """Bytes of weights on their way between processes in /dev/shm."""

    @property
    def needed(self) -> int:
        return max(self.phases.values())

    @property
    def largest(self) -> str:
        """The phase that takes most."""
        return max(self.phases, key=lambda name: self.phases[name])

    @property
    def tightest(self) -> tuple[str, int, int]:
        """The phase that takes most, its bytes and those that there are; of the machine's memory beside a GPU, or what
        else is limited, where that is what does not fit."""
        name = max(self.beside, key=lambda one: self.beside[one], default="")
        if name and self.beside[name] > self.memory:
            return f"{name} (beside)", self.beside[name], self.memory
        for limit, (needed, available) in self.limits.items():
            if needed > available:
                return limit, needed, available
        return self.largest, self.needed, self.available

    @property
    def too_long(self) -> str:
        """What is wrong with the length of conversations; empty when the model reads them."""
        long = 0 < self.positions < self.max_tokens
        return f"the model reads {self.positions} tokens, not {self.max_tokens}" if long else ""

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
    """Works out one way of training. `max_tokens` are those of a conversation, `rows` the conversations that the engine
    decodes at once, `extra_tokens` what a night samples beside training (evaluation, validation), `teacher` a model
    that scores in an engine of its own, like the others. Of GPUs, each figure is that of the one that holds most."""
    gpu = min(machine.gpus, key=lambda one: one.free, default=None)  # whichever a learner gets, it fits there
    layout = layout if gpu else Layout(engines=layout.engines, vllm=layout.vllm)
    if layout.vllm:
        share = VLLM_SHARE if layout.vllm.given is None else layout.vllm.given
        if layout.vllm.given is None and gpu and not layout.apart(len(machine.gpus)):
            room = left_for_engines(shape, gpu, recipe, max_tokens, layout, sleeps=layout.vllm.sleep > 0)
            share = share_of(gpu, room, least_of_engine(shape, gpu, max_tokens, layout))
        layout = replace(layout, vllm=replace(layout.vllm, memory_share=share))
    vllm, alone = layout.vllm, layout.apart(len(machine.gpus))
    engine = _engines(shape, max_tokens, rows, gpu, layout, layout.together)
    scoring = _engines(teacher, max_tokens, rows, gpu, layout, 1) if teacher else 0
    asleep = gpu is not None and not alone and vllm is not None and vllm.sleep > 0
    whole = learner_parts(shape, recipe, max_tokens)
    offers = _offers(shape, recipe, layout, teacher)
    parts = {
        "process": PROCESS if gpu is None else GPU_CONTEXT,
        **split_parts(shape, recipe, whole, layout.learners),
        "engine": 0 if alone else layout.together * GPU_CONTEXT if asleep else engine,
        **({} if alone or teacher is None else {"teacher": scoring}),
        **({"offered": offers} if gpu is None and offers else {}),
    }
    limits: dict[str, tuple[int, int]] = {}
    handed = offers + _again(shape, recipe, layout) if vllm and vllm.files else 0
    if gpu is None:
        phases, beside = _phases(shape, recipe, parts, layout), {}
    else:
        opened = whole["weights"] - _copies(shape, recipe) if layout.learners > 1 else 0
        resting = parts["weights"] - _copies(shape, recipe) + parts["moments"]
        held = engine + scoring
        phases = _gpu_phases(parts, held, opened, resting, alone=alone, asleep=asleep, exact=vllm is not None)
        beside = _phases_beside(shape, recipe, whole, layout, offers)
        # What learners hand over, on a GPU of a process of their own, lies there or nowhere.
        given = max(shape.file_bytes, trained_parameters(shape, recipe) * 4)
        handed = max(handed, (offers if handed else 0) + given)
        if machine.shared:
            limits["weights in /dev/shm"] = given, machine.shared
        if vllm:
            limits["vllm.memory_share"] = engine + scoring if alone else engine, gpu.free
            own = engine_bytes(shape, max_tokens, rows, gpu=True) // layout.tensor_parallel
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


def ways(recipe: TrainingRecipe, *, gpu: bool) -> Iterator[TrainingRecipe]:
    """Gives the ways of training that are worth comparing, from the one that learns most to the one that takes least;
    on a processor in float32 only, where bfloat16 is slower."""
    for method in ("full", "lora"):
        for precision in ("bfloat16",) if gpu else ("float32",):
            for again in (False, True):
                changed = {"method": method, "precision": precision, "gradient_checkpointing": again, "packing": True}
                yield recipe.model_copy(update=changed)


def fewest_learners(
    shape: Shape, machine: Hardware, recipe: TrainingRecipe, max_tokens: int, rows: int, layout: Layout = ONE
) -> int:
    """The fewest learners with which it fits, on the GPUs that there are; 0 when it fits with no number of them."""
    most = 1 if recipe.optimizer == "adamw_8bit" else max(1, len(machine.gpus))
    for learners in range(1, most + 1):
        tried = replace(layout, learners=learners)
        if plan(shape, machine, recipe, max_tokens=max_tokens, rows=rows, layout=tried).fits:
            return learners
    return 0


def largest_context(shape: Shape, machine: Hardware, recipe: TrainingRecipe, rows: int, layout: Layout = ONE) -> int:
    """The most tokens of a conversation that fit, of `CONTEXTS`; 0 when none does."""
    found = 0
    for tokens in CONTEXTS:
        if shape.positions and tokens > shape.positions:
            break
        if not plan(shape, machine, recipe, max_tokens=tokens, rows=rows, layout=layout).fits:
            break
        found = tokens
    return found


def largest_pass(
    shape: Shape,
    machine: Hardware,
    recipe: TrainingRecipe,
    max_tokens: int,
    rows: int,
    layout: Layout = ONE,
    teacher: Shape | None = None,
) -> int:
    """The most tokens of one packed pass that fit, up to `MOST_PASS`; 0 when not even one conversation does."""

    def fits(tokens: int) -> bool:
        way = with_pass(recipe, tokens)
        return plan(shape, machine, way, max_tokens=max_tokens, rows=rows, layout=layout, teacher=teacher).fits

    return largest(fits, max(16, max_tokens), max(MOST_PASS, max_tokens))


def largest_group(
    shape: Shape,
    machine: Hardware,
    recipe: TrainingRecipe,
    max_tokens: int,
    layout: Layout = ONE,
    teacher: Shape | None = None,
) -> int:
    """The most conversations that the engine can decode at once in what is left, up to `MOST_ROWS`; 0 when none can."""

    def fits(rows: int) -> bool:
        return plan(shape, machine, recipe, max_tokens=max_tokens, rows=rows, layout=layout, teacher=teacher).fits

    return largest(fits, 1, MOST_ROWS)


def largest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """Finds the largest number from `least` to `most` that fits, where whatever is below one that fits does; otherwise
    0."""
    if not fits(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def adapter_parameters(shape: Shape, rank: int) -> int:
    return sum(rank * (outputs + inputs) for outputs, inputs in shape.linear)


def trained_parameters(shape: Shape, recipe: TrainingRecipe) -> int:
    return adapter_parameters(shape, recipe.lora_rank) if recipe.method == "lora" else shape.parameters


def learner_parts(shape: Shape, recipe: TrainingRecipe, max_tokens: int) -> dict[str, int]:
    """Bytes that a step holds: weights, gradients and moments in float32 (frozen weights in the recipe's precision),
    activations of the largest pass, and the log-prob head."""
    lora, half = recipe.method == "lora", recipe.precision == "bfloat16"
    trained = trained_parameters(shape, recipe)
    weights = shape.parameters * (2 if lora and half else 4)
    if lora:
        weights += trained * 4
    elif half:
        weights += _copies(shape, recipe)
    tokens = pass_tokens(recipe, max_tokens)
    head = TILE + 2 * tokens * shape.hidden * 4
    if not recipe.packing and not half and tokens * shape.vocabulary <= MOST_LOGITS:
        head = 3 * tokens * shape.vocabulary * 4
    if not lora:
        head += shape.vocabulary * shape.hidden * 4  # its own gradient, beside the embedding's
    return {
        "weights": weights,
        "gradients": trained * 4,
        "moments": trained * (2 if recipe.optimizer == "adamw_8bit" else 8),
        "activations": activation_bytes(shape, recipe, tokens),
        "head": head,
    }


def split_parts(shape: Shape, recipe: TrainingRecipe, whole: Mapping[str, int], learners: int) -> dict[str, int]:
    """Bytes of one of so many learners: its part of what is split, and `gathered`, what is whole while it is computed:
    the embedding and the head through a pass, two blocks (the next one is fetched already), and gradients of one block
    and of the embedding until they are summed. Autocast's copies are whole, too."""
    if learners == 1:
        return dict(whole)
    copies, table = _copies(shape, recipe), shape.vocabulary * shape.hidden
    around = table * (1 if shape.tied else 2)
    block = max(0, shape.parameters - around) // max(1, shape.layers)
    lora = recipe.method == "lora"
    gathered = (around + 2 * block) * (2 if lora and recipe.precision == "bfloat16" else 4)
    return {
        **whole,
        "weights": -(-(whole["weights"] - copies) // learners) + copies,
        "gradients": -(-whole["gradients"] // learners),
        "moments": -(-whole["moments"] // learners),
        "gathered": gathered + (0 if lora else (table + block) * 4),
    }


def _copies(shape: Shape, recipe: TrainingRecipe) -> int:
    """Bytes of the copies that autocast keeps through a pass."""
    return shape.parameters * 2 if recipe.method == "full" and recipe.precision == "bfloat16" else 0


def pass_tokens(recipe: TrainingRecipe, max_tokens: int) -> int:
    """Tokens of the largest pass, padding included."""
    return max(recipe.micro_batch_tokens, max_tokens) if recipe.packing else recipe.micro_batch * max_tokens


def activation_bytes(shape: Shape, recipe: TrainingRecipe, tokens: int) -> int:
    """Bytes that the gradient needs of a pass.

    A layer keeps, for each token: the residual stream and what comes out of both norms (4 hidden; 2 more where norms
    are trained), queries, keys, values and the output of attention twice (3 attention, 2 key/value), and four rows of
    the multilayer perceptron. With checkpointing each layer keeps its input, and one of them all the rest.
    """
    width = 3 * shape.attention + 2 * shape.key_value + 4 * shape.intermediate
    width += (4 if recipe.method == "lora" else 6) * shape.hidden
    size = 2.5 if recipe.precision == "bfloat16" else 4
    layer = tokens * width * size
    passing = tokens * 2 * shape.intermediate * size
    if recipe.gradient_checkpointing:
        return int(shape.layers * tokens * shape.hidden * 4 + layer + passing)
    return int(shape.layers * layer + passing)


def engine_bytes(shape: Shape, max_tokens: int, rows: int, *, gpu: bool) -> int:
    """Bytes of the engine beside the learner: its own copy of the weights, and keys and values of its rows.

    On a processor all is float32, and a row has slots for two conversations; on a GPU it is bfloat16, and long ones
    are in blocks beside a window.
    """
    slots = max_tokens + WINDOW if gpu and max_tokens > SHORT else 2 * max_tokens
    cache = rows * slots * shape.layers * 2 * shape.key_value * (2 if gpu else 4)
    return engine_weight_bytes(shape, gpu=gpu) + cache


def engine_weight_bytes(shape: Shape, *, gpu: bool) -> int:
    """The head is float32 everywhere, and shares nothing with the embedding."""
    size, head = 2 if gpu else 4, shape.vocabulary * shape.hidden
    return shape.parameters * size + head * (4 if shape.tied else 4 - size)


def _engines(shape: Shape, max_tokens: int, rows: int, gpu: Gpu | None, layout: Layout, count: int) -> int:
    """Bytes that so many engines hold; of one GPU where there is any."""
    if layout.vllm is None:
        return engine_bytes(shape, max_tokens, rows, gpu=gpu is not None) * count // layout.tensor_parallel
    if gpu is not None:
        return count * int(layout.vllm.memory_share * gpu.total)
    conversation = (max_tokens + 128) * shape.layers * 2 * shape.key_value * 4
    cache = max(2 * conversation, min((rows + 1) * conversation, CACHE_BYTES))
    return count * (PROCESS + engine_weight_bytes(shape, gpu=False) + cache)


def _opened(shape: Shape, recipe: TrainingRecipe) -> int:
    """Bytes of a model's weights as a worker holds them."""
    return shape.parameters * (2 if recipe.method == "lora" and recipe.precision == "bfloat16" else 4)


def _offers(shape: Shape, recipe: TrainingRecipe, layout: Layout, teacher: Shape | None) -> int:
    """Bytes of weights that wait for vLLM, in case that an engine has to be started anew: a copy for each engine."""
    if layout.vllm is None:
        return 0
    return layout.engines * _opened(shape, recipe) + (teacher.parameters * 4 if teacher else 0)


def _again(shape: Shape, recipe: TrainingRecipe, layout: Layout) -> int:
    """Bytes of the copy that is there for a while beside the one that it comes for; frozen weights are offered
    once."""
    return _opened(shape, recipe) if layout.vllm and recipe.method == "full" else 0


def _copied(shape: Shape, recipe: TrainingRecipe) -> int:
    """Bytes of the copy of a model that is pushed while rollouts go on, frozen weights included."""
    adapter = trained_parameters(shape, recipe) * 4 if recipe.method == "lora" else 0
    return _opened(shape, recipe) + adapter if recipe.max_staleness else 0


def _phases(shape: Shape, recipe: TrainingRecipe, parts: Mapping[str, int], layout: Layout) -> dict[str, int]:
    """On a processor, where one process holds all but vLLM. Opening a model holds its files beside the weights; going
    on from a checkpoint what was kept, twice; publishing an adapter the base's files and a model in float32 beside the
    engine's copy. The engine holds its old weights while it takes new ones; vLLM does not, but its old offer stays."""
    files, held = shape.file_bytes, parts["process"] + parts["weights"]
    engines = parts["engine"] + parts.get("teacher", 0) + parts.get("offered", 0)
    new = _again(shape, recipe, layout) if layout.vllm else engine_weight_bytes(shape, gpu=False)
    found = {
        "loading": held + 2 * files,
        "training": sum(parts.values()),
        "resuming": held + 2 * _kept(shape, recipe, parts) + engines,
        "pushing": held + parts["moments"] + engines + new + _copied(shape, recipe),
    }
    if recipe.method == "lora":
        offered = parts.get("offered", 0)
        found["publishing"] = parts["process"] + parts["engine"] + offered + 2 * files + shape.parameters * 4
    return {name: int(value * SLACK) for name, value in found.items()}


def _gpu_phases(
    parts: Mapping[str, int], engine: int, opened: int, resting: int, *, alone: bool, asleep: bool, exact: bool
) -> dict[str, int]:
    """On a GPU: the learner's weights come to it as they are and its moments as they were kept, so a step takes most.
    Each of several has the whole weights once, the bytes `opened`, before they are split. `engine` is what engines
    hold while they sample, on GPUs of their own where they are `alone`; torch's gave its old weights up before the
    step. One that is `asleep` in a step is beside weights and moments else, the bytes `resting`. `exact` is one that
    takes what it was given and no more, as vLLM does: it needs no slack, nor the pages that are not planned with, so it
    counts as much less as what there is does; alone it is a limit and no phase."""

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


def _phases_beside(
    shape: Shape, recipe: TrainingRecipe, parts: Mapping[str, int], layout: Layout, offers: int
) -> dict[str, int]:
    """The machine's memory beside a GPU: a worker keeps the model and its files there, and each learner, a process of
    its own, reads both before they go to the GPU; so does one that goes on with what a checkpoint kept. What was
    trained comes back after each step: a file in memory, what is read of it, and its tensors. Then it is pushed. The
    worker merges an adapter into a model in float32. vLLM's processes are there, what is offered to them, and the
    weights of those that sleep with them."""
    files, learners = shape.file_bytes, layout.learners
    worker = PROCESS + parts["weights"] + files
    if layout.vllm:
        kept = engine_weight_bytes(shape, gpu=True) if layout.vllm.sleep == 1 else 0
        worker += offers + layout.engines * (PROCESS + kept)
    back = 3 * trained_parameters(shape, recipe) * 4
    found = {
        "loading": worker + files + learners * (PROCESS + parts["weights"] + files),
        "resuming": worker + learners * (PROCESS + 2 * _kept(shape, recipe, parts)),
        "pushing": worker + learners * PROCESS + max(back, _again(shape, recipe, layout) + _copied(shape, recipe)),
    }
    if recipe.method == "lora":
        found["publishing"] = worker + learners * PROCESS + files + shape.parameters * 4
    return {name: int(value * SLACK) for name, value in found.items()}


def least(shape: Shape, machine: Hardware, recipe: TrainingRecipe, layout: Layout = ONE) -> dict[str, tuple[int, int]]:
    """What is held however short conversations and passes are, and how much there is of it, by place: bytes. What
    does not fit there fits in no plan. GPUs count whole, for what is on them now may go, and the largest one."""
    whole = learner_parts(shape, recipe, 1)
    own = split_parts(shape, recipe, whole, layout.learners if machine.gpus else 1)
    step = sum(own.get(name, 0) for name in ("weights", "gradients", "moments", "gathered"))
    if not machine.gpus:
        return {"memory": (step, machine.memory)}
    gpu, vllm = max(machine.gpus, key=lambda one: one.total), layout.vllm
    sampling = engine_weight_bytes(shape, gpu=True) // layout.tensor_parallel if layout.engine_gpus else 0
    alone = layout.apart(len(machine.gpus))
    if vllm and vllm.given is None and not alone:
        share = sampling
    else:
        share = int((vllm.given or VLLM_SHARE) * gpu.total) if vllm else gpu.total
    if vllm and not vllm.sleep and not alone:
        step += layout.together * share
    read = (_opened(shape, recipe) + shape.file_bytes) * (1 + layout.learners)
    return {"gpu": (step, gpu.total), "engine": (sampling, share), "memory": (read, machine.memory)}


def _kept(shape: Shape, recipe: TrainingRecipe, parts: Mapping[str, int]) -> int:
    """Bytes of a checkpoint."""
    return parts["moments"] + trained_parameters(shape, recipe) * 4


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
    # Operations for each weight and token: 2 forward, 2 for the inputs' gradients, 2 for the weights'.
    each = (4 if recipe.method == "lora" else 6) + (2 if recipe.gradient_checkpointing else 0)
    learning = each * shape.parameters * trained / flops / layout.learners
    read = shape.parameters * (2 if gpu else 4) / bandwidth / max(1, rows)
    sampling = sampled * max(read, 2 * shape.parameters / flops)
    return (learning + sampling / layout.tensor_parallel * layout.together / layout.engines) / 3600


def with_pass(recipe: TrainingRecipe, tokens: int) -> TrainingRecipe:
    """The same way of training with packed passes of so many tokens."""
    return recipe.model_copy(update={"packing": True, "micro_batch_tokens": max(16, tokens)})


def sft_way(recipe: WarmStartRecipe, training: TrainingRecipe, max_tokens: int) -> TrainingRecipe:
    """The way of training that takes what SFT takes: passes of one batch, padded ones of `SFT_PASS_TOKENS` at most."""
    rows = max(1, min(training.micro_batch, recipe.batch, SFT_PASS_TOKENS // max_tokens))
    tokens = min(training.micro_batch_tokens, recipe.batch * max_tokens)
    changed = {"steps": recipe.steps, "micro_batch": rows, "micro_batch_tokens": tokens}
    return training.model_copy(update=changed)


def without_gpus(machine: Hardware) -> Hardware:
    return replace(machine, gpus=())


def left_for_engines(
    shape: Shape, gpu: Gpu, recipe: TrainingRecipe, max_tokens: int, layout: Layout, *, sleeps: bool
) -> int:
    """Bytes that each engine may take of a GPU on which a learner is, too, whatever it needs: what is left beside a
    step, or beside weights and moments where engines sleep (`sleeps`) while the learner works. A context is
    beside them."""
    whole = learner_parts(shape, recipe, max_tokens)
    parts, copies = split_parts(shape, recipe, whole, layout.learners), _copies(shape, recipe)
    if sleeps:
        held = parts["weights"] - copies + parts["moments"]
    else:  # each of several has the whole weights once, before they are split
        held = max(sum(parts.values()), whole["weights"] - copies if layout.learners > 1 else 0)
    left = int(gpu.free * GPU_USABLE) - int((GPU_CONTEXT + held) * SLACK)
    return left // layout.together - GPU_CONTEXT


def least_of_engine(shape: Shape, gpu: Gpu, max_tokens: int, layout: Layout) -> int:
    """Bytes without which no engine is given a part of a GPU: those of one conversation, and a hundredth."""
    needed = int(engine_bytes(shape, max_tokens, 1, gpu=True) * SLACK) // layout.tensor_parallel
    return max(needed, -(-gpu.total // 100))


def share_of(gpu: Gpu, room: int, needed: int) -> float:
    """The part of a GPU that so many bytes are, in whole hundredths; 0 where they are less than `needed`."""
    return 100 * room // gpu.total / 100 if room >= needed else 0.0
