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
        CheckpointView,
        Comparison,
        CycleDetail,
        Failure,
        FamilyComparison,
        JobDetail,
        Judgement,
        NumberedEvent,
        Rollback,
        RolloutView,
        StartCycle,
        Status,
        SubmitJob,
        WorkerStatus,
    )
    from appliance.records import (
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
    from verifiers.spec import SPEC, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec
    from verifiers.verdict import Outcome, Verdict

__all__ = [
    "SPEC",
    "ApiClient",
    "ApiError",
    "Approval",
    "Approved",
    "Artifact",
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
    "ModelResults",
    "NumberedEvent",
    "Outcome",
    "PredicateSpec",
    "Purpose",
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
    "printable",
]
_HOLDS = {
    "appliance.client.api_client": ("ApiClient"),
    "appliance.client.failures": ("ApiError DaemonNotRunning DaemonSilent"),
    "appliance.client.messages": (
        "Approved CheckpointView Comparison CycleDetail Failure FamilyComparison JobDetail Judgement "
        "NumberedEvent Rollback RolloutView StartCycle Status SubmitJob WorkerStatus"
    ),
    "appliance.records": (
        "Approval Artifact Checkpoint Cycle CycleState Ended Evaluation Event ItemResult Job JobState "
        "ModelResults Purpose ToolCall ToolStatus"
    ),
    "policies.decision": ("Decision DecisionOutcome Finding GateOutcome"),
    "verifiers.spec": ("SPEC ExactSpec ExpressionSpec IntegerSpec PredicateSpec Spec"),
    "verifiers.verdict": ("Outcome Verdict"),
}
_ELSEWHERE = {name: module for module, names in _HOLDS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE[name]), name)
