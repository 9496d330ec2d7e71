"""Bytes of each part of a cycle: learner, engines, and weights in transit.

Invariants: every figure follows from the arguments and the constants here, which are the assumptions; nothing is
measured. A layer is that of the Llama family: four attention matrices, three of a gated multilayer perceptron, two
norms; other families are similar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from appliance.inference.memory import IN_FLIGHT, KEPT_TOKENS, READ_TOKENS, SCORE_LOGITS, SHORT, WINDOW
from appliance.inference.vllm.placement import CACHE_BYTES
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.planning.shapes import GIB, ONE, Gpu, Layout, Shape

PROCESS = int(0.45 * GIB)
"""Worker with torch, transformers, peft and a tokenizer, before a model is opened."""
HALF_KERNELS, HALF_PASS = int(0.1 * GIB), int(0.15 * GIB)
"""Kernels and buffers of a CPU's products in bfloat16, by shape: always, and more in a learner's step. Measured."""
GPU_CONTEXT = int(0.75 * GIB)
"""CUDA context, kernels and allocator gaps on a GPU."""
GPU_USABLE = 0.95
"""Share of a GPU used for planning: allocators do not fill the last pages."""
ADAPTED_PASS = int(0.1 * GIB)
"""Fragments of a step that trains an adapter on a CPU. Measured."""
SLACK = 1.05
"""Factor on all counted memory: fragments, small tensors, buffers of matrix products."""
TILE = 1 << 25
"""Bytes of a tile of logits in the log-prob head."""
PACKED = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a weight in NF4: 4 bits, a byte per block of 64, and 4 bytes per 256 blocks."""
MOST_LOGITS, TOKENS = 1 << 26, 1024
"""Maximum logits that a padded pass computes at full size, and tokens of a tile (`learning.scoring`)."""


def adapter_parameters(shape: Shape, rank: int) -> int:
    return sum(rank * (outputs + inputs) for outputs, inputs in shape.linear)


def trained_parameters(shape: Shape, recipe: TrainingRecipe) -> int:
    return adapter_parameters(shape, recipe.lora_rank) if recipe.adapts else shape.parameters


