"""Writes the model of a GGUF file as a Hugging Face folder: the inverse of `gguf`.

Invariants: every value of the file that decides what the model computes is carried over, or refused by name; a
splitting rule, an architecture or a field unknown here is never passed over. Weights in float16 or bfloat16 keep
their type; quantized ones become float32, the only type here that has every number exactly.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appliance.learning.errors import CheckpointError
from appliance.models.gguf import ARCHITECTURES, CONTROL, NORMAL, OWN, SPLITS, UNUSED, require_whole
from appliance.models.gguf_reader import GgufFile, numbers
from appliance.readiness.model import UnusableModelError

_ORIGINAL = "import the folder that it was converted from: `hf download NAME --local-dir FOLDER` on any machine"
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Names of weights in transformers, by GGUF name."""
_ROPE = "rope_freqs.weight"
_LLAMA3_FACTORS = (8.0, 32.0)
"""Published factors of Llama 3.1 and 3.2, which GGUF holds as the frequencies that follow from them."""

_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_DIGITS = [{"type": "Digits", "individual_digits": True}, _BYTES]
_PATTERNS = {
    name: [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {**_BYTES, "use_regex": False},
    ]
    for pattern, name in SPLITS.items()
}
_RULES: dict[str, Sequence[Mapping[str, Any]]] = {
    "gpt-2": [_BYTES],
    **dict.fromkeys(("smollm", "starcoder", "refact", "codeshell"), _DIGITS),
    **_PATTERNS,
    **dict.fromkeys(("llama3", "llama-v3"), _PATTERNS["llama-bpe"]),
}
"""Splitting rules by `tokenizer.ggml.pre`, as llama.cpp has them (llama-vocab.cpp)."""
_LLAMA3 = frozenset({"llama-bpe", "llama3", "llama-v3"})
"""Rules with which llama.cpp takes a whole word that is a token, and puts the first token before a text."""

_SHAPE = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "max_position_embeddings": "context_length",
}
_OTHER = (
    *("attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count"),
    *("attention.layer_norm_rms_epsilon", "attention.head_dim", "rope.freq_base", "vocab_size"),
)
_TOKENIZER = (
    *("model", "pre", "tokens", "token_type", "merges", "scores", "add_bos_token", "add_eos_token"),
    *("add_space_prefix", "add_padding_token", "add_unknown_token", "add_mask_token"),
)


class _Fields:
    """Header fields of a GGUF file, with their types checked."""

    def __init__(self, file: GgufFile) -> None:
        self._path, self._fields = file.path, file.fields

    def refuse(self, problem: str, hint: str = _ORIGINAL) -> UnusableModelError:
        return UnusableModelError(f"{self._path}: {problem}", hint=hint)

    def get(self, name: str, kind: type, missing: Any = None) -> Any:
        """Returns a field's value, or `missing` if given. Raises UnusableModelError for another type."""
        value = self._fields.get(name, missing)
        if type(value) is not kind and (name in self._fields or missing is None):
            raise self.refuse(f"{name} is {'of an unsupported type' if name in self._fields else 'missing'}")
        return value

    def number(self, name: str, missing: int | None = None) -> int:
        value = self.get(name, int, missing)
        if not 0 < value < 1 << 31:
            raise self.refuse(f"invalid {name} ({value})")
        return int(value)

    def real(self, name: str, missing: float | None = None) -> float:
        """Returns a float32 as the shortest decimal that reads back as the same float32."""
        value = float(str(np.float32(self.get(name, float, missing))))
        if not 0 < value < 1e12:
            raise self.refuse(f"invalid {name} ({value})")
        return value

    def texts(self, name: str) -> list[str]:
        found = self.get(name, list)
        if not all(isinstance(one, str) for one in found):
            raise self.refuse(f"{name} is of an unsupported type")
        return list(found)

    def below(self, name: str) -> Iterator[tuple[str, str]]:
        """Yields the texts of a family of fields, by the rest of their names."""
        for key in self._fields:
            if key.startswith(f"{name}."):
                yield key[len(name) + 1 :], self.get(key, str)

    def token(self, name: str, tokens: Mapping[int, str]) -> int | None:
        number = self._fields.get(f"tokenizer.ggml.{name}_token_id")
        return number if type(number) is int and number in tokens else None

    def require_known(self, architecture: str) -> None:
        """Raises UnusableModelError for a field that might change what the model computes, and is unknown here."""
        known = {f"{architecture}.{one}" for one in (*_SHAPE.values(), *_OTHER)}
        known |= {f"tokenizer.ggml.{one}" for one in _TOKENIZER}
        for name, value in self._fields.items():
            decides = name.startswith((f"{architecture}.", "tokenizer.ggml.", "adapter.", "split."))
            empty = value in (0, False, "", "none") or (name == "split.count" and value == 1)
            if decides and name not in known and not empty and not name.endswith(("_token_id", "_token_ids")):
                raise self.refuse(f"it has {name!a:.100}, which this import does not know")


