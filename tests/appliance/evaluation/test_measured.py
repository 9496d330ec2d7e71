"""Measured pass rates: whose they are, which attempts count, and which questions are asked for them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from appliance.errors import UsageError
from appliance.evaluation.measured import folder_of, name_key, seen_in, weights_key
from appliance.evaluation.plan import ATTEMPTS, AttemptFile, EvaluationAttempt, EvaluationPlan, questions
from curriculum.contract.task import Split
from curriculum.difficulty import Place, Seen
from curriculum.registry import TASKSETS
from curriculum.seeds import split_of_question

VERSION = TASKSETS["arithmetic"].version


def plan(**changes: Any) -> EvaluationPlan:
    return EvaluationPlan.model_validate(
        {
            "model": "m", "engine": "torch", "tasksets": (f"arithmetic@{VERSION}",), "items": 2, "each_topic": True,
            "seeds": (0,), "repeats": 4, "temperature": 1.0, "max_tokens": 100, "max_calls": 4,
            "max_result_chars": 28, "assay": "0", **changes,
        }
    )  # fmt: skip


def attempt(question: str, repeat: int, outcome: Any, level: int = 0) -> EvaluationAttempt:
    return EvaluationAttempt(
        question=question, taskset="arithmetic", level=level, topic="sums", seed=0, repeat=repeat, outcome=outcome,
        ended="answered", tokens=10, calls=1, failed_calls=0, seconds=1.0,
    )  # fmt: skip


def kept(data: Path, asked: EvaluationPlan, *made: EvaluationAttempt, key: str = "k") -> Path:
    folder = folder_of(data, key, asked)
    with AttemptFile(folder, asked, resume=True) as file:
        file.add(made)
    return folder


def test_a_base_and_its_copy_without_its_card_are_the_same_model_and_other_weights_are_not(tmp_path: Path) -> None:
    def folder(name: str, weights: bytes, **listed: Any) -> Path:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(weights)
        if listed:
            (tmp_path / name / "manifest.json").write_text(json.dumps({"files": listed}))
        return tmp_path / name

    plain = folder("plain", b"w")
    digest = {"sha256": "50e721e49c013f00c62cf59f2163542a9d8df02464efeb615d31051b0fddc326", "bytes": 1}
    base = folder("base", b"w", **{"model.safetensors": digest, "base.json": {"sha256": "a", "bytes": 1}})
    assert weights_key(plain) == weights_key(base)
    assert weights_key(folder("other", b"v")) != weights_key(plain)
    for name in ("one", "two"):  # without weights two models would look alike
        (tmp_path / name).mkdir()
        with pytest.raises(UsageError, match=r"has no \.safetensors file"):
            weights_key(tmp_path / name)


def test_judged_attempts_of_all_measurements_add_up_by_place_and_lost_ones_do_not_count(tmp_path: Path) -> None:
    made = [attempt("a", 0, "right"), attempt("a", 1, "wrong"), attempt("a", 2, "lost"), attempt("b", 0, "wrong", 1)]
    kept(tmp_path, plan(), *made)
    kept(tmp_path, plan(repeats=8), attempt("c", 0, "right"))
    kept(tmp_path, plan(), attempt("d", 0, "right"), key=name_key("another"))
    zero, one = Place("arithmetic", 0, "sums"), Place("arithmetic", 1, "sums")
    assert seen_in(tmp_path, "k") == [Seen(zero, 2, 3), Seen(one, 0, 1)]
    assert seen_in(tmp_path, "nobody") == []


def test_what_a_taskset_of_another_version_or_a_torn_line_says_is_left_out(tmp_path: Path) -> None:
    kept(tmp_path, plan(tasksets=(f"arithmetic@{VERSION + 1}",)), attempt("a", 0, "right"))
    kept(tmp_path, plan(tasksets=("never@1",)), attempt("a", 0, "right"))
    folder = kept(tmp_path, plan(), attempt("a", 0, "right"))
    with (folder / ATTEMPTS).open("a") as file:
        file.write('{"question": "b", ')
    torn = folder.with_name("torn")
    torn.mkdir()
    (torn / "plan.json").write_text("{")
    assert seen_in(tmp_path, "k") == [Seen(Place("arithmetic", 0, "sums"), 1, 1)]


@pytest.mark.parametrize("name", ["arithmetic", "divisibility"])
def test_each_topic_is_asked_equally_often_at_each_level_from_the_validation_split(name: str) -> None:
    taskset = TASKSETS[name]
    asked = questions(plan(tasksets=(f"{name}@{taskset.version}",), items=3))
    found = Counter((one.task.level, one.task.topic) for one in asked)
    assert {topic for _, topic in found} == set(taskset.topics)
    assert {level for level, _ in found} == set(range(taskset.level_count))
    assert max(found.values()) == 3
    assert len({one.task.key for one in asked}) == len(asked)
    assert all(split_of_question(one.task.key) is Split.VALIDATION for one in asked)
