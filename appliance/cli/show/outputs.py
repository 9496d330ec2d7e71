"""Table from each command's words to the models that it prints with `--json`.

Invariants: models are imported only when a schema is requested; a field that was once printed stays
(tests/appliance/cli/show/test_cli_json.py).
"""

from __future__ import annotations

import importlib
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

DIALECT = GenerateJsonSchema.schema_dialect
Form = Literal["document", "list", "lines"]


class JsonOutput(NamedTuple):
    """Output of a command with `--json`: one document, a list of documents, or a stream of documents one per line."""

    place: str
    """`module:Class`."""
    form: Form = "document"
    when: str = ""
    """Condition for this output if a command has several."""

    @property
    def model(self) -> str:
        return self.place.partition(":")[2]

    def type(self) -> Any:
        """Imports and returns the model of a printed document; for a list, the type of the list."""
        module, _, name = self.place.partition(":")
        found: Any = getattr(importlib.import_module(module), name)
        return list.__class_getitem__(found) if self.form == "list" else found


_MESSAGES = "appliance.client.messages"
_DOCUMENTS = "appliance.cli.documents"
_CYCLE = JsonOutput("appliance.records.cycles:Cycle")
_JOB = JsonOutput("appliance.records.jobs:Job")
_DETAIL = f"{_MESSAGES}:JobDetail"
_VERDICT = JsonOutput("verifiers.contract.verdict:Verdict")
_PAIRS = (
    JsonOutput(f"{_DOCUMENTS}.checks:PairsSummary", when="with --pairs and --out"),
    JsonOutput(f"{_DOCUMENTS}.checks:PairResult", "lines", "with --pairs alone"),
)
_JUDGED = (_VERDICT._replace(when="for one submission"), *_PAIRS)
_BACKUP = JsonOutput(f"{_DOCUMENTS}.data:BackupDocument")
_HEAD = JsonOutput(f"{_DOCUMENTS}.data:AuditHeadDocument")
_OFFERED = JsonOutput(f"{_DOCUMENTS}.data:OfferedKey")
_SCHEDULE = JsonOutput("appliance.client.nights:ScheduleView")
_KEY_OF_AGENT = "appliance.client.gateway:TokenView"
_ADDED = JsonOutput(f"{_DOCUMENTS}.tasks:AddedRows")
_APPROVED = JsonOutput(f"{_MESSAGES}:Approved")