def write_model(file: GgufFile, folder: Path) -> str:
    """Writes a GGUF file's model into an empty folder: config.json, tokenizer, weights. Returns the quantized number
    formats, by their share of the file; empty for plain weights. Raises UnusableModelError and OSError."""
    fields = _Fields(file)
    architecture = fields.get("general.architecture", str)
    family = next((name for name, one in ARCHITECTURES.items() if one == architecture), None)
    if family is None or fields.get("general.type", str, "model") != "model":
        raise fields.refuse(
            f"architecture {architecture!a:.60} cannot be imported from GGUF: use one of "
            + ", ".join(sorted(ARCHITECTURES.values()))
        )
    fields.require_known(architecture)
    config = _config(fields, file, architecture, family)
    shapes = {name: one.shape for name, one in file.tensors.items() if name != _ROPE}
    try:
        require_whole(shapes, config, architecture)
    except CheckpointError as error:
        raise fields.refuse(str(error).replace("config.json", "its header")) from error
    tokenizer, settings, special = _tokenizer(fields, config)
    config |= {"dtype": _number_type(file), **special}
    texts = {
        "config.json": config,
        "generation_config.json": {"eos_token_id": special["eos_token_id"]},
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": settings,
    }
    for name, table in texts.items():
        with (folder / name).open("w", encoding="utf-8") as out:
            json.dump(table, out, ensure_ascii=False, indent=1)  # `dumps` has all of its parts in memory at once
            out.write("\n")
    _write_weights(file, config, architecture == "llama", folder / "model.safetensors")
    sizes: dict[str, int] = {}
    for one in file.tensors.values():
        sizes[one.kind] = sizes.get(one.kind, 0) + one.size
    return ", ".join(sorted(sizes.keys() - {"F32", "F16", "BF16"}, key=lambda kind: -sizes[kind]))


