"""The control API as a program sees it: a typed client and the messages. The CLI and the TUI use nothing else.

with ApiClient(socket_path) as api:
    status = api.status()

The names here are loaded when they are first used: importing one module of this package loads none of the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from appliance.client.printable import printable

if TYPE_CHECKING:
    from appliance.client.api_client import ApiClient
    from appliance.client.failures import ApiError, DaemonNotRunning, DaemonSilent
    from appliance.client.messages import (
        Approved,
        Backtest,
        BacktestRow,
        BudgetView,
        CanaryView,
        CheckpointView,
        Comparison,
        CycleDetail,
        Failure,
        FamilyComparison,
        JobDetail,
        Judgement,
        KeyChange,
        Keys,
        NumberedEvent,
        PolicyChange,
        PolicyInForce,
        Rollback,
        RolloutView,
        StartCycle,
        Status,
        SubmitJob,
        WorkerStatus,
    )
    from appliance.client.person_keys import KeyFileError, PersonKey, find_key, keys_folder, unlock
    from appliance.client.signing import signed_word
    from appliance.records import (
        MEANING,
        Approval,
        Artifact,
        Checkpoint,
        Cycle,
        CycleState,
        Ended,
        Evaluation,
        Event,
        ItemResult,
        Job,
        JobState,
        ModelResults,
        Purpose,
        ToolCall,
        ToolStatus,
    )
    from policies.decision import Decision, DecisionOutcome, Finding, GateOutcome
    from policies.refusals import Refused
    from policies.register import KnownKey
    from verifiers.spec import SPEC, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec
    from verifiers.verdict import Outcome, Verdict

__all__ = [
    "MEANING",
    "SPEC",
    "ApiClient",
    "ApiError",
    "Approval",
    "Approved",
    "Artifact",
    "Backtest",
    "BacktestRow",
    "BudgetView",
    "CanaryView",
    "Checkpoint",
    "CheckpointView",
    "Comparison",
    "Cycle",
    "CycleDetail",
    "CycleState",
    "DaemonNotRunning",
    "DaemonSilent",
    "Decision",
    "DecisionOutcome",
    "Ended",
    "Evaluation",
    "Event",
    "ExactSpec",
    "ExpressionSpec",
    "Failure",
    "FamilyComparison",
    "Finding",
    "GateOutcome",
    "IntegerSpec",
    "ItemResult",
    "Job",
    "JobDetail",
    "JobState",
    "Judgement",
    "KeyChange",
    "KeyFileError",
    "Keys",
    "KnownKey",
    "ModelResults",
    "NumberedEvent",
    "Outcome",
    "PersonKey",
    "PolicyChange",
    "PolicyInForce",
    "PredicateSpec",
    "Purpose",
    "Refused",
    "Rollback",
    "RolloutView",
    "Spec",
    "StartCycle",
    "Status",
    "SubmitJob",
    "ToolCall",
    "ToolStatus",
    "Verdict",
    "WorkerStatus",
    "find_key",
    "keys_folder",
    "printable",
    "signed_word",
    "unlock",
]
_HOLDS = {
    "appliance.client.api_client": ("ApiClient"),
    "appliance.client.failures": ("ApiError DaemonNotRunning DaemonSilent"),
    "appliance.client.messages": (
        "Approved Backtest BacktestRow BudgetView CanaryView CheckpointView Comparison CycleDetail Failure "
        "FamilyComparison JobDetail Judgement KeyChange Keys NumberedEvent PolicyChange PolicyInForce "
        "Rollback RolloutView StartCycle Status SubmitJob WorkerStatus"
    ),
    "appliance.client.person_keys": ("KeyFileError PersonKey find_key keys_folder unlock"),
    "appliance.client.signing": ("signed_word"),
    "appliance.records": (
        "Approval Artifact Checkpoint Cycle CycleState Ended Evaluation Event ItemResult Job JobState MEANING "
        "ModelResults Purpose ToolCall ToolStatus"
    ),
    "policies.decision": ("Decision DecisionOutcome Finding GateOutcome"),
    "policies.refusals": ("Refused"),
    "policies.register": ("KnownKey"),
    "verifiers.spec": ("SPEC ExactSpec ExpressionSpec IntegerSpec PredicateSpec Spec"),
    "verifiers.verdict": ("Outcome Verdict"),
}
_ELSEWHERE = {name: module for module, names in _HOLDS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE[name]), name)
