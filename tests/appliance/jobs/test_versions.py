"""A bundle names the lineage of the weights that answered, and of no others."""

from __future__ import annotations

import json

from appliance.jobs.layout import LARGEST, VERSIONS, canonical, sha256
from appliance.jobs.versions import answered_with, environment, versions

LINEAGE = {"manifest": "ab" * 32, "parent": "cd" * 32, "stage": "training"}


def test_the_lineage_is_that_of_the_weights_that_answered() -> None:
    known = {"assay": "1", "weights": LINEAGE}
    assert answered_with(known, "ab" * 32) == known
    assert answered_with(known, "ef" * 32) == {"assay": "1", "weights": {"manifest": "ef" * 32}}
    assert answered_with(known, "") == answered_with({"assay": "1"}, "") == {"assay": "1", "weights": None}


def test_the_environment_is_named_by_a_digest_of_all_that_is_said_of_it() -> None:
    found = environment()
    assert found["packages"]["pydantic"]
    assert found["digest"] == sha256(canonical({name: value for name, value in found.items() if name != "digest"}))
    whole = canonical(versions(None, "ab" * 32, "gvisor 1"))
    assert json.loads(whole)["environment"] == found
    assert len(whole) < LARGEST[VERSIONS] / 10
