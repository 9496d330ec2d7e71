"""Finds texts that are nearly the same as one seen before, by MinHash (Broder 1997) and banded look-up.

The one place that knows the library. What always holds: equal texts in any order give equal answers; a pair is judged
by its estimated Jaccard similarity, and the bands only say which pairs are worth looking at.
"""

from __future__ import annotations

import builtins
import keyword
import re

from rensa import RMinHash, RMinHashLSH

SHINGLE = 4
"""Words of one shingle."""
PERMUTATIONS, BANDS = 128, 32
"""Texts with a Jaccard similarity of .8 are compared with a chance above .999, of .6 with one of .99, of .2 of .05."""
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
        self.threshold = threshold
        self._index = RMinHashLSH(threshold, PERMUTATIONS, BANDS)
        self._names: set[str] = set()
        self._sketches: list[RMinHash] = []

    def add(self, name: str, text: str) -> None:
        """Remembers a text by that name; a second one of the same name is left out."""
        sketch = sketched(text)
        if sketch is not None and name not in self._names:
            self._names.add(name)
            self._index.insert(len(self._sketches), sketch)
            self._sketches.append(sketch)

    def similarity(self, text: str) -> float:
        """The largest similarity to a text that was seen, from 0 to 1; 0 for those that are far from all."""
        sketch = sketched(text)
        if sketch is None:
            return 0.0
        return max((float(sketch.jaccard(self._sketches[place])) for place in self._index.query(sketch)), default=0.0)


def sketched(text: str) -> RMinHash | None:
    """What stands for a text; None for one that is too short to compare."""
    found = words(text)
    if len(found) < LEAST_WORDS:
        return None
    sketch = RMinHash(PERMUTATIONS, 1)
    sketch.update([" ".join(found[at : at + SHINGLE]) for at in range(len(found) - SHINGLE + 1)])
    return sketch
