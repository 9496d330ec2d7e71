"""Tokenizer of the seedling: byte-level BPE with single digits and the format's markers, trained on given texts.

Equal texts in equal order give an equal file. Any text round-trips, since all 256 bytes are in the vocabulary. Digits
are never merged, so that numbers are read and copied digit by digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from appliance.rendering.markers import SEEDLING, Markers

ENTRIES = 512


def special_tokens(markers: Markers = SEEDLING) -> list[str]:
    """Lists the tokenizer's special tokens in id order; padding is 0."""
    return [markers.pad, markers.user, markers.assistant, markers.tool, markers.result, markers.end]


def train_tokenizer(texts: Iterable[str], markers: Markers = SEEDLING, entries: int = ENTRIES) -> Tokenizer:
    """Trains a tokenizer of at most `entries` entries. Markers in the texts bound merges. Raises ValueError if
    `entries` cannot contain the bytes and the markers."""
    special = special_tokens(markers)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if entries < len(alphabet) + len(special):
        raise ValueError(f"{entries} entries cannot hold {len(alphabet)} bytes and {len(special)} markers")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=entries, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    border = re.compile("|".join(map(re.escape, special)))
    tokenizer.train_from_iterator((border.sub("\n", text) for text in texts), trainer)
    return tokenizer