def packed_parameters(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the number of weights in 4 bits."""
    linear = sum(outputs * inputs for outputs, inputs in shape.linear)
    return min(shape.parameters, linear) if recipe.method == "qlora" else 0


def packed_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of the weights in 4 bits, with their scales."""
    return int(PACKED * packed_parameters(shape, recipe))


def learner_parts(shape: Shape, recipe: TrainingRecipe, max_tokens: int, *, gpu: bool = False) -> dict[str, int]:
    """Returns a learner's bytes during a step, by part: weights, gradients and moments in float32 (frozen weights in
    the recipe's precision or 4 bits), activations of the largest pass, the log-prob head, and what the optimizer's own
    step takes beyond these two, which are gone by then. Parts beside a GPU are in `offloaded_bytes`."""
    trained, copies = trained_parameters(shape, recipe), half_copies(shape, recipe)
    tokens = pass_tokens(recipe, max_tokens)
    activations = activation_bytes(shape, recipe, tokens, gpu=gpu) + unpacked_bytes(shape, recipe)
    if not gpu:
        activations += (HALF_PASS if recipe.precision == "bfloat16" else 0) + (ADAPTED_PASS if recipe.adapts else 0)
    head = head_bytes(shape, recipe, tokens)
    update = update_bytes(shape, recipe, whole=gpu)
    return {
        "weights": held_bytes(shape, recipe) + (trained * 4 if recipe.adapts else 0) + copies,
        "gradients": trained * 4,
        "moments": 0 if gpu and recipe.offloads("moments") else moment_bytes(shape, recipe),
        "activations": activations,
        "head": head,
        "update": max(0, update - copies - activations - head),
    }


def moment_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of the optimizer's moments: two a weight, with a scale per 256 in 8 bits. Muon has one for
    each hidden matrix."""
    trained = trained_parameters(shape, recipe)
    if recipe.optimizer == "adamw_8bit":
        return trained * 2 + trained * 2 * 4 // 256
    hidden = trained if recipe.adapts else sum(outputs * inputs for outputs, inputs in shape.linear)
    return trained * 8 - (hidden * 4 if recipe.optimizer == "muon" else 0)


def update_bytes(shape: Shape, recipe: TrainingRecipe, *, whole: bool) -> int:
    """Returns the bytes of an optimizer step's temporary tensors: with AdamW a number per weight if `whole`, as torch
    does on one GPU, else two per weight of one tensor at a time, and its moments if they rest beside the GPU; with Muon
    three per weight of all matrices of one shape."""
    table = 0 if recipe.adapts else shape.vocabulary * shape.hidden
    matrices: Counter[tuple[int, ...]] = Counter()
    for one in shape.linear:
        for size in ((recipe.lora_rank, one[0]), (recipe.lora_rank, one[1])) if recipe.adapts else (one,):
            matrices[tuple(sorted(size))] += size[0] * size[1]
    if recipe.optimizer == "muon":
        return 4 * max(3 * max(matrices.values(), default=0), (1 if whole else 2) * table)
    largest, rests = max(table, *(size[0] * size[1] for size in matrices), 0), whole and recipe.offloads("moments")
    if recipe.optimizer == "adamw_8bit":
        return 2 * largest if rests else 0
    return 4 * (4 * largest if rests else trained_parameters(shape, recipe) if whole else 2 * largest)


def head_bytes(shape: Shape, recipe: TrainingRecipe, tokens: int) -> int:
    """Returns the bytes of the log-prob head: states and their gradient, and two tiles forward or one backward, where a
    trained matrix has a gradient of its own beside the embedding's; a frozen one in half precision is converted by
    tile. Few logits of a padded pass are three times whole instead."""
    table = 0 if recipe.adapts else shape.vocabulary * shape.hidden * 4
    if not recipe.packing and recipe.precision == "float32" and tokens * shape.vocabulary <= MOST_LOGITS:
        return 3 * tokens * shape.vocabulary * 4 + table
    columns = min(shape.vocabulary, TILE // 4 // min(tokens, TOKENS))
    converted = columns * shape.hidden * 4 if recipe.adapts and recipe.precision == "bfloat16" else 0
    return 2 * tokens * shape.hidden * 4 + max(2 * TILE, TILE + table) + converted


def split_parts(shape: Shape, recipe: TrainingRecipe, whole: Mapping[str, int], learners: int) -> dict[str, int]:
    """Returns the bytes of one of several learners, by part: its shards, and `gathered`, what is whole during
    computation. That is embedding and head through a pass, two blocks (the next one is prefetched), and gradients of
    one block and the embedding until reduced. Autocast's copies and weights in 4 bits are whole too. Shards may rest in
    main memory."""
    if learners == 1:
        return dict(whole)
    copies = half_copies(shape, recipe) + packed_bytes(shape, recipe)
    table = shape.vocabulary * shape.hidden
    around = table * (1 if shape.tied else 2)
    block = max(0, shape.parameters - packed_parameters(shape, recipe) - around) // max(1, shape.layers)
    lora = recipe.adapts
    rests = recipe.offloads("moments")
    update = 0 if rests else update_bytes(shape, recipe, whole=False) // learners
    gathered = (around + 2 * block) * (2 if lora and recipe.precision == "bfloat16" else 4)
    return {
        **whole,
        "weights": (0 if rests else -(-(whole["weights"] - copies) // learners)) + copies,
        "gradients": 0 if rests else -(-whole["gradients"] // learners),
        "moments": -(-whole["moments"] // learners),
        "gathered": gathered + (0 if lora else (table + block) * 4),
        "update": max(0, update - copies - whole["activations"] - whole["head"]),
    }


def half_copies(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of the bfloat16 copies of trained weights that a pass keeps for the gradient: of all but
    embedding and head. With checkpointing it keeps none (`activation_bytes`)."""
    if recipe.precision != "bfloat16" or recipe.gradient_checkpointing:
        return 0
    return 2 * computed_parameters(shape, recipe)


def computed_parameters(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the number of trained weights in layers, which autocast converts."""
    if recipe.adapts:
        return adapter_parameters(shape, recipe.lora_rank)
    return max(0, shape.parameters - shape.vocabulary * shape.hidden * (1 if shape.tied else 2))


def unpacked_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of the largest weight in 4 bits while it is dequantised for a product, and of its copy."""
    largest = max((outputs * inputs for outputs, inputs in shape.linear), default=0)
    return 2 * largest * (2 if recipe.precision == "bfloat16" else 4) if recipe.method == "qlora" else 0


def pass_tokens(recipe: TrainingRecipe, max_tokens: int) -> int:
    """Returns the tokens of the recipe's largest forward pass, including padding."""
    return max(recipe.micro_batch_tokens, max_tokens) if recipe.packing else recipe.micro_batch * max_tokens


def activation_bytes(shape: Shape, recipe: TrainingRecipe, tokens: int, *, gpu: bool = False) -> int:
    """Returns the bytes of activations that a forward pass keeps for the gradient.

    Per token, a layer keeps queries, keys, values and the attention output twice (3 attention, 2 key/value), four rows
    of the multilayer perceptron, both norms' inputs and outputs (4 hidden; 2 more where norms are trained), and a row
    per adapter. Beside bfloat16 layers a norm's own tensors are float32, and each of the five products that follow one
    keeps its input. With checkpointing each layer keeps its input, and one of them all the rest, unless the bfloat16
    copies at the end of the forward pass are larger. Inputs that move beside a GPU are there while they are copied.
    """
    half, size = recipe.precision == "bfloat16", 2 if recipe.precision == "bfloat16" else 4
    width = 3 * shape.attention + 2 * shape.key_value + 4 * shape.intermediate
    norms = (2 if recipe.adapts else 4) * 4 + 5 * size if half else (4 if recipe.adapts else 6) * size
    rows = len(shape.linear) * recipe.lora_rank / max(1, shape.layers) if recipe.adapts else 0
    layer = tokens * ((width + rows) * size + norms * shape.hidden)
    passing = tokens * 2 * shape.intermediate * (4 if recipe.adapts else size)
    if recipe.gradient_checkpointing:
        moves = gpu and recipe.offloads("activations")
        inputs = (min(shape.layers, IN_FLIGHT + 2) if moves else shape.layers) * input_bytes(shape, recipe, tokens)
        copies = 2 * computed_parameters(shape, recipe) if half else 0
        return int(inputs + max(copies, layer + passing + copies / max(1, shape.layers)))
    return int(shape.layers * layer + passing)


def input_bytes(shape: Shape, recipe: TrainingRecipe, tokens: int) -> int:
    """Returns the bytes of a layer's input."""
    return tokens * shape.hidden * (2 if recipe.adapts and recipe.precision == "bfloat16" else 4)


def offloaded_bytes(shape: Shape, recipe: TrainingRecipe, max_tokens: int, learners: int) -> int:
    """Returns the bytes of all learners' state in main memory beside their GPUs. Pinned memory, which inputs of layers
    and the shards of several learners take, comes in powers of two."""

    def pinned(size: int) -> int:
        return 1 << max(0, size - 1).bit_length()

    found = moment_bytes(shape, recipe) if recipe.offloads("moments") else 0
    if found and learners > 1:
        frozen = held_bytes(shape, recipe) - packed_bytes(shape, recipe) if recipe.adapts else 0
        found += 2 * (frozen + 2 * 4 * trained_parameters(shape, recipe))
    if recipe.offloads("activations"):
        each = input_bytes(shape, recipe, pass_tokens(recipe, max_tokens))
        found += learners * shape.layers * pinned(each)
    return found


def engine_bytes(shape: Shape, max_tokens: int, rows: int, *, gpu: bool, layout: Layout = ONE) -> int:
    """Returns the bytes of a sampling engine beside the learner: its copy of the weights, its KV cache, and in torch
    its cached prompts and what reading them or scoring takes."""
    found = engine_weight_bytes(shape, gpu=gpu, layout=layout) + cache_bytes(
        shape, max_tokens, rows, layout.number_bytes(gpu=gpu)
    )
    return found if layout.vllm else found + prompt_bytes(shape, layout.number_bytes(gpu=gpu))


def cache_bytes(shape: Shape, max_tokens: int, rows: int, size: int) -> int:
    """Returns the bytes of the KV cache with numbers of `size` bytes: a row has slots for two conversations, and long
    ones use blocks beside a window."""
    slots = max_tokens + WINDOW if max_tokens > SHORT else 2 * max_tokens
    return rows * slots * shape.layers * 2 * shape.key_value * size


def prompt_bytes(shape: Shape, size: int) -> int:
    """Returns the bytes of the torch engine's cached prompts, with the padding of one pass, and of a pass that reads
    some or that scores: three rows of the multilayer perceptron and of the states, or logits twice."""
    kept = (KEPT_TOKENS + READ_TOKENS) * shape.layers * 2 * shape.key_value * size
    return kept + max(READ_TOKENS * 3 * (shape.intermediate + shape.hidden) * size, 2 * SCORE_LOGITS * 4)


def engine_weight_bytes(shape: Shape, *, gpu: bool, layout: Layout = ONE) -> int:
    """Returns the bytes of a sampling engine's weights; the head is always float32, not shared with the embedding.
    FP8 takes a byte for each weight of a linear layer."""
    size, head = layout.number_bytes(gpu=gpu), shape.vocabulary * shape.hidden
    small = sum(outputs * inputs for outputs, inputs in shape.linear) if layout.vllm and layout.vllm.fp8 else 0
    return shape.parameters * size + head * (4 if shape.tied else 4 - size) - small * (size - 1)


def held_by_engines(shape: Shape, max_tokens: int, rows: int, gpu: Gpu | None, layout: Layout, count: int) -> int:
    """Returns the bytes of `count` sampling engines, on one GPU if there is any."""
    if layout.vllm is None:
        each = engine_bytes(shape, max_tokens, rows, gpu=gpu is not None, layout=layout)
        return each * count // layout.tensor_parallel
    if gpu is not None:
        return count * int(layout.vllm.memory_share * gpu.total)
    conversation = (max_tokens + 128) * shape.layers * 2 * shape.key_value * 4
    cache = max(2 * conversation, min((rows + 1) * conversation, CACHE_BYTES))
    return count * (PROCESS + engine_weight_bytes(shape, gpu=False, layout=layout) + cache)


def held_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of a model's weights in a learner, without an adapter."""
    packed, size = packed_parameters(shape, recipe), 2 if recipe.adapts and recipe.precision == "bfloat16" else 4
    return (shape.parameters - packed) * size + packed_bytes(shape, recipe)


def read_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of a model's weights as read from its files: before packing they are float32."""
    return shape.parameters * 4 if recipe.method == "qlora" else held_bytes(shape, recipe)


def opened_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of a model's weights as an engine gets them, dequantised."""
    return shape.parameters * (2 if recipe.adapts and recipe.precision == "bfloat16" else 4)


def offered_bytes(shape: Shape, recipe: TrainingRecipe, layout: Layout, teacher: Shape | None) -> int:
    """Returns the bytes of weights offered to vLLM for restarts: a copy per engine."""
    if layout.vllm is None:
        return 0
    return layout.engines * opened_bytes(shape, recipe) + (teacher.parameters * 4 if teacher else 0)


def bytes_again(shape: Shape, recipe: TrainingRecipe, layout: Layout) -> int:
    """Returns the bytes of the temporary second copy of weights during a push; frozen weights are offered once."""
    return opened_bytes(shape, recipe) if layout.vllm and recipe.method == "full" else 0


def pushed_copy_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of the model copy that is pushed while rollouts continue, including frozen weights."""
    adapter = trained_parameters(shape, recipe) * 4 if recipe.adapts else 0
    return held_bytes(shape, recipe) + adapter if recipe.max_staleness else 0


def restored_bytes(shape: Shape, recipe: TrainingRecipe) -> int:
    """Returns the bytes of a checkpoint being restored: first the moments' file and tensors, then the weights'."""
    moments = moment_bytes(shape, recipe)
    return moments + max(moments, 2 * trained_parameters(shape, recipe) * 4)
