"""A GGUF file becomes the folder that it was written from; what the folder could not have is refused by name."""

from __future__ import annotations

import json
import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize, quantize
from gguf_files import changed, chat_gguf
from safetensors.torch import load_file
from test_gguf_export import model_folder
from tokenizers import Tokenizer
from transformers import GPT2Tokenizer, Qwen2Tokenizer

from appliance.models.gguf import write_gguf
from appliance.models.gguf_import import write_model
from appliance.models.gguf_reader import read_gguf
from appliance.readiness.model import UnusableModelError


def imported(file: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    """The number formats, and config.json."""
    folder.mkdir(parents=True)
    return write_model(read_gguf(file), folder), json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize(("name", "dtype"), [("llama", "float32"), ("qwen2", "bfloat16"), ("qwen3", "float16")])
def test_export_and_import_are_inverse_in_every_byte(name: str, dtype: str, tmp_path: Path) -> None:
    source = model_folder(tmp_path / "m", name, getattr(torch, dtype))
    write_gguf(source, tmp_path / "a.gguf")
    formats, config = imported(tmp_path / "a.gguf", tmp_path / "again" / "m")
    assert (formats, config["dtype"]) == ("", dtype)
    weights = (source / "model.safetensors").read_bytes()
    assert (tmp_path / "again" / "m" / "model.safetensors").read_bytes() == weights
    write_gguf(tmp_path / "again" / "m", tmp_path / "b.gguf")
    assert (tmp_path / "b.gguf").read_bytes() == (tmp_path / "a.gguf").read_bytes()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_gguf(tmp_path_factory.mktemp("gguf"))


def test_quantised_weights_become_their_float32_values(tiny: Path, tmp_path: Path) -> None:
    held = {one.name: one.data for one in GGUFReader(tiny).tensors}
    kind = GGMLQuantizationType.Q8_0
    small = {name: (quantize(held[name], kind), kind) for name in held if held[name].ndim > 1}
    formats, config = imported(changed(tiny, tmp_path / "q.gguf", tensors=small), tmp_path / "m")
    assert (formats, config["dtype"]) == ("Q8_0", "float32")
    found = load_file(tmp_path / "m" / "model.safetensors")
    wanted = dequantize(small["blk.1.ffn_down.weight"][0], kind)
    assert np.array_equal(found["model.layers.1.mlp.down_proj.weight"].numpy(), wanted)


def test_vectors_that_half_precision_lacks_stay_float32(tmp_path: Path) -> None:
    file = chat_gguf(tmp_path / "half", torch.bfloat16)
    fine = np.full(64, 1.0000001, np.float32)
    _, config = imported(changed(file, tmp_path / "v.gguf", tensors={"output_norm.weight": fine}), tmp_path / "m")
    found = load_file(tmp_path / "m" / "model.safetensors")
    assert config["dtype"] == "bfloat16"
    assert found["model.norm.weight"].dtype is torch.float32
    assert found["model.layers.0.input_layernorm.weight"].dtype is torch.bfloat16


def test_all_templates_and_end_tokens_and_added_tokens_come_along(tiny: Path, tmp_path: Path) -> None:
    fields = {
        "tokenizer.chat_template.tool_use": "tools",
        "tokenizer.ggml.eot_token_id": 3,
        "tokenizer.ggml.eos_token_ids": [5, 4],
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.bos_token_id": 2,
    }
    _, config = imported(changed(tiny, tmp_path / "t.gguf", fields), tmp_path / "m")
    assert config["eos_token_id"] == [5, 3, 4]
    settings = json.loads((tmp_path / "m" / "tokenizer_config.json").read_text())
    assert [one["name"] for one in settings["chat_template"]] == ["default", "tool_use"]
    tokenizer = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    assert tokenizer.encode("").ids == [2]
    assert tokenizer.encode("a<|im_end|>", "b").tokens == ["<|assistant|>", "a", "<|im_end|>", "b"]


@pytest.mark.parametrize(("rule", "kind"), [("gpt-2", GPT2Tokenizer), ("qwen2", Qwen2Tokenizer)])
def test_a_splitting_rule_is_that_of_the_models_which_it_is_named_after(
    rule: str, kind: Any, tiny: Path, tmp_path: Path
) -> None:
    imported(changed(tiny, tmp_path / "t.gguf", {"tokenizer.ggml.pre": rule}), tmp_path / "m")
    ours = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    made = json.loads(ours.to_str())["model"]
    theirs = kind(vocab=made["vocab"], merges=[tuple(one) for one in made["merges"]]).backend_tokenizer
    for text in ("it's 12345 and IT'S  é e\u0301\n\n x", " 你好2024年 \r\n\t!?", "½ ١٢ print(f(5))"):
        assert ours.encode(text, add_special_tokens=False).ids == theirs.encode(text, add_special_tokens=False).ids


def test_llama_3_splits_as_transformers_does_and_takes_whole_words(tiny: Path, tmp_path: Path) -> None:
    imported(changed(tiny, tmp_path / "t.gguf", {"tokenizer.ggml.pre": "llama-bpe"}), tmp_path / "m")
    made = json.loads((tmp_path / "m" / "tokenizer.json").read_text())
    theirs = pytest.importorskip("transformers.integrations.gguf.gguf_tokenizer_mapping").GGUF_PRE_TOKENIZER_SPLITS
    assert made["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] == theirs["llama-bpe"]
    assert made["model"]["ignore_merges"]


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_a_long_context_is_recovered_from_its_frequencies(factor: float, tiny: Path, tmp_path: Path) -> None:
    """As llama.cpp's converter computes them for Llama 3.1 and 3.2."""
    waves = 2 * np.pi * 10_000.0 ** (np.arange(0, 16, 2) / 16)
    smooth = (8192 / waves - 1.0) / 3.0
    middle = 1 / ((1 - smooth) / factor + smooth)
    values = np.where(waves < 8192 / 4, 1.0, np.where(waves > 8192, factor, middle)).astype(np.float32)
    file = changed(tiny, tmp_path / "r.gguf", tensors={"rope_freqs.weight": values})
    _, config = imported(file, tmp_path / "m")
    assert config["rope_scaling"]["factor"] == factor
    with pytest.raises(UnusableModelError, match="rope_freqs"):
        imported(changed(tiny, tmp_path / "o.gguf", tensors={"rope_freqs.weight": values * 2}), tmp_path / "n")


TOKENS = [*"ab", "ab", *(f"t{number}" for number in range(509))]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tokenizer.ggml.pre": "poro-chat"}, "pre-tokenizer 'poro-chat' is unknown here"),
        ({"tokenizer.ggml.pre": None}, "tokenizer.ggml.pre is missing"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer is of kind 'llama'"),
        ({"llama.rope.scaling.type": "yarn"}, "'llama.rope.scaling.type', which this import does not know"),
        ({"llama.attention.sliding_window": 4096}, "sliding_window"),
        ({"llama.expert_count": 8}, "expert_count"),
        ({"tokenizer.ggml.normalizer.lowercase": True}, "normalizer"),
        ({"general.type": "adapter"}, "cannot be imported"),
        ({"split.count": 2}, "split.count"),
        ({"llama.block_count": 2_000_000_000}, "lacks tensors"),
        ({"llama.block_count": "two"}, "llama.block_count is of an unsupported type"),
        ({"llama.embedding_length": 0}, "invalid llama.embedding_length"),
        ({"llama.attention.key_length": 15}, "odd size of a head"),
        ({"llama.attention.layer_norm_rms_epsilon": math.nan}, "invalid llama.attention.layer_norm_rms_epsilon"),
        ({"llama.feed_forward_length": 97}, r"weights do not match its header, such as blk\.0\.ffn"),
        ({"llama.rope.dimension_count": 8}, "differs from the size of a head"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "token_type does not fit"),
        ({"tokenizer.ggml.merges": ["a b", "only"]}, "merges do not fit"),
        ({"tokenizer.ggml.merges": ["a b", "a b"], "tokenizer.ggml.tokens": TOKENS}, "two of its merges are the same"),
        ({"tokenizer.ggml.eos_token_id": 10**6}, "names no end token"),
        ({"tokenizer.ggml.eos_token_id": None, "tokenizer.ggml.eos_token_ids": [1.0]}, "names no end token"),
        ({"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 10**6}, "puts a bos token around"),
        ({"tokenizer.ggml.tokens": ["a"] * 512}, "two of its tokens have the same text"),
        ({"tokenizer.ggml.add_space_prefix": True}, "a space before each text"),
        ({"general.alignment": 3}, "invalid general.alignment"),
    ],
)
def test_a_header_that_says_something_else_is_refused_by_name(
    fields: dict[str, Any], message: str, tiny: Path, tmp_path: Path
) -> None:
    file = changed(
        tiny, tmp_path / "x.gguf", {name: one for name, one in fields.items() if name != "general.alignment"}
    )
    if "general.alignment" in fields:
        file.write_bytes(altered(file.read_bytes(), 1, kv("general.alignment", 4, struct.pack("<I", 3))))
    with pytest.raises(UnusableModelError, match=message) as caught:
        imported(file, tmp_path / "m")
    assert caught.value.hint


def kv(name: str, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", kind) + value


def altered(content: bytes, count: int, more: bytes) -> bytes:
    """A file with more fields; its tensors no longer begin where they should."""
    fields = struct.unpack_from("<Q", content, 16)[0]
    return content[:16] + struct.pack("<Q", fields + count) + more + content[24:]


def test_another_architecture_and_an_unreadable_quantization_are_named(tiny: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(tiny.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0gemma", 1))
    with pytest.raises(UnusableModelError, match="architecture 'gemma' cannot be imported from GGUF: use one of llama"):
        imported(other, tmp_path / "a")
    rows = np.zeros((512, 292), np.uint8)
    kind = GGMLQuantizationType.Q8_K
    with pytest.raises(UnusableModelError, match="quantization Q8_K cannot be converted back"):
        read_gguf(changed(tiny, tmp_path / "k.gguf", tensors={"token_embd.weight": (rows, kind)}))
    short = changed(tiny, tmp_path / "s.gguf", tensors={"blk.1.ffn_up.weight": None})
    with pytest.raises(UnusableModelError, match=r"blk\.1\.ffn_up\.weight"):
        imported(short, tmp_path / "c")


def test_a_file_that_changes_after_its_header_was_read_is_refused(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.gguf"
    shutil.copyfile(tiny, file)
    read = read_gguf(file)
    shutil.copyfile(tiny, tmp_path / "d.gguf")
    (tmp_path / "d.gguf").replace(file)
    with pytest.raises(UnusableModelError, match="was changed while it was read"):
        read.bytes_of("token_embd.weight")


MOST = (1 << 64) - 1
EMPTY = struct.pack("<4sI", b"GGUF", 3)


def described(name: bytes, *shape: int, kind: int = 0, at: int = 0) -> bytes:
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return struct.pack("<Q", len(name)) + name + sizes + struct.pack("<IQ", kind, at)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing more": (b"GGUF", "claims more than the file has"),
    "version 1": (struct.pack("<4sIQQ", b"GGUF", 1, 0, 0), "version 1 of the format"),
    "big-endian": (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), "version 50331648"),
    "many fields": (EMPTY + struct.pack("<QQ", 0, MOST), f"claims {MOST} fields"),
    "many tensors": (EMPTY + struct.pack("<QQ", MOST, 0), f"claims {MOST} tensors"),
    "long name": (EMPTY + struct.pack("<QQQ", 0, 1, 1 << 40) + bytes(64), "a text of 1099511627776 bytes"),
    "long text": (EMPTY + struct.pack("<QQ", 0, 1) + kv("a", 8, struct.pack("<Q", 1 << 50)), "a text of"),
    "many texts": (EMPTY + struct.pack("<QQ", 0, 1) + kv("a", 9, struct.pack("<IQ", 8, MOST)), f"claims {MOST} texts"),
    "many numbers": (EMPTY + struct.pack("<QQ", 0, 1) + kv("a", 9, struct.pack("<IQ", 4, MOST)), f"{MOST} numbers"),
    "an array of arrays": (EMPTY + struct.pack("<QQ", 0, 1) + kv("a", 9, struct.pack("<IQ", 9, 1)), "unknown type 9"),
    "an unknown field": (EMPTY + struct.pack("<QQ", 0, 1) + kv("a", 99, bytes(8)), "unknown type 99"),
    "two fields": (EMPTY + struct.pack("<QQ", 0, 2) + 2 * kv("a", 7, b"\0"), "two entries named 'a'"),
    "not UTF-8": (EMPTY + struct.pack("<QQQ", 0, 1, 2) + b"\xff\xfe" + bytes(64), "not UTF-8"),
    "two tensors": (EMPTY + struct.pack("<QQ", 2, 0) + 2 * described(b"t", 1) + bytes(64), "two entries named 't'"),
    "no dimensions": (EMPTY + struct.pack("<QQ", 1, 0) + described(b"t") + bytes(64), "has 0 dimensions"),
    "a huge shape": (EMPTY + struct.pack("<QQ", 1, 0) + described(b"t", MOST, MOST) + bytes(64), "outside the file"),
    "a far offset": (EMPTY + struct.pack("<QQ", 1, 0) + described(b"t", 1, at=MOST) + bytes(64), "outside the file"),
    "one in another": (
        EMPTY + struct.pack("<QQ", 2, 0) + described(b"t", 8) + described(b"u", 8) + bytes(128),
        "in another tensor",
    ),
    "an unknown format": (EMPTY + struct.pack("<QQ", 1, 0) + described(b"t", 1, kind=77) + bytes(64), "format .77."),
    "a torn block": (EMPTY + struct.pack("<QQ", 1, 0) + described(b"t", 31, kind=3) + bytes(64), "cannot have"),
    "integers": (EMPTY + struct.pack("<QQ", 1, 0) + described(b"t", 4, kind=26) + bytes(128), "of type I32"),
    "escapes": (EMPTY + struct.pack("<QQ", 2, 0) + 2 * described(b"\x1b[2J", 1) + bytes(64), r"\\x1b"),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_hostile_header_is_one_message_before_anything_is_allocated(fault: str, tmp_path: Path) -> None:
    content, message = HOSTILE[fault]
    (tmp_path / "h.gguf").write_bytes(content)
    with pytest.raises(UnusableModelError, match=message) as caught:
        read_gguf(tmp_path / "h.gguf")
    assert caught.value.hint
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("cut", [lambda size: 9, lambda size: 400, lambda size: size // 2, lambda size: size - 1])
def test_a_file_that_ends_early_is_refused(cut: Callable[[int], int], tiny: Path, tmp_path: Path) -> None:
    content = tiny.read_bytes()
    (tmp_path / "cut.gguf").write_bytes(content[: cut(len(content))])
    with pytest.raises(UnusableModelError, match=r"claims|outside the file"):
        imported(tmp_path / "cut.gguf", tmp_path / "m")
