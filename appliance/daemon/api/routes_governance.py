"""API routes of keys and of the policy."""

from __future__ import annotations

from appliance.client.messages import (
    Backtest,
    BudgetView,
    Keys,
    PolicyChange,
    PolicyInForce,
    PolicyText,
    SignedStatement,
)
from appliance.daemon.api.requests import Answer, ApiRequest, ApiRoute, get, post, utf8
from appliance.daemon.coordination.core import Core
from appliance.daemon.governance import backtest
from appliance.settings.policy_files import parse_policy
from policies.contract.keys import KnownKey


def governance_routes(core: Core) -> list[ApiRoute]:
    def change_policy(asked: ApiRequest) -> Answer:
        wanted = asked.body(PolicyChange)
        return core.governance.change_policy(utf8(wanted.content), utf8(wanted.envelope))

    def try_policy(asked: ApiRequest) -> Answer:
        content = asked.body(PolicyText).content
        policy = parse_policy(content.encode(), "the policy") if content else core.policy
        return backtest.backtest(core.ledger, policy)

    def budget(asked: ApiRequest) -> Answer:
        return backtest.budget(core.ledger, core.policy, core.now())

    return [
        get("/v1/keys", Keys, lambda asked: core.trust.keys(), "Known keys."),
        get("/v1/policy", PolicyInForce, lambda asked: core.trust.policies.in_force(), "The policy in force."),
        get("/v1/policy/budget", BudgetView, budget, "Budget of the quarter."),
        post(
            "/v1/keys",
            KnownKey,
            lambda asked: core.trust.change_key(asked.envelope()),
            "Admits or revokes a key.",
            SignedStatement,
        ),
        post("/v1/policy", PolicyInForce, change_policy, "Puts a signed policy into force.", PolicyChange),
        post("/v1/policy/backtest", Backtest, try_policy, "Decisions that a policy would have made.", PolicyText),
    ]
