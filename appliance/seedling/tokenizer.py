"""The seedling's tokenizer: byte-level BPE with single digits and the dialect's markers, made from the caller's texts.

Equal texts in equal order give an equal file. Any text can be written and comes back unchanged: all 256 bytes are in
the vocabulary. Digits are never merged, so that a number is read and copied digit by digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from appliance.agent.dialect import SEEDLING, Dialect

ENTRIES = 512


def markers(dialect: Dialect = SEEDLING) -> list[str]:
    """The special tokens in the order of their ids; padding is 0."""
    return [dialect.pad, dialect.user, dialect.assistant, dialect.tool, dialect.result, dialect.end]


def train_tokenizer(texts: Iterable[str], dialect: Dialect = SEEDLING, entries: int = ENTRIES) -> Tokenizer:
    """A tokenizer of at most `entries` entries. Markers inside the texts separate what may be merged.

    Raises ValueError when `entries` leaves no room for the bytes and the markers.
    """
    special = markers(dialect)
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
    tokenizer.train_from_iterator(_pieces(texts, special), trainer)
    return tokenizer


def _pieces(texts: Iterable[str], special: list[str]) -> Iterable[str]:
    border = re.compile("|".join(map(re.escape, special)))
    for text in texts:
        yield border.sub("\n", text)
