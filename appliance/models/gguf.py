"""Writes a model folder as one GGUF file, for llama.cpp and programs based on it (with the package gguf).

Invariants: only architectures and tokenizers with a known GGUF form are written; others are refused, because a file
that loads and computes something else is worse than none. Weights keep their type (vectors become float32, which is
exact); nothing is quantized. The file is read back, and each tensor compared by name, shape and bytes, before it gets
its final name.

llama.cpp rotates adjacent pairs of a Llama head where transformers rotates its halves, so two weights per block have
reordered rows (`convert_hf_to_gguf.py`, LlamaModel.permute).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from appliance.learning.errors import CheckpointError

ARCHITECTURES = {"LlamaForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3"}
"""Supported architectures, with their GGUF names."""
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLITS = {
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|" + _WORDS % r"\p{N}": "qwen2",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|" + _WORDS % r"\p{N}{1,3}": "llama-bpe",
}
"""Pre-tokenizer patterns, with their GGUF names."""
_TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_PLAIN = "export it as a folder (omit --format), and convert that with llama.cpp's tools"
NORMAL, CONTROL, OWN, UNUSED = 1, 3, 4, 5
"""Token types in GGUF."""


def write_gguf(folder: Path, target: Path) -> int:
    """Writes the model of a plain folder as the GGUF file `target`, and returns its number of tensors. Raises
    CheckpointError for an unsupported model, a failed verification or a write error."""
    from gguf import GGUFWriter

    config = _json(folder, "config.json")
    with _as_expected(folder):
        architecture = _architecture(config)
    beside = target.with_name(f".{target.name}.new")
    writer = GGUFWriter(None, architecture)
    try:
        with _as_expected(folder):
            _describe(writer, config, folder.name)
            _add_tokenizer(writer, folder, config)
        tensors = dict(_tensors(folder, config, architecture))
        with _as_expected(folder):
            require_whole({name: tuple(one.shape) for name, one in tensors.items()}, config, architecture)
        if architecture == "llama":
            heads, pairs, _ = _heads(config)
            for ending, count in (("attn_q.weight", heads), ("attn_k.weight", pairs)):
                tensors |= {name: turned(one, count) for name, one in tensors.items() if name.endswith(ending)}
        for name, tensor in tensors.items():
            _add(writer, name, tensor)
        writer.write_header_to_file(beside)
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        require_same(beside, tensors)
        beside.rename(target)
    except OSError as error:
        raise CheckpointError(
            f"{target} cannot be written: {error.strerror or error}", hint="choose a writable folder with free space"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
    return len(tensors)


@contextmanager
def _as_expected(folder: Path) -> Iterator[None]:
    """Context that converts errors from missing or mistyped config.json or tokenizer.json values to CheckpointError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointError(
            f"config.json or tokenizer.json of {folder.name} lacks a value for GGUF or has a wrong type: {error}",
            hint=_PLAIN,
        ) from error


def require_whole(shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any], architecture: str) -> None:
    """Raises CheckpointError unless a model's tensors, by GGUF name, are exactly the weights that its configuration
    describes."""
    hidden, inner, size = (_count(config, f"{name}_size") for name in ("hidden", "intermediate", "vocab"))
    heads, pairs, head = _heads(config)
    block: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (hidden,),
        "ffn_norm.weight": (hidden,),
        "attn_q.weight": (heads * head, hidden),
        "attn_k.weight": (pairs * head, hidden),
        "attn_v.weight": (pairs * head, hidden),
        "attn_output.weight": (hidden, heads * head),
        "ffn_gate.weight": (inner, hidden),
        "ffn_up.weight": (inner, hidden),
        "ffn_down.weight": (hidden, inner),
    }
    if architecture == "qwen2":
        block |= {f"attn_{one}.bias": block[f"attn_{one}.weight"][:1] for one in "qkv"}
    if architecture == "qwen3":
        block |= {f"attn_{one}_norm.weight": (head,) for one in "qk"}
    wanted: dict[str, tuple[int, ...]] = {"token_embd.weight": (size, hidden), "output_norm.weight": (hidden,)}
    if not config.get("tie_word_embeddings") or "output.weight" in shapes:
        wanted["output.weight"] = (size, hidden)
    layers = range(_count(config, "num_hidden_layers"))
    wanted |= {f"blk.{layer}.{name}": shape for layer in layers for name, shape in block.items()}
    wrong = sorted(name for name in wanted.keys() | shapes.keys() if wanted.get(name) != shapes.get(name))
    if wrong:
        raise CheckpointError(
            f"weights do not match config.json, such as {wrong[0]} (GGUF name)",
            hint="config.json and the weights come from two different models, or a part was not copied",
        )


