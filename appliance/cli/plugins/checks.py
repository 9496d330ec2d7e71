"""Certification of a plug-in: one check for each seam, each returning faults as sentences.

Invariants: a check that breaks is a fault, never an exception; verdicts and worlds come from processes and sandboxes
of the checker, which has only the plug-in under test beside those already admitted.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

from appliance.inference.engines import ENGINES
from appliance.jobs.solver_round import MOST_PROPOSALS, named_solvers
from appliance.learning.objectives.contract import faults_of
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.system.clock import now, utc_now
from common.plugins.installed import Plugin
from curriculum.adapters import ADAPTERS
from curriculum.certification.certificate import Certificate
from curriculum.certification.certify import certify, drafts_of
from curriculum.certification.worlds import plain_arguments, tried_in
from curriculum.contract.taskset import TaskDraft
from curriculum.environments import ENVIRONMENTS
from curriculum.registry import BUILT_IN
from policies.contract.decision import GateOutcome
from policies.contract.evidence import Evidence
from policies.gates.gate import AskedGates, GateContext, is_about
from policies.gates.registry import gates_from_outside
from runtime.package_sets import PIN
from verifiers.checker import Checker
from verifiers.contract.examples import CheckedExample, ExampleInput
from verifiers.contract.protocols import SolverTools
from verifiers.contract.verdict import Verdict
from verifiers.exact.spec import ExactSpec
from verifiers.registry import KINDS
from verifiers.registry.canaries import cases_of
from verifiers.selftest.run import run_selftest

SECONDS = 600.0
"""Time limit of another process, in seconds."""
SEEDS = 20
"""Tasks of each level of a taskset."""
SCREEN = "import sys; from tui.views import SCREENS; SCREENS[sys.argv[1]].make().questions()"


def checked(
    plugin: Plugin, checker: Checker, elsewhere: Callable[[str], str], tasksets: list[Certificate]
) -> Iterator[tuple[str, list[str]]]:
    """Yields each row of a plug-in, as "SEAM NAME", with its faults. `elsewhere` returns what another process makes of
    a taskset; certificates of its tasksets are added to `tasksets`."""

    def taskset(name: str) -> list[str]:
        tasksets.append(_taskset(name, checker, elsewhere))
        return list(tasksets[-1].faults)

    checks: dict[str, Callable[[str], list[str]]] = {
        "kinds": lambda name: _kind(name, checker),
        "tasksets": taskset,
        "environments": lambda name: _environment(name, plugin, checker),
        "objectives": lambda name: faults_of(OBJECTIVES[name]),
        "gates": _gate,
        "engines": _engine,
        "solvers": lambda name: _solver(name, checker),
        "screens": _screen,
        "adapters": _adapter,
    }
    for seam in plugin.rows:
        for name in plugin.names(seam):
            try:
                faults = checks[seam](name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - code from outside: whatever broke is the report
                faults = [f"{type(error).__name__}: {error}"]
            yield f"{seam} {name}", faults


def _taskset(name: str, checker: Checker, elsewhere: Callable[[str], str]) -> Certificate:
    """Certifies a taskset as `assay curriculum certify` does, in sandboxes of the checker. Raises CurriculumError."""
    levels = range(BUILT_IN.named(name).level_count)
    has_world = any(
        draft.environment in ENVIRONMENTS for level in levels for draft in drafts_of(BUILT_IN, name, level, 2)
    )
    return certify(
        BUILT_IN,
        name,
        checker.check_many,
        seeds=SEEDS,
        elsewhere=lambda: elsewhere(name),
        worlds=tried_in(ENVIRONMENTS, checker.sessions()) if has_world else None,
    )


def _kind(name: str, checker: Checker) -> list[str]:
    """Its canaries and idle agents get the right verdicts, and its check rejects mutants of right answers."""
    kind, mutants = KINDS[name], []
    report = run_selftest(checker, made_at=now(), only=[name])
    faults = [f"{one.sort} {one.name}: {one.outcome.value}, {one.reason}" for one in report.wrong]
    faults += [f"{one.name}: not run: {one.reason}" for one in report.not_run if one.verifier == name]

    def ask(inputs: Sequence[ExampleInput]) -> list[CheckedExample]:
        results = checker.check_many([(one.spec, one.submission) for one in inputs])
        return [
            CheckedExample(one, result.outcome.value, result.reason, result.evidence)
            for one, result in zip(inputs, results, strict=True)
            if isinstance(result, Verdict)
        ]

    for case in (case for case in cases_of(kind) if case.honest):
        verdict = checker.check(case.spec, case.submission)
        if (verdict.verifier, verdict.version) != (name, kind.version):
            faults.append(f"its verdicts name {verdict.verifier} {verdict.version} instead of {name} {kind.version}")
        examples = kind.examples.load()(case.spec, case.submission, ask).examples
        mutants += [one for one in examples if one.given.sort == "mutant"]
    if not (report.attacks and report.controls):
        faults.append("its canaries lack an attack or an honest control")
    if not any(not one.accepted for one in mutants):
        faults.append("no mutant of a right answer is rejected")
    return list(dict.fromkeys(faults))


def _environment(name: str, plugin: Plugin, checker: Checker) -> list[str]:
    """Its worlds start equal and stay apart under hostile calls: those of the plug-in's tasksets, or one without a
    setup."""
    environment = ENVIRONMENTS[name]
    if why := environment.missing():
        return [why]
    drafts = [
        draft
        for taskset in plugin.names("tasksets")
        for level in range(BUILT_IN.named(taskset).level_count)
        for draft in drafts_of(BUILT_IN, taskset, level, 2)
        if draft.environment == name
    ]
    plain = TaskDraft(topic="", key=name, messages=(), spec=ExactSpec(expected="x"), answer="x", environment=name)
    return tried_in(ENVIRONMENTS, checker.sessions())(drafts[:1] or [plain])


def _gate(name: str) -> list[str]:
    """It is a function of its arguments, names itself, and does not pass without evidence."""
    gate = gates_from_outside([name])[name]
    section = gate.section.model_validate(plain_arguments(gate.section.model_json_schema()))
    at = utc_now()
    evidence = Evidence(
        evaluation="evaluation",
        candidate="candidate",
        champion="champion",
        in_service="champion",
        sealed_set="sealed",
        candidate_asked="sealed",
        champion_asked="sealed",
        candidate_temperature=1.0,
        champion_temperature=1.0,
        items=(),
        evaluated_at=at,
    )
    first, again = (gate.judge(evidence, section, GateContext(AskedGates(), at)) for _ in range(2))
    findings = first if isinstance(first, tuple) else (first,)
    faults = {
        "it judges the same evidence differently": first != again,
        f"a finding does not name {name}": not all(is_about(one, name) for one in findings),
        "it passes without evidence": any(one.outcome is GateOutcome.PASSED for one in findings),
        "it has no finding": not findings and not gate.conditional,
    }
    return [fault for fault, found in faults.items() if found]


def _engine(name: str) -> list[str]:
    """It proves pushed weights, samples a turn, and scores it as it sampled it."""
    from appliance.inference.adapters import push_model
    from appliance.inference.engine import GenerationRequest, Turn
    from appliance.seedling.model import new_seedling
    from appliance.seedling.tokenizer import train_tokenizer

    engine, model = ENGINES[name](2, 64, None), new_seedling(train_tokenizer([]), 0)
    try:
        faults = ["it has weights before the first push"] if engine.version else []
        push_model(engine, model, "a")
        request = GenerationRequest(id=0, prompt=(1, 2, 3), stop=5, max_tokens=32, temperature=1.0, seed=0)
        engine.submit(request)
        turns: list[Turn] = []
        for _ in range(64):
            turns += engine.step() if not turns else ()
        scored = engine.score([(*request.prompt, *turns[0].ids)])[0][len(request.prompt) - 1 :]
        if any(abs(one - other) > 1e-3 for one, other in zip(turns[0].logprobs, scored, strict=True)):
            faults.append("its log-probabilities differ from its own scores")
        return faults
    finally:
        engine.close()


def _solver(name: str, checker: Checker) -> list[str]:
    """Its solvers have its name, end, and sign what they propose."""
    asked = (ExactSpec(expected="4"), "What is 2 + 2?", False)
    faults: list[str] = []
    for solver in named_solvers(name, asked):
        tools = SolverTools(checker, None, {}, "certify", lambda: False)
        for number, proposal in enumerate(solver.proposals(asked[0], asked[1], tools, 5.0)):
            if not proposal.by.startswith(name):
                faults.append(f"a proposal is signed {proposal.by[:80]!r} instead of {name}")
            if number == MOST_PROPOSALS:
                break
    return list(dict.fromkeys(faults))


def _screen(name: str) -> list[str]:
    """The terminal program, a process of its own, can make it and knows its questions."""
    command = [sys.executable, "-I", "-c", SCREEN, name]
    ran = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    return ran.stderr.decode(errors="replace").strip().splitlines()[-1:] if ran.returncode else []


def _adapter(name: str) -> list[str]:
    """Its guests' packages are exact versions, and its modules can be named."""
    adapter = ADAPTERS[name]
    faults = [f"{pin!r} is no exact version" for pin in adapter.pins if not PIN.fullmatch(pin)]
    faults += [f"{one!r} is no module" for one in adapter.imports if not re.fullmatch(r"\w+(\.\w+)*", one)]
    return faults if adapter.pins and adapter.imports else [*faults, "it names no package or no module"]
