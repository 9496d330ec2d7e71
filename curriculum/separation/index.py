"""Index of evaluation questions (sealed and held-out), which finds copies of them.

Invariants: the same index and the same text give the same match; an index never changes. `curriculum.separation.rules`
defines a copy. Near-duplicates are found by MinHash with banding (Broder 1997; the library is rensa) and decided on
rare words, so that a shared form does not make texts alike. Texts are compared by their tokens
(`curriculum.separation.folding`), and as a whole without blanks: copies whose blanks were removed have other tokens.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain, pairwise

from rensa import RMinHash, RMinHashLSH

from curriculum.contract.task import Task
from curriculum.separation.folding import (
    SPAN,
    grams_of,
    is_number,
    joined,
    numbers_in,
    shortened,
    spans_of,
    stands,
    tokens_of,
    without_numbers,
)
from curriculum.separation.rules import (
    COMMON,
    DIGITS,
    FEWEST_GRAMS,
    FEWEST_TOKENS,
    NEAR,
    NEAR_WITH_FEW,
    NEAR_WITH_NUMBERS,
    SHARE,
    SHORT,
    UNKNOWN,
    Check,
    Match,
)

HEAD = 16
"""Characters by which a short evaluation question is found in a text without blanks."""


PERMUTATIONS, BANDS = 255, 85
"""Texts with Jaccard similarity .4 become candidates with probability .996; with .3, .9; with .1, .08."""


class SeparationIndex:
    """Finds copies of evaluation questions: `met_by_task` for generated tasks, `met_by_text` for written text,
    `met_by_result` for tool results. Each returns None if the text may be trained on."""

    def __init__(self, kept: Iterable[Task] = (), beside: Iterable[str] = ()) -> None:
        """Builds an index of the evaluation questions `kept`. `beside` are rows of the owner's active tasksets, of any
        split: text that `COMMON` of them share except for numbers is a form, and its numbers are the question."""
        found = {task.id: task for task in kept}
        self._ids = tuple(found)
        self._keys = {task.key: task.id for task in found.values() if task.key}
        self._contents = {content_of(task): task.id for task in found.values()}
        self._tokens = tuple(tokens_of(text_of(task)) for task in found.values())
        self._checks = tuple(map(check_of, found.values()))
        shared = Counter(map(without_numbers, {tokens_of(text) for text in beside}))
        self._forms = frozenset(joined(form) for form, count in shared.items() if count >= COMMON)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the evaluation questions (`TaskDraft.key`)."""
        return frozenset(self._keys)

    def met_by(self, task: Task, *, written: bool) -> Match | None:
        """Returns the evaluation question that a task copies, or None. Tasks `written` by persons have other rules."""
        return self.met_by_text(text_of(task), task.key) if written else self.met_by_task(task)

    def met_by_task(self, task: Task) -> Match | None:
        """Returns the evaluation question that a generated task repeats; None if none."""
        if task.key in self._keys:
            return Match(self._keys[task.key], Check.KEY)
        if (same := self._contents.get(content_of(task))) is not None:
            return Match(same, Check.EXACT)
        tokens = tokens_of(text_of(task))
        if FEWEST_TOKENS <= len(tokens) <= SHORT:
            check = check_of(task)
            for one in shortened(tokens, words_only=True):
                if (place := self._one_word.get((check, one))) is not None:
                    return Match(self._ids[place], Check.WORD, 1 - 1 / len(tokens))
        return None

    def met_by_text(self, text: str, key: str = "") -> Match | None:
        """Returns the evaluation question that a written text copies; None if none."""
        if key and key in self._keys:
            return Match(self._keys[key], Check.KEY)
        tokens = tokens_of(text)
        whole = joined(tokens)
        if (place := self._exact.get(whole)) is not None:
            return Match(self._ids[place], Check.EXACT)
        if len(tokens) < FEWEST_TOKENS and len(whole) < SPAN // 2:
            return None
        form = joined(without_numbers(tokens))
        if form not in self._forms and (place := self._masked.get(form)) is not None:
            return Match(self._ids[place], Check.NUMBERS)
        others = self._of_other_numbers(tokens) if form in self._forms else frozenset()
        if len(tokens) <= SHORT + 1:
            for one in shortened(tokens):
                if (place := self._shortened.get(one)) is not None and place not in others:
                    return Match(self._ids[place], Check.WORD, 1 - 1 / len(tokens))
        return self._overlap(tokens, others) or self._near(tokens, others) or self._run_together(whole, others)

    def met_by_result(self, text: str, own: str = "") -> Match | None:
        """Returns the evaluation question that a tool result contains; None if none. `own` is the task's text, which
        may occur in it."""
        tokens = tokens_of(text)
        of_task = tokens_of(own)
        for size, halves in self._halves.items():
            head, known = size // 2, _windows(of_task, size)
            for start in range(len(tokens) - size + 1):
                window = tokens[start : start + size]
                for half in (hash(window[:head]), -hash(window[head:])):
                    for place in halves.get(half, ()):
                        differ = [one for one in zip(window, self._tokens[place], strict=True) if one[0] != one[1]]
                        if len(differ) <= 1 and not any(map(is_number, chain(*differ))) and window not in known:
                            check = Check.WORD if differ else Check.EXACT
                            return Match(self._ids[place], check, 1 - len(differ) / size)
        shared: Counter[int] = Counter()
        for gram in grams_of(tokens) - grams_of(of_task):
            shared.update(self._grams.get(gram, ()))
        if found := self._best(shared, FEWEST_GRAMS):
            return found
        whole, told = joined(tokens), joined(of_task)
        for at in range(len(whole) - HEAD + 1):
            for text, place in self._heads.get(whole[at : at + HEAD], ()):
                if stands(text, whole, at) and text not in told:
                    return Match(self._ids[place], Check.EXACT)
        return self._run_together(whole, frozenset(), spans_of(told))

    # indexes, each built on first use
    @cached_property
    def _exact(self) -> dict[str, int]:
        return {joined(tokens): place for place, tokens in enumerate(self._tokens)}

    @cached_property
    def _masked(self) -> dict[str, int]:
        masked = ((without_numbers(tokens), place) for place, tokens in enumerate(self._tokens))
        return {joined(tokens): place for tokens, place in masked if len(tokens) >= 2}

    @cached_property
    def _shortened(self) -> dict[int, int]:
        return {
            one: place
            for place, tokens in enumerate(self._tokens)
            if FEWEST_TOKENS <= len(tokens) <= SHORT
            for one in shortened(tokens)
        }

    @cached_property
    def _one_word(self) -> dict[tuple[str, int], int]:
        return {
            (self._checks[place], one): place
            for place, tokens in enumerate(self._tokens)
            if FEWEST_TOKENS <= len(tokens) <= SHORT
            for one in shortened(tokens, words_only=True)
        }

    @cached_property
    def _halves(self) -> dict[int, dict[int, list[int]]]:
        """Short evaluation questions, by length and by hash of either half. One changed word leaves too few 8-grams."""
        found: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place in self._distinct:
            tokens = self._tokens[place]
            if FEWEST_TOKENS <= len(tokens) <= SHORT:
                head = len(tokens) // 2
                found[len(tokens)][hash(tokens[:head])].append(place)
                found[len(tokens)][-hash(tokens[head:])].append(place)
        return {size: dict(halves) for size, halves in found.items()}

    @cached_property
    def _grams(self) -> dict[int, tuple[int, ...]]:
        """Evaluation questions that contain each rare 8-gram, by the gram's hash."""
        return self._rare(grams_of)

    @cached_property
    def _heads(self) -> dict[str, list[tuple[str, int]]]:
        """Short evaluation questions without blanks, by their first characters."""
        found: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for text, place in self._exact.items():
            if len(text) >= HEAD and FEWEST_TOKENS <= len(self._tokens[place]) <= SHORT:
                found[text[:HEAD]].append((text, place))
        return dict(found)

    @cached_property
    def _spans(self) -> dict[int, tuple[int, ...]]:
        """Evaluation questions that contain each rare n-gram of characters, without blanks, by the gram's hash."""
        return self._rare(lambda tokens: spans_of(joined(tokens)))

    @cached_property
    def _span_counts(self) -> Counter[int]:
        return Counter(place for places in self._spans.values() for place in places)

    def _rare(self, grams: Callable[[Sequence[str]], AbstractSet[int]]) -> dict[int, tuple[int, ...]]:
        found: dict[int, list[int]] = defaultdict(list)
        for place in self._distinct:
            for gram in grams(self._tokens[place]):
                found[gram].append(place)
        return {gram: tuple(places) for gram, places in found.items() if len(places) < COMMON}

    @cached_property
    def _gram_counts(self) -> Counter[int]:
        """Number of rare 8-grams of each evaluation question."""
        return Counter(place for places in self._grams.values() for place in places)

    @cached_property
    def _distinct(self) -> tuple[int, ...]:
        """One evaluation question for each group with equal texts, by place."""
        return tuple(self._exact.values())

    @cached_property
    def _features(self) -> dict[int, frozenset[str]]:
        return {place: features_of(self._tokens[place]) for place in self._distinct}

    @cached_property
    def _rarity(self) -> Counter[str]:
        return Counter(one for features in self._features.values() for one in features)

    @cached_property
    def _weights(self) -> dict[int, float]:
        return {place: sum(map(self._weight, features)) for place, features in self._features.items()}

    @cached_property
    def _numbered(self) -> dict[frozenset[tuple[str, int]], set[int]]:
        """Evaluation questions by the numbers in their text, with multiplicity."""
        found: dict[frozenset[tuple[str, int]], set[int]] = defaultdict(set)
        for place in self._distinct:
            if numbers := _counted(self._tokens[place]):
                found[numbers].add(place)
        return dict(found)

    @cached_property
    def _lookup(self) -> RMinHashLSH:
        lookup = RMinHashLSH(0.3, PERMUTATIONS, BANDS)
        for place, features in self._features.items():
            if features:
                lookup.insert(place, sketch_of(features))
        return lookup

    @cached_property
    def _formed(self) -> tuple[tuple[int, frozenset[tuple[str, int]]], ...]:
        """Evaluation questions whose text, without numbers, is a known form; with their numbers."""
        places = (place for place in self._distinct if joined(without_numbers(self._tokens[place])) in self._forms)
        return tuple((place, _counted(self._tokens[place])) for place in places)

    # decisions
    def _of_other_numbers(self, tokens: Sequence[str]) -> frozenset[int]:
        """Returns the evaluation questions of a known form whose numbers differ from those of this text."""
        own = _counted(tokens)
        return frozenset(place for place, numbers in self._formed if numbers != own)

    def _overlap(self, tokens: Sequence[str], others: AbstractSet[int]) -> Match | None:
        grams = grams_of(tokens)
        shared: Counter[int] = Counter()
        for gram in grams:
            shared.update(place for place in self._grams.get(gram, ()) if place not in others)
        return self._best(shared, max(FEWEST_GRAMS, len(grams)))

    def _best(self, shared: Counter[int], of: int) -> Match | None:
        """Returns the evaluation question that shares the most 8-grams, as a share of either text's, if above the
        threshold. `of` is the other text's number of 8-grams."""
        best: Match | None = None
        for place, count in shared.items():
            smaller = max(FEWEST_GRAMS, min(self._gram_counts[place], of))
            share = count / smaller
            if count >= FEWEST_GRAMS and share >= SHARE and (best is None or share > best.share):
                best = Match(self._ids[place], Check.GRAMS, min(1.0, share))
        return best

    def _run_together(
        self, whole: str, others: AbstractSet[int], known: AbstractSet[int] = frozenset()
    ) -> Match | None:
        """Returns the evaluation question that a text without blanks shares most with, except the spans in `known`."""
        spans = spans_of(whole) - known
        shared = Counter(place for span in spans for place in self._spans.get(span, ()) if place not in others)
        for place, count in shared.most_common(1):
            share = count / max(SPAN, min(self._span_counts[place], len(spans)))
            if share >= SHARE:
                return Match(self._ids[place], Check.GRAMS, min(1.0, share))
        return None

    def _near(self, tokens: Sequence[str], others: AbstractSet[int]) -> Match | None:
        features, numbers = features_of(tokens), numbers_in(tokens)
        if not features:
            return None
        own = sum(map(self._weight, features))
        numbered = self._numbered.get(_counted(tokens), ())
        enough = NEAR_WITH_NUMBERS if sum(map(len, numbers)) >= DIGITS else NEAR_WITH_FEW
        best: Match | None = None
        for place in {*self._lookup.query(sketch_of(features)), *numbered} - others:
            both = sum(map(self._weight, features & self._features[place]))
            share = both / (own + self._weights[place] - both)
            of_kept = both / self._weights[place]
            near = share >= NEAR or (place in numbered and of_kept >= enough)
            if near and (best is None or share > best.share):
                best = Match(self._ids[place], Check.NEAR, share)
        return best

    def _weight(self, feature: str) -> float:
        """Returns the weight of a word or word pair: higher if rare among evaluation questions, lower if unknown."""
        known = self._rarity[feature]
        top = math.log(1 + len(self._features))
        return top - math.log(1 + known) + 0.1 if known else UNKNOWN * top + 0.1


