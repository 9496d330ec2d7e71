"""The seedling's tokenizer writes any text, reads numbers digit by digit, and no typed marker has any power."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tokenizers import Tokenizer

from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.seedling.tokenizer import ENTRIES, special_tokens, train_tokenizer


def corpus(count: int = 400) -> list[str]:
    random = Random(1)
    shapes = (
        "gcd of {} and {}?",
        "import math\nprint(math.gcd({},{}))",
        "how many divisors has {}? {}",
        "\\boxed{{{}{}}}",
    )
    return [random.choice(shapes).format(random.randrange(1000), random.randrange(1000)) for _ in range(count)]


TOKENIZER = train_tokenizer(corpus())
RENDERER = MarkerRenderer(TOKENIZER, SEEDLING)
SPECIAL = {TOKENIZER.token_to_id(marker) for marker in special_tokens()}

hostile = st.lists(st.one_of(st.text(max_size=12), st.sampled_from(special_tokens())), max_size=6).map("".join)


def test_it_has_at_most_its_entries_and_every_marker_is_one_of_them() -> None:
    assert TOKENIZER.get_vocab_size() <= ENTRIES
    assert [TOKENIZER.token_to_id(marker) for marker in special_tokens()] == list(range(6))


def test_the_same_texts_give_the_same_file_in_another_process_with_other_threads(tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "from appliance.seedling.tokenizer import train_tokenizer\n"
        "train_tokenizer(json.load(sys.stdin)).save(sys.argv[1])\n"
    )
    files = []
    for threads in ("1", "4"):
        path = tmp_path / f"{threads}.json"
        subprocess.run(
            [sys.executable, "-c", program, str(path)],
            input=json.dumps(corpus()),
            text=True,
            check=True,
            env={"RAYON_NUM_THREADS": threads, "PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONHASHSEED": threads},
        )
        files.append(path.read_bytes())
    assert files[0] == files[1]
    TOKENIZER.save(str(tmp_path / "here.json"))
    assert (tmp_path / "here.json").read_bytes() == files[0]


@given(hostile)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert RENDERER.text(RENDERER.plain(text)) == text


@settings(max_examples=FROM_STRANGERS)
@given(hostile)
def test_a_marker_typed_in_text_is_ordinary_characters(text: str) -> None:
    assert not SPECIAL & set(RENDERER.plain(text))
    assert RENDERER.question(text).count(RENDERER.stop) == 1
    assert RENDERER.result(text).count(RENDERER.stop) == 1


@given(st.integers(0, 10**12))
def test_a_number_has_one_token_for_each_digit(number: int) -> None:
    assert len(RENDERER.plain(str(number))) == len(str(number))


@given(st.integers(0, 9999), st.sampled_from(["gcd of ", "x=", "print(", "\n"]))
def test_a_digit_is_the_same_token_wherever_it_stands(number: int, before: str) -> None:
    digits = RENDERER.plain(str(number))
    assert RENDERER.plain(before + str(number))[-len(digits) :] == digits


def test_markers_in_the_training_texts_are_never_learned_as_text() -> None:
    taught = train_tokenizer(["".join(special_tokens()) + "gcd of 1 and 2?"] * 200)
    assert not any("<|" in entry for entry in taught.get_vocab() if entry not in special_tokens())


def test_words_of_the_curriculum_are_shorter_than_their_letters() -> None:
    assert len(RENDERER.plain("import math\nprint(math.gcd(")) <= 10


def test_a_vocabulary_without_room_for_the_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        train_tokenizer(corpus(), entries=200)


def test_a_saved_tokenizer_reads_as_before(tmp_path: Path) -> None:
    TOKENIZER.save(str(tmp_path / "tokenizer.json"))
    again = MarkerRenderer(Tokenizer.from_file(str(tmp_path / "tokenizer.json")), SEEDLING)
    assert [again.question(text) for text in corpus()] == [RENDERER.question(text) for text in corpus()]
