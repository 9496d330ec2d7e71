"""Determines whether a copied question affects a decision: only one of the two compared models had learned it.

Invariants: a copy within one cycle always counts, because that cycle's filters should have stopped it. A
copy of another cycle's question counts if exactly one of the two models compared there had learned it, and the
candidate was not asked fresh questions since. A question that both had learned favours neither, and one that neither
had learned says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from appliance.ledger.ledger import Ledger
from appliance.records.evaluations import Evaluation
from curriculum.contract.task import Split, Task


class CopyBearing(StrEnum):
    """Effect on a decision of having trained on a copy of a held-out question."""

    CYCLE = "the cycle that kept it apart trained on it"
    DECISION = "one of the two models that were asked it had learned it"
    ANEW = "one of the two models that were asked it had learned it; fresh questions were asked since"
    BOTH = "both models that were asked it had learned it"
    NONE = "no model that was asked it had learned it"

    @property
    def counts(self) -> bool:
        return self in (CopyBearing.CYCLE, CopyBearing.DECISION)


@dataclass(frozen=True)
class CopyJudge:
    """Determines which decision a trained copy of a held-out question affects. It looks up which models were asked the
    question, and which had learned it."""

    ledger: Ledger
    kept_in: dict[str, tuple[str, ...]]
    """Cycles that held a question out, by its id."""

    def bearing(self, kept: str, cycle: str, question: Task | None = None) -> tuple[CopyBearing, Evaluation | None]:
        """Returns what it affects that a cycle trained on a copy of the held-out question `kept`. With it comes the
        evaluation behind an affected decision. Validation questions decide nothing."""
        keepers = self.kept_in.get(kept, ())
        if cycle in keepers:
            return CopyBearing.CYCLE, None
        found = CopyBearing.NONE
        if question is not None and question.split is Split.VALIDATION:
            return found, None
        for one in (self._evaluations[keeper] for keeper in keepers if keeper in self._evaluations):
            learned = [cycle in self._learned(model) for model in (one.candidate.weights, one.champion.weights)]
            if any(learned) and not all(learned):
                newest = self.ledger.evaluations(candidate=one.candidate.weights, limit=1)
                if newest and newest[0].id == one.id:
                    return CopyBearing.DECISION, one
                found = CopyBearing.ANEW
            elif all(learned) and found is CopyBearing.NONE:
                found = CopyBearing.BOTH
        return found, None

    @cached_property
    def _evaluations(self) -> dict[str, Evaluation]:
        """Evaluations of the cycles that held questions out, by cycle."""
        cycles = {cycle for cycles in self.kept_in.values() for cycle in cycles}
        found = {cycle: self.ledger.evaluation(f"{cycle}.evaluation") for cycle in cycles}
        return {cycle: one for cycle, one in found.items() if one is not None}

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        return {}

    def _learned(self, model: str) -> frozenset[str]:
        """Returns the cycles that trained a model or one of its ancestors."""
        if model not in self._known:
            self._known[model] = frozenset(_line_of(self.ledger, model))
        return self._known[model]


def _line_of(ledger: Ledger, model: str | None) -> Iterable[str]:
    seen: set[str] = set()
    while model is not None and model not in seen:
        seen.add(model)
        checkpoint = ledger.checkpoint(model)
        if checkpoint is None:
            return
        if checkpoint.stage != "imported":
            yield checkpoint.cycle
        model = checkpoint.parent
