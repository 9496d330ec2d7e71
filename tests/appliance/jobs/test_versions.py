"""A bundle names the lineage of the weights that answered, and of no others."""

from __future__ import annotations

from appliance.jobs.versions import answered_with

LINEAGE = {"manifest": "ab" * 32, "parent": "cd" * 32, "stage": "training"}


def test_the_lineage_is_that_of_the_weights_that_answered() -> None:
    known = {"assay": "1", "weights": LINEAGE}
    assert answered_with(known, "ab" * 32) == known
    assert answered_with(known, "ef" * 32) == {"assay": "1", "weights": {"manifest": "ef" * 32}}
    assert answered_with(known, "") == answered_with({"assay": "1"}, "") == {"assay": "1", "weights": None}
