"""Finds near-duplicates of earlier texts by MinHash (Broder 1997) and banded look-up.

Only this module uses the library. Invariants: equal texts in any order give equal results; a pair is judged by its
estimated Jaccard similarity, and the bands only select candidate pairs.
"""

from __future__ import annotations

import builtins
import keyword
import re

from rensa import RMinHash, RMinHashLSH

SHINGLE = 4
"""Words per shingle."""
PERMUTATIONS, BANDS = 128, 32
"""Texts with Jaccard similarity .8 become candidates with probability above .999; with .6, .99; with .2, .05."""
LEAST_WORDS = 12
"""Words below which texts are compared by their keys alone."""
_WORD = re.compile(r"[A-Za-z_]\w*|\d+|\S")
_KEPT = frozenset(keyword.kwlist) | frozenset(dir(builtins))


def words(text: str) -> list[str]:
    """Returns the words of a program or text, with every name unknown to Python replaced by `v`: renaming changes
    nothing."""
    return ["v" if re.match(r"[A-Za-z_]", one) and one not in _KEPT else one for one in _WORD.findall(text)]


class NearDuplicates:
    """Index of earlier texts that finds near-duplicates. Not thread-safe."""

    def __init__(self, threshold: float) -> None:
        """Creates an empty index of texts. `threshold` is the lowest similarity of a near-duplicate."""
        self.threshold = threshold
        self._index = RMinHashLSH(threshold, PERMUTATIONS, BANDS)
        self._names: set[str] = set()
        self._sketches: list[RMinHash] = []

    def add(self, name: str, text: str) -> None:
        """Adds a text to the index under a name; ignores a name stored before."""
        sketch = sketched(text)
        if sketch is not None and name not in self._names:
            self._names.add(name)
            self._index.insert(len(self._sketches), sketch)
            self._sketches.append(sketch)

    def similarity(self, text: str) -> float:
        """Returns a text's largest estimated similarity to a stored text, from 0 to 1; 0 if no candidate is close."""
        sketch = sketched(text)
        if sketch is None:
            return 0.0
        return max((float(sketch.jaccard(self._sketches[place])) for place in self._index.query(sketch)), default=0.0)


def sketched(text: str) -> RMinHash | None:
    """Returns the MinHash sketch of a text; None if the text is too short to compare."""
    found = words(text)
    if len(found) < LEAST_WORDS:
        return None
    sketch = RMinHash(PERMUTATIONS, 1)
    sketch.update([" ".join(found[at : at + SHINGLE]) for at in range(len(found) - SHINGLE + 1)])
    return sketch
