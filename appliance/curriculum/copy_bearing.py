"""Says what rests on a copy: a decision between models of which one had learned what both were asked, or none.

What always holds: a copy within one cycle counts, whatever came of it, because that cycle's doors were there to stop
it. A copy of what another cycle was judged by counts where just one of the two models that it compared had learned it,
as long as the candidate was not asked fresh questions since. What both had learned cannot make the one look better, and
what neither had learned says nothing about them.
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
    """What rests on a copy."""

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
    """Looks up who was asked what, and who had learned what."""

    ledger: Ledger
    kept_in: dict[str, tuple[str, ...]]
    """The cycles that kept a question apart, by its id."""

    def bearing(self, kept: str, cycle: str, question: Task | None = None) -> tuple[CopyBearing, Evaluation | None]:
        """What rests on it that this cycle learned a copy of the question with that id; where a decision does, the
        evaluation that it rests on. Held-out questions decide nothing."""
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
        """By cycle, as far as questions were kept in one."""
        cycles = {cycle for cycles in self.kept_in.values() for cycle in cycles}
        found = {cycle: self.ledger.evaluation(f"{cycle}.evaluation") for cycle in cycles}
        return {cycle: one for cycle, one in found.items() if one is not None}

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        return {}

    def _learned(self, model: str) -> frozenset[str]:
        """The cycles that a model and those before it in its line learned in."""
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
