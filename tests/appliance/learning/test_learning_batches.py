"""Batches hold what was sampled, as it was sampled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_builders import judged

from appliance.learning.batches import Sample, collate, micro_batches, sample_each, samples
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.records.rollouts import Message, Role


def test_ids_and_log_probabilities_are_those_of_the_graph_and_only_own_tokens_are_on() -> None:
    rollout = judged(calls=(True, False)).rollout
    (made,) = sample_each(rollout, 0.5)
    at = 0
    for node in rollout.nodes:
        piece = slice(at, at + len(node.ids))
        assert made.ids[piece] == node.ids
        assert set(made.mask[piece]) == {node.sampled}
        assert made.logprobs[piece] == (node.logprobs if node.sampled else (0.0,) * len(node.ids))
        assert made.advantages[piece] == (0.5 if node.sampled else 0.0,) * len(node.ids)
        at += len(node.ids)
    assert at == len(made.ids)
    assert made.trained_tokens == sum(len(node.ids) for node in rollout.nodes if node.role is Role.ASSISTANT)


def test_a_result_that_nobody_read_is_cut() -> None:
    rollout = judged(calls=()).rollout
    unread = Message(parent=len(rollout.nodes) - 1, role=Role.TOOL, ids=(7, 8), sampled=False)
    longer = rollout.model_copy(update={"nodes": (*rollout.nodes, unread)})
    assert sample_each(longer, 1.0) == sample_each(rollout, 1.0)


def test_a_sampled_node_without_its_log_probabilities_is_refused() -> None:
    rollout = judged(calls=()).rollout
    bare = rollout.nodes[-1].model_copy(update={"logprobs": ()})
    with pytest.raises(LearningError, match="0 log-probabilities"):
        sample_each(rollout.model_copy(update={"nodes": (*rollout.nodes[:-1], bare)}), 1.0)


def test_each_path_of_a_graph_is_a_sample_and_shared_tokens_train_once() -> None:
    rollout = judged(calls=(True, False)).rollout
    at = len(rollout.nodes)
    branch = [
        node.model_copy(update={"parent": place}) for node, place in ((rollout.nodes[4], 1), (rollout.nodes[5], at))
    ]
    side = rollout.nodes[5].model_copy(update={"parent": 4, "why": "drawn otherwise"})
    first, second, third = sample_each(rollout.model_copy(update={"nodes": (*rollout.nodes, *branch, side)}), 0.5)
    assert replace(first, share=1.0) == sample_each(rollout, 0.5)[0]
    assert third.ids == tuple(token for place in (0, 1, 4, 5) for token in rollout.nodes[place].ids)
    own = [place >= len(third.ids) - len(rollout.nodes[5].ids) for place in range(len(third.ids))]
    assert list(third.mask) == own
    assert [bool(advantage) for advantage in third.advantages] == own
    assert (second.ids, second.trained_tokens) == ((), 0)
    assert first.share + third.share == pytest.approx(1)


@pytest.mark.parametrize("parent", [-1, 6, 60])
def test_a_node_before_its_parent_is_refused(parent: int) -> None:
    rollout = judged(calls=(True, False)).rollout
    wrong = rollout.nodes[-1].model_copy(update={"parent": parent})
    with pytest.raises(LearningError, match="does not follow its parent"):
        sample_each(rollout.model_copy(update={"nodes": (*rollout.nodes, wrong)}), 1.0)


def test_a_conversation_that_was_written_anew_begins_a_sample_of_its_own() -> None:
    first, second = (judged(calls=(True,)).rollout for _ in range(2))
    at = len(first.nodes)
    anew = [
        node.model_copy(update={"parent": None if place == 0 else at + place - 1, "ids": (9, *node.ids[1:])})
        for place, node in enumerate(second.nodes)
    ]
    rollout = first.model_copy(update={"nodes": (*first.nodes, *anew)})
    one, other = sample_each(rollout, 0.5)
    assert [replace(one, share=1.0)] == sample_each(first, 0.5)
    assert (one.share, other.share) == (0.5, 0.5)
    assert other.ids == tuple(token for node in anew for token in node.ids)
    assert other.trained_tokens == one.trained_tokens
    assert rollout.turns == first.turns + second.turns


def test_a_sample_has_a_mark_and_a_log_probability_for_each_token() -> None:
    with pytest.raises(LearningError, match=r"\(2, 2, 1, 2\)"):
        Sample("r", (1, 2), (False, True), (0.0,), (0.0, 1.0))


def test_a_kept_rollout_without_a_record_is_named() -> None:
    rollouts = [judged(sample=i, correct=i < 2) for i in range(4)]
    groups = make_groups(rollouts, TrainingRecipe(rollouts_per_task=4, keep=4), 0)
    with pytest.raises(LearningError, match="c/train/0/t/3"):
        samples(rollouts[:3], groups)


@given(st.permutations(range(8)))
def test_how_the_records_are_listed_does_not_matter(order: list[int]) -> None:
    rollouts = [judged("ab"[i % 2], i // 2, correct=i < 4) for i in range(8)]
    groups = make_groups(rollouts, TrainingRecipe(rollouts_per_task=4, keep=2), 0)
    assert samples([rollouts[i] for i in order], groups[::-1]) == samples(rollouts, groups)


@given(st.integers(1, 20), st.integers(1, 25))
def test_micro_batches_hold_everything_once_sorted_by_length(count: int, size: int) -> None:
    chosen = [sample_each(judged(sample=i, calls=(True,) * (i % 4)).rollout, 1.0)[0] for i in range(count)]
    parts = micro_batches(chosen, size)
    flat = [one for part in parts for one in part]
    assert sorted(one.rollout for one in flat) == sorted(one.rollout for one in chosen)
    assert [len(one.ids) for one in flat] == sorted(len(one.ids) for one in chosen)
    assert all(1 <= len(part) <= size for part in parts)


def test_rows_are_padded_on_the_right_and_padding_is_never_trained_on() -> None:
    chosen = [sample_each(judged(sample=i, calls=(True,) * i).rollout, float(i))[0] for i in range(3)]
    batch = collate(chosen)
    width = max(len(one.ids) for one in chosen)
    assert batch.ids.shape == batch.mask.shape == batch.logprobs.shape == batch.advantages.shape == (3, width)
    for row, one in enumerate(chosen):
        assert batch.ids[row, : len(one.ids)].tolist() == list(one.ids)
        assert batch.mask[row].tolist() == [*one.mask, *[False] * (width - len(one.ids))]
        assert batch.advantages[row].tolist() == [*one.advantages, *[0.0] * (width - len(one.ids))]
        assert not batch.logprobs[row, len(one.ids) :].any()
