"""The names that `appliance.client` exports, loaded together on first use."""
# mypy: implicit-reexport
# ruff: noqa: F401

from __future__ import annotations

from functools import lru_cache

from appliance.client.api_client import ApiClient
from appliance.client.failures import ApiError, DaemonNotRunning, DaemonSilent
from appliance.client.messages import (
    Approved,
    BacktestRow,
    BudgetView,
    CheckpointView,
    JobDetail,
    Keys,
    LogPart,
    PolicyInForce,
    Rollback,
    RolloutDetail,
    RolloutView,
    StartCycle,
    SubmitJob,
    TreeRollout,
    TurnText,
)
from appliance.client.pass_rates import HIGH, LOW, RateLine, block, lines_of, rates_of, zone
from appliance.client.person_keys import KeyFileError, PersonKey, find_key, keys_folder, login_name, unlock
from appliance.client.rollback import TAKE_IT_OUT, taking_back
from appliance.client.screen import AuditBefore, AuditLine, CycleCurves, GpuUse, MachineView, ModelLineage, ProcessUse
from appliance.client.signing import signed_approval
from appliance.client.status import CanaryView, Status, WorkerStatus
from appliance.records.cycles import Checkpoint, Cycle, CycleState, Event
from appliance.records.evaluations import Approval, Evaluation, ItemResult, ModelResults
from appliance.records.jobs import MEANING, Artifact, Job, JobState
from appliance.records.rollouts import Purpose, Role, RolloutEnd, ToolCall, ToolStatus
from appliance.records.training import PassCount, RolloutFilter
from appliance.text.printable import printable
from policies.contract.decision import Decision, DecisionOutcome, GateFinding, GateOutcome, KnownKey
from policies.errors import StatementRefused
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.exact.spec import ExactSpec
from verifiers.predicate.spec import PredicateSpec
from verifiers.registry import kind_of
from verifiers.registry.spec import SPEC, Spec


@lru_cache(maxsize=256)
def explain_check(spec: Spec) -> tuple[str, ...]:
    """Explains in words what a check accepts: a one-line summary, then lines of detail. Hostile text, to be escaped."""
    kind = kind_of(spec)
    try:
        return spec.summary(), *kind.explain.load()(spec)
    except SpecError as error:
        return kind.name, f"unusable: {error}"