def _count(config: Mapping[str, Any], name: str) -> int:
    found = int(config[name])
    if not 0 < found < 1 << 31:
        raise ValueError(f"invalid {name} {found}")
    return found


def _heads(config: Mapping[str, Any]) -> tuple[int, int, int]:
    """Returns the numbers of query heads and key/value heads in a model's configuration, and the size of a head."""
    heads = _count(config, "num_attention_heads")
    pairs = _count(config, "num_key_value_heads") if config.get("num_key_value_heads") else heads
    size = _count(config, "head_dim") if config.get("head_dim") else _count(config, "hidden_size") // heads
    if size % 2:
        raise ValueError(f"odd head size {size}")
    return heads, pairs, size


def require_same(file: Path, tensors: Mapping[str, Tensor]) -> None:
    """Reads a GGUF file back. Raises CheckpointError unless it has exactly these tensors."""
    from gguf import GGUFReader

    found = {str(one.name): one for one in GGUFReader(file).tensors}
    wrong = sorted(found.keys() ^ tensors.keys())
    for name in sorted(found.keys() & tensors.keys()):
        tensor, one = tensors[name], found[name]
        same = [int(size) for size in reversed(one.shape)] == list(tensor.shape)
        if not (same and one.tensor_type.name == _TYPES[tensor.dtype] and one.data.tobytes() == _bytes(tensor)):
            wrong.append(name)
    if wrong:
        raise CheckpointError(
            f"{file.name} differs from what was written, such as {wrong[0]}", hint="check the disk and try again"
        )


def _architecture(config: Mapping[str, Any]) -> str:
    names = config.get("architectures") or ["nothing"]
    architecture = ARCHITECTURES.get(str(names[0]))
    if architecture is None:
        known = ", ".join(sorted(ARCHITECTURES))
        raise CheckpointError(
            f"architecture {names[0]!s:.80} is not supported in GGUF: use one of {known}", hint=_PLAIN
        )
    ropes = [one for name in ("rope_parameters", "rope_scaling") if (one := config.get(name))]
    unknown = {
        "rope_parameters or rope_scaling": not all(map(_is_plain_rope, ropes)),
        "partial_rotary_factor": config.get("partial_rotary_factor") not in (None, 1.0),
        "layer_types": any(one != "full_attention" for one in config.get("layer_types") or ()),
        "use_sliding_window": bool(config.get("use_sliding_window")),
        "attention_bias": bool(config.get("attention_bias")),
        "mlp_bias": bool(config.get("mlp_bias")),
        "hidden_act": config.get("hidden_act", "silu") != "silu",
    }
    if odd := [name for name, is_odd in unknown.items() if is_odd]:
        raise CheckpointError(f"config.json: this value of {odd[0]} is not supported in GGUF", hint=_PLAIN)
    return architecture


def _is_plain_rope(rope: Any) -> bool:
    if not isinstance(rope, dict) or rope.get("partial_rotary_factor") not in (None, 1.0):
        return False
    return bool(rope.get("rope_type", rope.get("type", "default")) == "default")