OUTPUTS: dict[str, tuple[JsonOutput, ...]] = {
    "status": (JsonOutput("appliance.client.status:Status"),),
    "doctor": (JsonOutput(f"{_DOCUMENTS}.data:DoctorDocument"),),
    "plan": (JsonOutput(f"{_DOCUMENTS}.models:PlanDocument"),),
    "schema": (JsonOutput(f"{_DOCUMENTS}.data:CommandSchema", "list", "without a command; with one, its JSON Schema"),),
    "selftest gpu": (JsonOutput(f"{_DOCUMENTS}.models:GpuSelftest"),),
    "backup create": (_BACKUP,),
    "backup ls": (JsonOutput(f"{_DOCUMENTS}.data:BackupsDocument"),),
    "backup verify": (_BACKUP,),
    "backup restore": (JsonOutput(f"{_DOCUMENTS}.data:RestoredDocument"),),
    "backup rm": (JsonOutput(f"{_DOCUMENTS}.data:RemovedBackup"),),
    "bug-report": (JsonOutput(f"{_DOCUMENTS}.data:BugReportDocument"),),
    "config show": (
        JsonOutput(f"{_DOCUMENTS}.data:ConfigDocument"),
        JsonOutput(f"{_DOCUMENTS}.data:ConfigKeyDocument", "list", "with --explain"),
    ),
    "submit": (_JOB._replace(when="without --wait"), JsonOutput(_DETAIL, when="with --wait")),
    "jobs validate": (
        JsonOutput(_JOB.place, "list", "without a job"),
        JsonOutput(f"{_DOCUMENTS}.checks:ValidationDocument", when="without --confirm"),
        _JOB._replace(when="with --confirm"),
    ),
    "jobs ls": (JsonOutput(_JOB.place, "list"),),
    "jobs show": (JsonOutput(_DETAIL),),
    "jobs watch": (JsonOutput(_JOB.place, "lines"),),
    "jobs cancel": (_JOB,),
    "jobs resume": (_JOB,),
    "jobs retry": (_JOB,),
    "verify": (
        JsonOutput("appliance.jobs.report:BundleReport"),
        JsonOutput(f"{_DOCUMENTS}.data:UnreadableBundle", when="where nothing can be read (exit code 2)"),
    ),
    "bundle pack": (JsonOutput(f"{_DOCUMENTS}.data:WrittenFile"),),
    "bundle unpack": (JsonOutput(f"{_DOCUMENTS}.data:WrittenFile"),),
    "model provenance": (JsonOutput(f"{_DOCUMENTS}.models:ProvenanceDocument"),),
    "model import": (JsonOutput(f"{_DOCUMENTS}.models:ImportedModel"),),
    "model export": (JsonOutput(f"{_DOCUMENTS}.models:ExportedModel"),),
    "model history": (JsonOutput("appliance.client.nights:PromotionView", "list"),),
    "model ls": (JsonOutput(f"{_MESSAGES}:CheckpointView", "list"),),
    "model compare": (JsonOutput(f"{_MESSAGES}:ModelComparison"),),
    "model show": (JsonOutput("policies.contract.decision:Decision", "list"),),
    "model approve": (_APPROVED,),
    "model reject": (_APPROVED,),
    "model evaluate": (_CYCLE,),
    "model rollback": (JsonOutput(f"{_DOCUMENTS}.models:AliasesDocument"),),
    "evaluate": (JsonOutput("appliance.evaluation.figures:EvaluationResults"),),
    "engine serve": (JsonOutput(f"{_DOCUMENTS}.models:ServedEngine"),),
    "gateway token new": (JsonOutput("appliance.client.gateway:MadeToken"),),
    "gateway token ls": (JsonOutput(_KEY_OF_AGENT, "list"),),
    "gateway token revoke": (JsonOutput(_KEY_OF_AGENT),),
    "gateway sessions ls": (JsonOutput("appliance.client.gateway:SessionRow", "list"),),
    "gateway sessions show": (JsonOutput("appliance.client.gateway:SessionDetail"),),
    "gateway sessions delete": (JsonOutput("appliance.client.gateway:DeletedSessions"),),
    "key new": (_OFFERED,),
    "key ls": (JsonOutput(f"{_MESSAGES}:Keys"),),
    "key show": (JsonOutput("policies.register:KnownKey", "list"),),
    "key admit": (_OFFERED,),
    "key revoke": (JsonOutput("policies.register:KnownKey"),),
    "audit ls": (JsonOutput("policies.audit:AuditEntry", "list"),),
    "audit verify": (JsonOutput(f"{_DOCUMENTS}.data:AuditCheckDocument"),),
    "audit export": (_HEAD,),
    "audit renew": (JsonOutput(f"{_DOCUMENTS}.data:RenewedLog"),),
    "audit accept": (_HEAD,),
    "policy sign": (JsonOutput(f"{_DOCUMENTS}.data:PolicyInForceDocument"),),
    "policy check": (JsonOutput(f"{_DOCUMENTS}.policies:Policy"),),
    "policy explain": (JsonOutput("policies.contract.decision:Decision"),),
    "policy backtest": (JsonOutput(f"{_MESSAGES}:Backtest"),),
    "policy budget": (JsonOutput(f"{_MESSAGES}:BudgetView"),),
    "policy simulate": (JsonOutput("policies.simulate:Simulated"),),
    "cycle start": (_CYCLE,),
    "cycle watch": (JsonOutput(_CYCLE.place, "lines"),),
    "cycle cancel": (_CYCLE,),
    "cycle resume": (_CYCLE,),
    "cycle show": (JsonOutput(f"{_DOCUMENTS}.cycles:CycleDocument"),),
    "cycle ls": (JsonOutput(_CYCLE.place, "list"),),
    "schedule show": (_SCHEDULE,),
    "schedule pause": (_SCHEDULE,),
    "schedule resume": (_SCHEDULE,),
    "schedule notify": (JsonOutput(f"{_DOCUMENTS}.data:NoticesDocument"),),
    "report": (JsonOutput("appliance.reporting.as_json:ReportFigures"),),
    "train": (_CYCLE, JsonOutput(f"{_DOCUMENTS}.models:TrainingPlan", when="with --dry-run")),
    "warm-start": (JsonOutput("appliance.worker.sft.warm_set:WarmSetManifest"),),
    "rollouts ls": (JsonOutput(f"{_MESSAGES}:RolloutView", "list"),),
    "rollouts show": (JsonOutput(f"{_MESSAGES}:RolloutDetail"),),
    "prune": (JsonOutput("appliance.client.retention:Pruned"),),
    "curriculum ls": (JsonOutput("curriculum.taskset_summary:TasksetSummary", "list"),),
    "curriculum show": (JsonOutput("curriculum.taskset_summary:TasksetSummary"),),
    "curriculum sample": (
        JsonOutput(f"{_DOCUMENTS}.tasks:SampledTask", "list"),
        JsonOutput(f"{_DOCUMENTS}.tasks:AnsweredTask", "list", "with --answers"),
    ),
    "curriculum stats": (JsonOutput("appliance.records.training:PassCount", "list"),),
    "curriculum add": (_ADDED,),
    "curriculum collect": (JsonOutput(f"{_DOCUMENTS}.tasks:CollectedDocument"),),
    "curriculum rm": (JsonOutput(f"{_MESSAGES}:OwnTasksetView"),),
    "curriculum certify": (JsonOutput(f"{_DOCUMENTS}.tasks:CertificateDocument"),),
    "curriculum reverify": (JsonOutput(f"{_DOCUMENTS}.tasks:ReverifiedDocument"),),
    "curriculum audit": (JsonOutput(f"{_DOCUMENTS}.tasks:SeparationDocument"),),
    "curriculum adapter ls": (JsonOutput("curriculum.adapters:AdapterSummary", "list"),),
    "curriculum adapter install": (JsonOutput(f"{_DOCUMENTS}.tasks:InstalledAdapter"),),
    "curriculum adapter sets": (JsonOutput("curriculum.foreign.making:SetSummary", "list"),),
    "curriculum adapter add": (_ADDED,),
    "curriculum harbor": (JsonOutput(f"{_DOCUMENTS}.tasks:HarborFolder"),),
    "curriculum export": (JsonOutput(f"{_DOCUMENTS}.tasks:ExportedTask"),),
    "plugins ls": (JsonOutput(f"{_DOCUMENTS}.data:PluginDocument", "list"),),
    "plugins certify": (JsonOutput(f"{_DOCUMENTS}.data:PluginCertificate"),),
    "check exact": _JUDGED,
    "check predicate": _JUDGED,
    "check answer": _JUDGED,
    "check smt": _JUDGED,
    "check lean": _JUDGED,
    "check code": (*_JUDGED, JsonOutput("verifiers.programs.mutation:Assessment", when="with --assess")),
    "check checklist": (*_JUDGED, JsonOutput("verifiers.checklists.assess:ListAssessment", when="with --assess")),
    "check draft": (JsonOutput(f"{_DOCUMENTS}.checks:DraftedList"),),
    "check selftest": (JsonOutput("verifiers.selftest.run:SelfTest"),),
    "sandbox run": (JsonOutput(f"{_DOCUMENTS}.sandboxes:RunDocument"),),
    "sandbox snapshot": (JsonOutput(f"{_DOCUMENTS}.sandboxes:KeptRun"),),
    "sandbox ls": (JsonOutput(f"{_DOCUMENTS}.sandboxes:SandboxesDocument"),),
    "sandbox stats": (JsonOutput(f"{_DOCUMENTS}.sandboxes:FiguresDocument"),),
    "sandbox sweep": (JsonOutput(f"{_DOCUMENTS}.sandboxes:SweptDocument"),),
    "sandbox selftest": (JsonOutput(f"{_DOCUMENTS}.sandboxes:ConformanceDocument"),),
    "sandbox bench": (JsonOutput(f"{_DOCUMENTS}.sandboxes:BenchDocument"),),
    "cluster status": (JsonOutput("runtime.cluster.status:HostLine", "list"),),
}
"""Outputs by the words of the command."""


def schema_of(command: str) -> dict[str, Any]:
    """Returns the JSON Schema of a command's `--json` output, or of one line of a stream. Unknown fields are allowed,
    because fields may be added. Raises KeyError if it has none."""
    outputs = OUTPUTS[command]
    types = [output.type() for output in outputs]
    shape: Any = types[0]
    for one in types[1:]:
        shape = shape | one
    schema = TypeAdapter(shape).json_schema(mode="serialization")
    return {"$schema": DIALECT, **_open(schema), "title": f"assay {command} --json"}


def _open(value: Any) -> Any:
    """Returns a JSON Schema without `additionalProperties: false`, at any depth."""
    if isinstance(value, dict):
        return {
            name: _open(one) for name, one in value.items() if not (name == "additionalProperties" and one is False)
        }
    return [_open(one) for one in value] if isinstance(value, list) else value