def text_of(task: Task) -> str:
    """Returns a task's question and the contents of its files as one text."""
    return "\n".join([task.question, *task.files.values()])


def content_of(task: Task) -> str:
    """Returns a digest of a task's question, ignoring blanks and case, with its files and world."""
    asked = " ".join(task.question.casefold().split())
    return _digest([asked, task.files, task.environment, task.world])


def check_of(task: Task) -> str:
    """Returns a digest of a task's spec, files and world."""
    return _digest([task.spec.model_dump(mode="json"), task.files, task.environment, task.world])


def features_of(tokens: Sequence[str]) -> frozenset[str]:
    """Returns the features of a text that MinHash compares: tokens, and pairs of neighbours."""
    return frozenset([*tokens, *(f"{one} {other}" for one, other in pairwise(tokens))])


def sketch_of(features: Iterable[str]) -> RMinHash:
    sketch = RMinHash(PERMUTATIONS, 1)
    sketch.update(sorted(features))
    return sketch


def _counted(tokens: Sequence[str]) -> frozenset[tuple[str, int]]:
    """Returns the numbers among the tokens with their multiplicities."""
    return frozenset(Counter(numbers_in(tokens)).items())


def _windows(tokens: tuple[str, ...], size: int) -> set[tuple[str, ...]]:
    return {tokens[start : start + size] for start in range(len(tokens) - size + 1)}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class TrainedQuestions:
    """Set of tasks trained on before, kept as hashes without their text."""

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self._marks = {mark for task in tasks for mark in _marks_of(task)}

    def meets(self, task: Task) -> bool:
        """True if a question trained on before has the same numbers and check, and differs in at most one word."""
        return bool(self._marks) and not self._marks.isdisjoint(_marks_of(task))


def _marks_of(task: Task) -> set[int]:
    """Returns hashes of a task; two tasks one word apart share one. Valid in this process only; none for very short or
    long tasks."""
    tokens = tokens_of(text_of(task))
    if not FEWEST_TOKENS <= len(tokens) <= SHORT:
        return set()
    check = check_of(task)
    return {hash((check, one)) for one in shortened(tokens, words_only=True)}
