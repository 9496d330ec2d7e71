"""Finds texts that are nearly the same as one seen before, by MinHash (Broder 1997) and banded look-up.

The one place that knows the library. What always holds: equal texts in any order give equal answers; a pair is judged
by its estimated Jaccard similarity, and the bands only say which pairs are worth looking at.
"""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

SHINGLE = 4
"""Words of one shingle."""
PERMUTATIONS = 128
LEAST_WORDS = 12
"""Shorter texts are compared by their keys alone."""
_WORD = re.compile(r"[A-Za-z_]\w*|\d+|\S")
_KEPT = frozenset(keyword.kwlist) | frozenset(dir(builtins))


def words(text: str) -> list[str]:
    """Its words, with every name that Python does not know as the same word: renaming changes nothing."""
    return ["v" if re.match(r"[A-Za-z_]", one) and one not in _KEPT else one for one in _WORD.findall(text)]


class NearDuplicates:
    """Texts that were seen. Not thread-safe."""

    def __init__(self, threshold: float) -> None:
        """`threshold`: the similarity from which a pair counts as nearly the same."""
        from datasketch import MinHashLSH

        self.threshold = threshold
        self._index: Any = MinHashLSH(threshold=max(0.1, threshold - 0.2), num_perm=PERMUTATIONS)
        self._seen: dict[str, Any] = {}

    def add(self, name: str, text: str) -> None:
        """Remembers a text by that name; a second one of the same name is left out."""
        made = self._minhash(text)
        if made is not None and name not in self._seen:
            self._seen[name] = made
            self._index.insert(name, made, check_duplication=False)

    def similarity(self, text: str) -> float:
        """The largest similarity to a text that was seen, from 0 to 1; 0 for those that are far from all."""
        made = self._minhash(text)
        if made is None:
            return 0.0
        return max((float(made.jaccard(self._seen[name])) for name in self._index.query(made)), default=0.0)

    def _minhash(self, text: str) -> Any:
        from datasketch import MinHash

        found = words(text)
        if len(found) < LEAST_WORDS:
            return None
        made = MinHash(num_perm=PERMUTATIONS, seed=1)
        made.update_batch(
            [" ".join(found[at : at + SHINGLE]).encode("utf-8", "replace") for at in range(len(found) - SHINGLE + 1)]
        )
        return made
