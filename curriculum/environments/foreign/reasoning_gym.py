"""Makes and scores items of reasoning-gym's data sets. It runs in the guest.

What always holds: item i of a data set with seed s comes from `Random(s + i)`, so items are told apart by s + i, and
who asks keeps seeds further apart than a data set is large. The score is never the library's default one, which pays
for a text that mentions the answer: an answer is the answer, or it is short and the data set's own scorer decides.
"""

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.factory import CURRICULA, DATASETS, create_curriculum, create_dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    SETUP: dict[str, Any] = {}
    ToolError = Exception

LEVELS = 5
ITEM_BYTES = 9_000
"""Of the items that one call gives."""
ITEM_SECONDS = 1.0
LONGER = 64
"""Characters that an answer may have beyond twice those of the known one: what is longer is no final form."""
given: "list[str]" = []


def levels_of(name: str) -> int:
    """How many different configurations its curriculum has, 1 without one."""
    if name not in CURRICULA:
        return 1
    return max((len(one.levels) for one in create_curriculum(name).attributes.values()), default=1)


def dataset_of(name: str, level: int, seed: int, size: int) -> Any:
    """At one of five levels: those of its curriculum, as evenly spread as they are many."""
    if name not in DATASETS:
        raise ToolError(f"reasoning-gym has no data set {name[:80]!r}")
    if name not in CURRICULA:
        return create_dataset(name, seed=seed, size=size)
    curriculum = create_curriculum(name)
    count = levels_of(name)
    curriculum.set_global_level(min(level, count - 1) if count <= LEVELS else level * (count - 1) // (LEVELS - 1))
    config = curriculum.generate_configuration({"seed": seed, "size": size})
    if hasattr(config, "validate"):
        config.validate()
    return DATASETS[name][0](config=config)


def default_score(name: str) -> bool:
    return bool(DATASETS[name][0].score_answer is ProceduralDataset.score_answer)


def list_sets() -> str:
    return json.dumps({name: levels_of(name) for name in sorted(DATASETS)})


def make_items(name: str, level: int, seed: int, size: int, first: int) -> str:
    begun = time.process_time()
    found: list[dict[str, Any]] = []
    taken = 0
    try:
        data = dataset_of(name, level, seed, size)
        for index in range(first, size):
            entry = data[index]
            question, answer = entry["question"], entry["answer"]
            if not isinstance(question, str) or not isinstance(answer, str | None):
                raise ValueError(f"item {index} is no pair of texts")
            found.append({"index": index, "question": question, "answer": answer or ""})
            taken += len(json.dumps(found[-1], ensure_ascii=False).encode())
            if taken > ITEM_BYTES and len(found) > 1:
                found.pop()
                break
            if time.process_time() - begun > ITEM_SECONDS:
                break
    except (ImportError, ValueError, AssertionError, TypeError, KeyError, IndexError) as error:
        raise ToolError(f"{name[:80]} makes no items here: {type(error).__name__}: {error}"[:300]) from error
    return json.dumps(found, ensure_ascii=False)


def give_answer(answer: str) -> str:
    if given:
        raise ToolError("an answer has been given already")
    given.append(answer)
    return "the answer has been taken"


def score_of(name: str, data: Any, entry: "dict[str, Any]", answer: str) -> float:
    """From 0 to 1, as the data set scores it, and no score for a mention."""
    known = entry["answer"]
    if isinstance(known, str) and len(answer) > 2 * len(known) + LONGER:
        return 0.0
    if default_score(name):
        return float(answer.strip() == known.strip())
    return float(data.score_answer(answer=answer, entry=entry))


def reward() -> float:
    item = SETUP["item"]
    data = dataset_of(item["name"], item["level"], item["seed"], item["size"])
    entry = data[item["index"]]
    if hashlib.sha256(entry["question"].encode()).hexdigest() != item["asked"]:
        raise RuntimeError(f"item {item['index']} of {item['name']} is another one than was asked")
    return score_of(item["name"], data, entry, given[0]) if given else 0.0


PLAYS: "dict[str, Callable[..., str]]" = {"give_answer": give_answer}