def _describe(writer: Any, config: Mapping[str, Any], name: str) -> None:
    heads, pairs, head = _heads(config)
    theta = (config.get("rope_parameters") or {}).get("rope_theta", config.get("rope_theta", 10_000.0))
    writer.add_name(name)
    writer.add_context_length(_count(config, "max_position_embeddings"))
    writer.add_embedding_length(_count(config, "hidden_size"))
    writer.add_block_count(_count(config, "num_hidden_layers"))
    writer.add_feed_forward_length(_count(config, "intermediate_size"))
    writer.add_head_count(heads)
    writer.add_head_count_kv(pairs)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(float(theta))
    writer.add_layer_norm_rms_eps(float(config["rms_norm_eps"]))
    writer.add_vocab_size(_count(config, "vocab_size"))


def _add_tokenizer(writer: Any, folder: Path, config: Mapping[str, Any]) -> None:
    made = _json(folder, "tokenizer.json")
    model = made.get("model") or {}
    if model.get("type") != "BPE" or model.get("byte_fallback"):
        raise CheckpointError("its tokenizer is not a byte-level BPE, the only kind supported in GGUF", hint=_PLAIN)
    if (made.get("normalizer") or {"type": "NFC"}) != {"type": "NFC"}:
        raise CheckpointError("its tokenizer normalizes text in a way that GGUF cannot express", hint=_PLAIN)
    tokens = {int(number): (str(text), NORMAL) for text, number in model["vocab"].items()}
    for one in made.get("added_tokens", ()):
        tokens[int(one["id"])] = (str(one["content"]), CONTROL if one.get("special") else OWN)
    size = _count(config, "vocab_size")
    if max(tokens) >= size:
        raise CheckpointError(
            f"its tokenizer has token id {max(tokens)}, but the vocabulary size is {size}", hint=_PLAIN
        )
    rows = [tokens.get(number, (f"[PAD{number}]", UNUSED)) for number in range(size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_split_name(made))
    writer.add_token_list([text for text, _ in rows])
    writer.add_token_types([kind for _, kind in rows])
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in model["merges"]])
    before, behind = _put_around(made.get("post_processor") or {})
    numbers = {key: _special(folder, config, key, tokens) for key in ("bos", "eos", "pad")}
    if numbers["eos"] is None:
        raise CheckpointError(
            "its files name no end token, and a GGUF reader would guess one",
            hint="set eos_token_id in its config.json or generation_config.json",
        )
    if len(before) > 1 or behind not in ([], [numbers["eos"]]):
        raise CheckpointError("its tokenizer adds tokens around a text in a way that GGUF cannot express", hint=_PLAIN)
    numbers["bos"] = before[0] if before else numbers["bos"]
    for add, key in (
        (writer.add_bos_token_id, "bos"),
        (writer.add_eos_token_id, "eos"),
        (writer.add_pad_token_id, "pad"),
    ):
        if (number := numbers[key]) is not None:
            add(number)
    writer.add_add_bos_token(bool(before))
    writer.add_add_eos_token(bool(behind))
    if template := _chat_template(folder):
        writer.add_chat_template(template)


def _special(folder: Path, config: Mapping[str, Any], key: str, tokens: Mapping[int, tuple[str, int]]) -> int | None:
    """Returns the id of a special token such as `bos_token`: by its text in tokenizer_config.json, as llama.cpp's tools
    do, else by its number; the first of several."""
    text = _table(folder, "tokenizer_config.json").get(f"{key}_token")
    text = text.get("content") if isinstance(text, dict) else text
    named = next((number for number, (one, _) in tokens.items() if one == text), None)
    for table in (_table(folder, "generation_config.json"), config):
        told = table.get(f"{key}_token_id")
        told = told[0] if isinstance(told, list) and told else told
        if named is None and type(told) is int and told in tokens:
            named = told
    return named


