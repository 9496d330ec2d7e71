"""What `assay tui --demo-data` makes up agrees with itself."""

from __future__ import annotations

from appliance.cli.demo.appliance import demo_appliance
from appliance.client import ApiClient
from policies.contract.decision import DecisionOutcome


def test_the_made_up_models_in_service_were_promoted_with_a_signature_and_no_night_is_left_running() -> None:
    with demo_appliance() as made:
        client = ApiClient(made.socket)
        status, views = client.status(), client.checkpoints(limit=20)
    assert status.cycle is not None
    assert status.cycle.state.ended
    in_service = {alias: view.decision for view in views for alias in view.aliases}
    assert set(in_service) == {"champion", "previous", "candidate"}
    for alias in ("champion", "previous"):
        decision = in_service[alias]
        assert decision is not None
        assert decision.outcome is DecisionOutcome.PROMOTE, decision.reason
        assert next(one.figure for one in decision.findings if one.gate == "approval") == 1
