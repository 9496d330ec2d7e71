"""The control API as a program sees it: a typed client and the messages. The CLI and the TUI use nothing else.

with ApiClient(socket_path) as api:
    status = api.status()
"""

from __future__ import annotations

from appliance.client.api_client import ApiClient
from appliance.client.failures import ApiError, DaemonNotRunning, DaemonSilent
from appliance.client.messages import (
    Approved,
    Backtest,
    BacktestRow,
    BudgetView,
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
from appliance.client.printable import printable
from appliance.client.signing import signed_word
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
from policies.refusals import Refused
from policies.register import KnownKey
from verifiers.spec import SPEC, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec
from verifiers.verdict import Outcome, Verdict

__all__ = [
    "SPEC",
    "ApiClient",
    "ApiError",
    "Approval",
    "Approved",
    "Artifact",
    "Backtest",
    "BacktestRow",
    "BudgetView",
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
