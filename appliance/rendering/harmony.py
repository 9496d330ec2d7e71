"""Provides the vocabulary for OpenAI's harmony encoder (gpt-oss) from the model's tokenizer.json.

The encoder would download that file. It is built from the model's files instead, in a temporary folder while the
encoder loads; the encoder checks its digest, so a model with another vocabulary is refused. The encoder treats the text
of every message as ordinary text.
"""

from __future__ import annotations

import os
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import pre_tokenizers

if TYPE_CHECKING:
    from appliance.rendering.guarded import GuardedTokenizer

FIXED_DATE = "2026-01-01"
"""Date given to models whose format states one, fixed so that equal conversations have equal tokens."""
_FOLDER = "TIKTOKEN_ENCODINGS_BASE"
_FILE = "o200k_base.tiktoken"


@contextmanager
def harmony_vocabulary(tokenizer: GuardedTokenizer) -> Iterator[None]:
    """Context in which the library's Harmony encoder loads this tokenizer's vocabulary. For one thread at a time: it
    sets an environment variable."""
    with tempfile.TemporaryDirectory(prefix="assay-harmony-") as folder:
        Path(folder, _FILE).write_bytes(_ranks(tokenizer))
        before = os.environ.get(_FOLDER)
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[_FOLDER]
            else:
                os.environ[_FOLDER] = before


def _ranks(tokenizer: GuardedTokenizer) -> bytes:
    """Returns the Harmony encoder's vocabulary file: one line per token, its bytes in base64 and its rank."""
    spelled = _byte_letters()
    lines = []
    for text, rank in sorted(tokenizer.ordinary.items(), key=lambda one: one[1]):
        if not spelled.keys() >= set(text):
            return b""
        lines.append(b64encode(bytes(spelled[letter] for letter in text)) + b" %d\n" % rank)
    return b"".join(lines)


def _byte_letters() -> dict[str, int]:
    """Returns the byte of each letter of a byte-level vocabulary (GPT-2's table)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {chr(byte): byte for byte in shown} | {chr(256 + place): byte for place, byte in enumerate(hidden)}
    assert set(letters) == set(pre_tokenizers.ByteLevel.alphabet())
    return letters