def _put_around(processor: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Returns the tokens that a tokenizer adds before and after a text."""
    sides: tuple[list[int], list[int]] = ([], [])
    for one in processor.get("processors", [processor]):
        if one.get("type") != "TemplateProcessing":
            continue
        side = 0
        for part in one["single"]:
            if "Sequence" in part:
                side = 1
            else:
                sides[side].extend(one["special_tokens"][part["SpecialToken"]["id"]]["ids"])
    return sides


def _split_name(tokenizer: Mapping[str, Any]) -> str:
    """Returns the GGUF name of a tokenizer's pre-tokenizer. Raises CheckpointError for an unknown one."""
    before = tokenizer.get("pre_tokenizer") or {}
    parts = before.get("pretokenizers", [before])
    kinds = [part.get("type") for part in parts]
    if not any(part.get("add_prefix_space") for part in parts):
        if kinds == ["ByteLevel"] and parts[0].get("use_regex"):
            return "gpt-2"
        if kinds == ["Digits", "ByteLevel"] and parts[0].get("individual_digits") and parts[1].get("use_regex"):
            return "starcoder"
        if kinds == ["Split", "ByteLevel"] and not parts[1].get("use_regex"):
            pattern = (parts[0].get("pattern") or {}).get("Regex", "")
            if pattern in SPLITS and parts[0].get("behavior") == "Isolated":
                return SPLITS[pattern]
    raise CheckpointError("its pre-tokenizer has no supported GGUF name", hint=_PLAIN)


def _chat_template(folder: Path) -> str | list[Any]:
    """Returns the model's chat template, or several with names; empty if missing."""
    if (folder / "chat_template.jinja").is_file():
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    found = _table(folder, "tokenizer_config.json").get("chat_template")
    if isinstance(found, list):
        keys = ("name", "template")
        return [one for one in found if isinstance(one, dict) and all(isinstance(one.get(key), str) for key in keys)]
    return found if isinstance(found, str) else ""


def _tensors(folder: Path, config: Mapping[str, Any], architecture: str) -> Iterator[tuple[str, Tensor]]:
    """Yields each of a model's weights with its GGUF name. Raises CheckpointError for one without a name."""
    from gguf import MODEL_ARCH, MODEL_ARCH_NAMES, get_tensor_name_map

    kind = next(one for one in MODEL_ARCH if MODEL_ARCH_NAMES[one] == architecture)
    names = get_tensor_name_map(kind, int(config["num_hidden_layers"]))
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as held:
            for name in held.keys():  # noqa: SIM118 - it is no mapping
                tensor = held.get_tensor(name)
                found = names.get_name(name, try_suffixes=(".weight", ".bias"))
                if found is None or tensor.dtype not in _TYPES:
                    raise CheckpointError(f"weight {name} ({tensor.dtype}) is not supported in GGUF", hint=_PLAIN)
                yield found, (tensor.float() if tensor.dim() == 1 else tensor).contiguous()


def turned(weight: Tensor, heads: int) -> Tensor:
    """Reorders the rows of each attention head in a weight `[heads * size, width]`, so that its halves alternate."""
    rows, width = weight.shape
    return weight.view(heads, 2, rows // heads // 2, width).transpose(1, 2).reshape(rows, width).contiguous()


def _add(writer: Any, name: str, tensor: Tensor) -> None:
    from gguf import GGMLQuantizationType

    if tensor.dtype is torch.bfloat16:
        writer.add_tensor(name, tensor.view(torch.uint8).numpy(), raw_dtype=GGMLQuantizationType.BF16)
    else:
        writer.add_tensor(name, tensor.numpy())


def _bytes(tensor: Tensor) -> bytes:
    return tensor.flatten().view(torch.uint8).numpy().tobytes()


def _table(folder: Path, name: str) -> dict[str, Any]:
    """Reads a JSON file of a model folder as `_json`; empty for a missing file."""
    return _json(folder, name) if (folder / name).is_file() else {}


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads((folder / name).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder / name} cannot be read", hint="export a whole model folder") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{folder / name} is not a JSON object", hint="export a whole model folder")
    return found
