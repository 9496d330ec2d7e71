"""Anchors answer tonight's sealed questions of their tasksets, once, and only where nobody else has answered them."""

from __future__ import annotations

import shutil
from pathlib import Path

from recorded_nights import RecordedNight
from short_nights import SHORT

from appliance.worker.evaluation.anchors import anchored_in, answers_of_anchors, with_anchor
from appliance.worker.setup.cycle_setup import CycleSetup
from curriculum.names import CALCULATORS
from curriculum.sealed import sealed_set


def test_an_anchor_answers_its_own_tasksets_once_and_none_that_is_there(
    recorded_night: RecordedNight, tmp_path: Path
) -> None:
    with recorded_night.copied("finished", tmp_path / "later") as context:
        ledger, decision, told = context.ledger, recorded_night.decision, list[str]()
        first, champion = decision.champion, decision.candidate
        assert first is not None
        (evaluation,) = ledger.evaluations()
        asked = {item.family for item in evaluation.champion.items}
        assert evaluation.anchored == dict.fromkeys(sorted(asked), first)
        assert set(with_anchor(ledger, "later")) == asked, "the decision made the first champion the anchor"
        setup = CycleSetup("later", 7, SHORT, CALCULATORS, sealed_set(4, 7))
        families = sorted({task.taskset for task in setup.sealed.tasks})
        anchored = {**anchored_in(ledger, champion, frozenset(families)), families[0]: first}

        assert answers_of_anchors(anchored, frozenset({first, champion}), setup, context, told.append) == ()
        (answers,) = answers_of_anchors(anchored, frozenset({champion}), setup, context, told.append)
        own = [task.id for task in setup.sealed.tasks if anchored[task.taskset] == first]
        assert (answers.weights, [item.task for item in answers.items]) == (first, own)
        counted = ledger.rollout_counts("later")
        (again,) = answers_of_anchors(anchored, frozenset({champion}), setup, context, told.append)
        assert (again.items, ledger.rollout_counts("later")) == (answers.items, counted)
        assert told[0] == told[1]
        assert told[0].startswith(f"the anchor {first[:12]}, sampled: ")

        context.load(ledger.checkpoint(champion))
        shutil.rmtree(context.data / "models" / first)
        assert answers_of_anchors(anchored, frozenset({champion}), setup, context, told.append) == ()
        assert "cannot be loaded, so the candidate is held" in told[2]