def _config(fields: _Fields, file: GgufFile, architecture: str, family: str) -> dict[str, Any]:
    config: dict[str, Any] = {"architectures": [family], "model_type": architecture, "hidden_act": "silu"}
    config |= {name: fields.number(f"{architecture}.{key}") for name, key in _SHAPE.items()}
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    size = fields.number(f"{architecture}.attention.key_length", hidden // heads or None)
    if size % 2:
        raise fields.refuse(f"odd size of a head ({size})")
    for other in ("attention.value_length", "attention.head_dim", "rope.dimension_count"):
        if fields.number(f"{architecture}.{other}", size) != size:
            raise fields.refuse(f"{architecture}.{other} differs from the size of a head ({size})")
    if config["num_hidden_layers"] > len(file.tensors) or "token_embd.weight" not in file.tensors:
        raise fields.refuse("it lacks tensors of the model that its header describes")
    if architecture != "qwen2":
        config |= {"head_dim": size, "attention_bias": False}
    if architecture == "llama":
        config["mlp_bias"] = False
    theta = fields.real(f"{architecture}.rope.freq_base", 10_000.0)
    return config | {
        "num_key_value_heads": fields.number(f"{architecture}.attention.head_count_kv", heads),
        "rms_norm_eps": fields.real(f"{architecture}.attention.layer_norm_rms_epsilon"),
        "rope_theta": theta,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        **_rope_scaling(fields, file, size, theta),
    }


def _rope_scaling(fields: _Fields, file: GgufFile, size: int, theta: float) -> dict[str, Any]:
    """Returns the setting of Llama 3's long context whose frequencies are those of the file. Raises
    UnusableModelError for any others."""
    if _ROPE not in file.tensors:
        return {}
    tensor = file.tensors[_ROPE]
    held = next(numbers(file.bytes_of(_ROPE), tensor.kind))[0] if tensor.shape == (size // 2,) else np.zeros(size // 2)
    smooth = np.clip((8192 * theta ** -(np.arange(0, size, 2) / size) / (2 * np.pi) - 1.0) / 3.0, 0.0, 1.0)
    for factor in _LLAMA3_FACTORS:
        if np.allclose(held, 1 / ((1 - smooth) / factor + smooth), 1e-4):
            scaling = {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
            return {"rope_scaling": {**scaling, "original_max_position_embeddings": 8192}}
    raise fields.refuse(f"its {_ROPE} are not those of a published long-context setting")


_TEMPLATE = "tokenizer.chat_template"
_SPECIAL = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


def _tokenizer(
    fields: _Fields, config: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, int | list[int] | None]]:
    """Returns tokenizer.json, tokenizer_config.json, and the special tokens in config.json."""
    if (kind := fields.get("tokenizer.ggml.model", str)) != "gpt2":
        raise fields.refuse(f"its tokenizer is of kind {kind!a:.40}: only byte-level BPE (gpt2) can be imported")
    rule = fields.get("tokenizer.ggml.pre", str)
    if rule not in _RULES:
        raise fields.refuse(
            f"its pre-tokenizer {rule!a:.60} is unknown here, so texts would be split wrongly (known: "
            f"{', '.join(sorted(_RULES))})"
        )
    if fields.get("tokenizer.ggml.add_space_prefix", bool, False):
        raise fields.refuse("its tokenizer puts a space before each text, which byte-level BPE here does not")
    texts, merges = fields.texts("tokenizer.ggml.tokens"), fields.texts("tokenizer.ggml.merges")
    types = fields.get("tokenizer.ggml.token_type", list)
    if len(types) != len(texts) or not {*types} <= {NORMAL, CONTROL, OWN, UNUSED}:
        raise fields.refuse("tokenizer.ggml.token_type does not fit its tokens")
    if len(texts) > config["vocab_size"]:
        raise fields.refuse(f"it has {len(texts)} tokens, but an embedding of {config['vocab_size']}")
    tokens = {number: text for number, text in enumerate(texts) if types[number] != UNUSED}
    vocabulary = {text: number for number, text in tokens.items()}
    if len(vocabulary) != len(tokens):
        raise fields.refuse("two of its tokens have the same text")
    pairs = [one.split(" ") for one in merges]
    if any(len(pair) != 2 or not {*pair, "".join(pair)} <= vocabulary.keys() for pair in pairs):
        raise fields.refuse("its merges do not fit its tokens")
    if len({*merges}) != len(merges):  # llama.cpp takes the first rank of a pair, and transformers the last
        raise fields.refuse("two of its merges are the same")
    special = {key: fields.token(long, tokens) for key, long in _SPECIAL.items()}
    ends = [one for key in ("eos", "eot", "eom") if (one := fields.token(key, tokens)) is not None]
    ends += [one for one in fields.get("tokenizer.ggml.eos_token_ids", list, []) if type(one) is int and one in tokens]
    if not ends:
        raise fields.refuse("its header names no end token")
    before = special["bos"] if fields.get("tokenizer.ggml.add_bos_token", bool, rule in _LLAMA3) else None
    behind = special["eos"] if fields.get("tokenizer.ggml.add_eos_token", bool, False) else None
    for name in ("bos", "eos"):
        if special[name] is None and fields.get(f"tokenizer.ggml.add_{name}_token", bool, False):
            raise fields.refuse(f"it puts a {name} token around each text, and its header names none")
    parts = _RULES[rule]
    made = {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": text, "special": types[number] == CONTROL, **_PLAIN_MATCH}
            for number, text in tokens.items()
            if types[number] in (CONTROL, OWN)
        ],
        "normalizer": {"type": "NFC"} if rule == "qwen2" else None,
        "pre_tokenizer": parts[0] if len(parts) == 1 else {"type": "Sequence", "pretokenizers": parts},
        "post_processor": _around(before, behind, tokens),
        "decoder": _BYTES,
        "model": {
            "type": "BPE",
            "byte_fallback": False,
            "fuse_unk": False,
            "ignore_merges": rule in _LLAMA3,
            "vocab": vocabulary,
            "merges": pairs,
        },
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config["max_position_embeddings"]}
    settings |= {f"{key}_token": tokens[number] for key, number in special.items() if number is not None}
    if template := fields.get(_TEMPLATE, str, ""):
        others = [{"name": name, "template": text} for name, text in fields.below(_TEMPLATE)]
        settings["chat_template"] = [{"name": "default", "template": template}, *others] if others else template
    ends = list(dict.fromkeys(ends))
    numbered = {"bos_token_id": special["bos"], "pad_token_id": special["pad"]}
    return made, settings, {**numbered, "eos_token_id": ends if len(ends) > 1 else ends[0]}


_PLAIN_MATCH = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def _around(before: int | None, behind: int | None, tokens: Mapping[int, str]) -> dict[str, Any] | None:
    """Returns the post-processor that puts these tokens around a text; None without any."""
    if before is None and behind is None:
        return None
    marks = {str(tokens[one]): one for one in (before, behind) if one is not None}
    special = {text: {"id": text, "ids": [number], "tokens": [text]} for text, number in marks.items()}
    first, last = (
        [{"SpecialToken": {"id": tokens[one], "type_id": 0}}] if one is not None else [] for one in (before, behind)
    )
    single, pair = ([{"Sequence": {"id": name, "type_id": 0}} for name in names] for names in ("A", "AB"))
    parts = {"single": [*first, *single, *last], "pair": [*first, *pair, *last]}
    return {"type": "TemplateProcessing", **parts, "special_tokens": special}


def _number_type(file: GgufFile) -> str:
    """Returns the number type of a model's matrices: their own if all have the same half precision, else float32."""
    kinds = {one.kind for one in file.tensors.values() if len(one.shape) > 1}
    return {"F16": "float16", "BF16": "bfloat16"}.get(kinds.pop(), "float32") if len(kinds) == 1 else "float32"


def _write_weights(file: GgufFile, config: Mapping[str, Any], turns: bool, target: Path) -> None:
    """Writes the weights as safetensors, tensor by tensor in the format's usual order: wide numbers first, then by
    name. `turns`: query and key rows are in llama.cpp's order."""
    half = {"float16": "F16", "bfloat16": "BF16"}.get(config["dtype"], "")
    plan = []
    for name, tensor in file.tensors.items():
        if name != _ROPE:
            kind = half if half and (tensor.kind == half or _fits(file, name, half)) else "F32"
            plan.append((kind != "F32", _renamed(name), name, kind))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for _, renamed, name, kind in sorted(plan):
        shape = file.tensors[name].shape
        start, end = end, end + int(np.prod(shape, dtype=object)) * (4 if kind == "F32" else 2)
        header[renamed] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    if 2 * end > (free := shutil.disk_usage(target.parent).free):  # they are copied once, with their manifest
        raise UnusableModelError(
            f"{file.path}: importing its weights as {config['dtype']} takes {2 * end / 1e9:.1f} GB of disk, and "
            f"{free / 1e9:.1f} GB are free",
            hint="free space on the disk of the data folder",
        )
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with target.open("xb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, _, name, kind in sorted(plan):
            rows = file.bytes_of(name)
            if turns and name.endswith(("attn_q.weight", "attn_k.weight")):
                heads = config["num_attention_heads" if name.endswith("attn_q.weight") else "num_key_value_heads"]
                rows = rows[np.arange(len(rows)).reshape(heads, -1, 2).swapaxes(1, 2).ravel()]
            if file.tensors[name].kind == kind:
                out.write(rows.data)
            else:
                for chunk in numbers(rows, file.tensors[name].kind):
                    out.write(np.ascontiguousarray(chunk if kind == "F32" else _halved(chunk, kind)).data)


def _renamed(name: str) -> str:
    *block, short, end = name.split(".")
    return ".".join((*(("model.layers", block[1]) if block else ()), f"{_NAMES[short]}.{end}"))


def _fits(file: GgufFile, name: str, half: str) -> bool:
    """True if a float32 vector has no number that the half-precision type lacks."""
    tensor = file.tensors[name]
    if tensor.kind != "F32" or len(tensor.shape) > 1:
        return False
    return all(
        np.array_equal(next(numbers(_halved(chunk, half).view(np.uint8), half)), chunk, equal_nan=True)
        for chunk in numbers(file.bytes_of(name), "F32")
    )


def _halved(chunk: NDArray[np.float32], kind: str) -> NDArray[Any]:
    if kind == "F16":
        with np.errstate(over="ignore"):
            return chunk.astype(np.float16)
    return (chunk.view(np.uint32) >> 16).astype(np.uint16)
