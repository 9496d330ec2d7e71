"""A real chat model, quantized by somebody else, becomes the model that other readers find in its file."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import pytest
import torch
from gguf import GGUFReader
from gguf_files import smollm2
from test_local_models import hub, ollama
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from appliance.inference.folder import open_model, quietly, read_model
from appliance.learning.folders import verify
from appliance.models.import_model import ImportedBase, import_base
from appliance.models.local_models import Stores, locate

SECONDS = 60.0
"""CPU seconds of an import, its probe included: on one core that is the time that a person waits."""
KNOWN = {
    "Hello world! 123": [19556, 905, 17, 216, 33, 34, 35],
    "Café déjà vu.": [51, 1939, 2756, 32564, 90, 16739, 386, 101, 30],
    "  multiple   spaces": [216, 2701, 256, 5600],
    "The capital of France is": [504, 3575, 282, 4649, 314],
}
"""Tokens that another converter of this model checks itself against."""


def spent() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImportedBase, float]:
    """The model from a store of Ollama's, and the CPU seconds that the import took."""
    file, folder = smollm2(), tmp_path_factory.mktemp("smollm2")
    ollama(folder / "store", file, license=file.with_name("LICENSE").read_bytes())
    before = spent()
    made = import_base("smollm@ollama:tiny", folder, Stores([folder / "store"], folder, [], file.parent))
    return made, spent() - before


def test_it_is_imported_in_time_and_computes_what_transformers_reads_from_the_file(
    imported: tuple[ImportedBase, float],
) -> None:
    made, seconds = imported
    assert seconds <= SECONDS
    assert verify(made.folder) == made.digest
    assert made.facts.parameters == 134_515_008
    assert made.quantised_from == "Q4_1, Q8_0"
    assert "named SmolLM, trained by Hugging Face" in made.dropped[-1]
    assert (made.folder / "LICENSE").read_bytes() == smollm2().with_name("LICENSE").read_bytes()
    ids = torch.tensor([[1, 4093, 198, 19556, 905, 17, 216, 33, 34, 35, 2, 198, 1, 520, 9531, 198]])
    with quietly(), torch.no_grad():
        theirs = AutoModelForCausalLM.from_pretrained(smollm2().parent, gguf_file=smollm2().name, dtype=torch.float32)
        difference = (open_model(read_model(made.folder))(ids).logits - theirs(ids).logits).abs().max()
    assert difference <= 1e-3


def test_every_place_of_the_file_leads_to_the_same_bytes(tmp_path: Path) -> None:
    """What is read after that knows nothing of the place."""
    file = smollm2()
    hub(tmp_path, file, "org/smollm2")
    places = Stores([], tmp_path, [], file.parent)
    for source in ("hub:org/smollm2", f"gguf:{file}", "smollm2"):
        assert locate(source, places).path.read_bytes() == file.read_bytes(), source


WORDS = (
    *("the", "The", "don't", "WE'LL", "I'm", "naïve", "Straße", "print(12+30)", "a1b2", "x²", "…", "—", "“q”", "#!/"),
    *(
        "你好",
        "世界",
        "北京2008年",
        "数字",
        "１２３",
        "٣٤",
        "Ⅻ",
        "½",
        "12",
        "3.14",
        "1,000,000",
        "0x1F",
        "한국어",
        "ไทย",
    ),
    *(
        "😀",
        "👩\u200d💻",
        "é",
        "e\u0301",
        "<|im_x|>",
        "\\boxed{42}",
        "\n",
        "\n\n",
        " \r\n",
        "\t",
        "    ",
        "\xa0",
        "\u200b",
    ),
)


def texts(count: int) -> list[str]:
    """Made of words, digits and white space, and of any characters at all; the same each time."""
    chance = random.Random(20)
    found = []
    for number in range(count):
        parts = [chance.choice(WORDS) for _ in range(chance.randint(1, 12))]
        parts += ["".join(chance.choice("0123456789") for _ in range(chance.randint(1, 20)))]
        parts += ["".join(chr(chance.choice([*range(32, 127), *range(0x4E00, 0x4F00)])) for _ in range(8))]
        parts += ["".join(chr(chance.randint(32, 0xD7FF)) for _ in range(4))] if number % 4 == 0 else []
        chance.shuffle(parts)
        found.append(chance.choice(["", " ", "\n"]).join(parts))
    return found


def reference() -> PreTrainedTokenizerFast:
    """The model's published tokenizer as transformers runs it: digits one by one, then GPT-2's words and byte-level BPE
    (`pre_tokenizer` of the tokenizer.json that its authors publish, and llama.cpp's rule `smollm`), with the tokens
    that the package gguf reads."""
    fields = GGUFReader(smollm2()).fields
    tokens, types = (fields[f"tokenizer.ggml.{one}"].contents() for one in ("tokens", "token_type"))
    merges = [tuple(one.split(" ")) for one in fields["tokenizer.ggml.merges"].contents()]
    made = Tokenizer(models.BPE(vocab={text: number for number, text in enumerate(tokens)}, merges=merges))
    digits, words = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    made.decoder = decoders.ByteLevel()
    special = [text for text, kind in zip(tokens, types, strict=True) if kind == 3]
    return PreTrainedTokenizerFast(tokenizer_object=made, additional_special_tokens=special)


def test_its_tokenizer_is_the_published_one(imported: tuple[ImportedBase, float]) -> None:
    ours, theirs = Tokenizer.from_file(str(imported[0].folder / "tokenizer.json")), reference()
    for text, tokens in KNOWN.items():
        assert ours.encode(text, add_special_tokens=False).ids == tokens, text
    asked = [*texts(1990), *(f"<|im_start|>user\n{one}<|im_end|>\n" for one in texts(10))]
    assert len(asked) == 2000
    wanted = theirs(asked, add_special_tokens=False)["input_ids"]
    for text, found, expected in zip(asked, ours.encode_batch(asked, add_special_tokens=False), wanted, strict=True):
        assert found.ids == expected, text
        assert ours.decode(found.ids, skip_special_tokens=False) == text
