"""Anchors: for each taskset, the best champion confirmed there, under the alias `anchor/TASKSET`. Pure.

Invariants: the first anchor is the champion that the taskset was first evaluated with; only a later champion that is
shown to be better there takes its place, regardless of other promotions. An evaluation records the anchors it was
made with, so that a decision on it can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from appliance.records.evaluations import ANCHOR, Evaluation, ItemResult
from policies.contract.evidence import PairedItem, RetainedTaskset, first_answers, pairs
from policies.gates import retention
from policies.policy import Policy
from policies.statistics import log_odds
from policies.statistics.sequential import level_of


def paired(champion: Sequence[ItemResult], candidate: Sequence[ItemResult]) -> tuple[PairedItem, ...]:
    """Pairs the champion's evaluation results with the candidate's, by question; a missing answer counts as lost."""
    answers = {item.task: item.passed for item in candidate}
    return tuple(
        PairedItem(
            task=item.task,
            family=item.family,
            champion_passed=item.passed,
            candidate_passed=answers.get(item.task),
            question=item.question,
        )
        for item in champion
    )


def asked_in(evaluation: Evaluation) -> frozenset[str]:
    """Returns the tasksets that an evaluation asked."""
    return frozenset(item.family for item in evaluation.champion.items)


def beside(evaluation: Evaluation, weights: str, other: str, family: str) -> tuple[PairedItem, ...]:
    """Pairs two models' answers to one taskset, the first in the champion's place; empty unless both were asked."""
    first, second = (_answers(evaluation, one, family) for one in (weights, other))
    return paired(first, second) if first and second else ()


def retained(evaluation: Evaluation, nights: Sequence[Evaluation]) -> tuple[RetainedTaskset, ...]:
    """Returns the tasksets whose anchor is another model than the champion, and those that no night asked. `nights` are
    all evaluations of the pair that count, oldest first, with this one."""
    asked = frozenset[str]().union(*map(asked_in, nights))
    candidate, champion = evaluation.candidate.weights, evaluation.champion.weights
    found = []
    for family, anchor in sorted(evaluation.anchored.items()):
        if anchor == champion and family in asked:
            continue
        answers = [beside(night, anchor, candidate, family) for night in nights]
        found.append(RetainedTaskset(family=family, anchor=anchor, nights=tuple(answers) if any(answers) else ()))
    return tuple(found)


def anchor_moves(
    evaluation: Evaluation, history: Iterable[Evaluation], better: int, policy: Policy
) -> dict[str, str | None]:
    """Returns the anchors that an evaluation sets: of each taskset asked first, and where the champion is shown to be
    better than the anchor over all evaluations that asked both. `better` as in the quarter's budget."""
    rules = policy.gates.get(retention.GATE)
    if rules is None:
        return {}
    champion = evaluation.champion.weights
    nights = sorted({one.id: one for one in (*history, evaluation)}.values(), key=lambda one: (one.created, one.id))
    enough = -math.log(level_of(rules.alpha, better + 1))
    moves: dict[str, str | None] = {}
    for family in sorted(asked_in(evaluation)):
        anchor = evaluation.anchored.get(family, champion)
        if anchor != champion:
            counts = pairs(first_answers(beside(night, anchor, champion, family) for night in nights))
            if log_odds(counts.gained, counts.lost) < enough:
                continue
        moves[f"{ANCHOR}{family}"] = champion
    return moves


def anchors_without(
    gone: str, aliases: Mapping[str, str | None], moves: Sequence[Mapping[str, str | None]]
) -> dict[str, str | None]:
    """Returns the moves of all anchors that are the withdrawn model `gone`, back to the anchor before it, if any.
    `moves` are all alias changes, oldest first."""
    back: dict[str, str | None] = {}
    for name, model in aliases.items():
        if name.startswith(ANCHOR) and model == gone:
            before = [move[name] for move in moves if name in move and move[name] != gone]
            back[name] = before[-1] if before else None
    return back


def _answers(evaluation: Evaluation, weights: str, family: str) -> list[ItemResult]:
    """Returns a model's sampled answers to one taskset, in any role."""
    for results in (evaluation.champion, evaluation.candidate, *evaluation.anchors):
        if results.weights == weights and (own := [item for item in results.items if item.family == family]):
            return own
    return []
