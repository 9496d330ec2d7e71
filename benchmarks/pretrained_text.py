"""Real text in the tokens of a model folder, for comparisons on a pretrained model instead of random weights.

Invariants: the text is that of the pages in `docs/`. Equal folders, pages and generators give equal windows. Imports
nothing heavy.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tokenizers import Tokenizer

PAGES = Path(__file__).resolve().parents[1] / "docs"


class Text:
    def __init__(self, folder: Path) -> None:
        """Tokenises the text with the tokenizer of a model folder."""
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._ends = json.loads((folder / "config.json").read_text()).get("eos_token_id")
        pages = "\n\n".join(page.read_text() for page in sorted(PAGES.rglob("*.md")))
        self._ids = self._tokenizer.encode(pages).ids

    def window(self, tokens: int, rng: Random) -> tuple[int, ...]:
        """Returns that many consecutive tokens of the text."""
        start = rng.randrange(len(self._ids) - tokens)
        return tuple(self._ids[start : start + tokens])

    def stops(self) -> tuple[int, ...]:
        """Returns the tokens that end a sentence or a line, and those that end a sequence."""
        words = self._tokenizer.decode_batch(
            [[token] for token in range(self._tokenizer.get_vocab_size())], skip_special_tokens=False
        )
        ends = self._ends if isinstance(self._ends, list) else [self._ends] if self._ends is not None else []
        lines = (token for token, word in enumerate(words) if word.rstrip(" ").endswith((".", "\n")))
        return tuple(dict.fromkeys([*ends, *lines]))
