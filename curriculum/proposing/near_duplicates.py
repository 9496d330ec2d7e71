"""Finds near-duplicates of earlier texts by MinHash (Broder 1997) and banded look-up.

Only this module uses the library. Invariants: equal texts in any order give equal results; a pair is judged by its
estimated Jaccard similarity, and the bands only select candidate pairs.

Remembers proposals, so that none counts twice.

Invariants: the memory is a function of the recorded proposed tasks, in any order, so it is rebuilt from the ledger
after a restart. Exact keys identify a question independent of names, and a program by its results on fixed inputs;
near-duplicates are also searched among the contents of fenced blocks (programs, puzzles, statements).
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from rensa import RMinHash, RMinHashLSH

from curriculum.contract.task import Task
from curriculum.proposing.labels import ProvenTask, is_proposed
from curriculum.proposing.refusals import Reason, RefusedProposal

SHINGLE = 4
"""Words per shingle."""
PERMUTATIONS, BANDS = 128, 32
"""Texts with Jaccard similarity .8 become candidates with probability above .999; with .6, .99; with .2, .05."""
LEAST_WORDS = 12
"""Words below which texts are compared by their keys alone."""
_WORD = re.compile(r"[A-Za-z_]\w*|\d+|\S")
_KEPT = frozenset(keyword.kwlist) | frozenset(dir(builtins))


def words(text: str) -> list[str]:
    """Returns the words of a program or text, with names unknown to Python as `v`: renaming changes nothing."""
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


THRESHOLD = 0.8
_BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class NoveltyMemory:
    """Memory of all proposed tasks so far. Not thread-safe."""

    def __init__(self, tasks: Iterable[Task] = (), threshold: float = THRESHOLD) -> None:
        self._keys: set[str] = set()
        self._behaviours: set[str] = set()
        self._near = NearDuplicates(threshold)
        for task in tasks:
            self.add(task)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, task: Task) -> None:
        """Remembers a proposed task; ignores tasks that no model proposed."""
        if is_proposed(task):
            self.add_any(task)

    def add_any(self, task: Task) -> None:
        """Remembers a task, whoever made it."""
        if task.key not in self._keys:
            self._keys.add(task.key)
            self._behaviours.add(behaviour_in(task.key))
            self._near.add(task.key, substance(task))

    def require_new(self, made: ProvenTask) -> float:
        """Returns a proposed task's similarity to the nearest earlier proposal. Raises RefusedProposal if it was
        proposed before or is a near-duplicate."""
        if made.task.key in self._keys:
            raise RefusedProposal(Reason.KNOWN, "it was proposed before")
        if (behaviour := behaviour_in(made.task.key)) and behaviour in self._behaviours:
            raise RefusedProposal(Reason.KNOWN, "a program with the same results was proposed before")
        similarity = self._near.similarity(substance(made.task))
        if similarity >= self._near.threshold:
            raise RefusedProposal(Reason.NEAR, f"{similarity:.2f} alike to one before")
        return similarity


def behaviour_in(key: str) -> str:
    """Returns the kind and the behaviour that the key of a proposed program names; empty for other kinds."""
    kind, _, rest = key.partition(":")
    behaviour, named, _ = rest.partition(":")
    return f"{kind}:{behaviour}" if named else ""


def substance(task: Task) -> str:
    """Returns the content of the fenced blocks in a task's question, without the wording around them."""
    return "\n".join(_BLOCK.findall(task.question))
