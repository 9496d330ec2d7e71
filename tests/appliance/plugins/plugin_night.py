"""Run by a Python that has the plug-in: a short night without it, one with it, and a job; prints what was recorded.

python -I plugin_night.py FOLDER MARK ROOTS PIN...     PIN: name, version and digest of the distribution
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import guest_roots
import torch
from plugin_kit.plugin_python import GATE, policy_with
from short_nights import AT, SHORT, cycle_of, run_night, train_night

from appliance.config.configuration import Settings
from appliance.config.places import runtime_settings
from appliance.jobs.solve import JobSolver
from appliance.jobs.versions import versions
from appliance.learning.recipes.recipe import Recipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobState
from appliance.records.training import RolloutFilter
from appliance.settings.policy_files import load_policy, plugins_in_force
from appliance.worker.evaluation import measurements
from appliance.worker.setup.context import WorkContext
from common.plugins.allowed import allow
from common.plugins.installed import Pin
from curriculum.certification.certificate import made_by
from curriculum.registry import BUILT_IN
from verifiers.registry.spec import SPEC
from verifiers.selftest.run import SelfTest, run_selftest

TASKSET = "remainders/divisions"
TINY = {
    "warm_start": {**SHORT.warm_start.model_dump(), "steps": 2},
    "training": {**SHORT.training.model_dump(), "steps": 1},
    "agent": SHORT.agent.model_dump(),
    "evaluation": {**SHORT.evaluation.model_dump(), "sealed_items": 4, "unsolvable_items": 2},
}


def own_self_test(checker: Any, *, only: Collection[str], **how: Any) -> SelfTest:
    """The self-test of the plug-in's kinds: other nights of the tests make the one of the built-in kinds."""
    return run_selftest(checker, only=[name for name in only if "/" in name], **how)


def night(folder: Path, roots: Path, recipe: Recipe, engine: str, certified: dict[str, str]) -> dict[str, object]:
    """Runs a short night in a fresh data folder, with a broker of its own; returns what was recorded. One without
    certified tasksets is not evaluated."""
    guest_roots.lend(roots, folder / "run")
    settings = Settings.load({"data": str(folder), "sandbox.ready": 1}, environ={"HOME": str(folder)}, etc_dir=folder)
    planned = cycle_of("n", 0, recipe)
    with (
        SqliteLedger(folder / "ledger.sqlite3") as ledger,
        WorkContext(
            folder, ledger, runtime_settings(settings, folder), recipe.agent, load_policy(folder), engine=engine
        ) as context,
    ):
        ledger.put_cycle(planned.model_copy(update={"plan": {**planned.plan, "certified": certified}}))
        if not certified:
            train_night(context, "n", recipe=recipe)
            return {"tasks": len(ledger.step_tasks("n"))}
        decision = run_night(context, "n", recipe=recipe)
        rollouts = ledger.rollouts(RolloutFilter(cycle="n"), limit=10_000)
        return {
            "gates": [finding.gate for finding in decision.findings],
            "families": sorted({one.family for one in rollouts}),
            "kinds": sorted({one.verdict.verifier for one in rollouts}),
            "outcomes": sorted({one.verdict.outcome.value for one in rollouts}),
            "job": solved_job(context, ledger, folder),
        }


def solved_job(context: WorkContext, ledger: SqliteLedger, folder: Path) -> list[str]:
    """Solves a job with a check of the plug-in by its solver, and keeps the bundle."""
    spec = SPEC.validate_python({"kind": "remainders/remainder", "number": 1000, "divisor": 77})
    question = "What is the remainder of 1000 divided by 77?"
    job = Job(id="j", question=question, spec=spec, state=JobState.QUEUED, created=AT, updated=AT)
    made_with = versions(None, context.policy.digest, "")
    solver = JobSolver(None, None, context.checker, ledger, folder, made_with, lambda: AT, sessions=context.sessions)
    ended = solver.solve(job, [])
    artifact = ledger.artifact("j")
    assert artifact is not None, ended.reason
    return [ended.state.value, ended.solved_by, artifact.folder]


def main(folder: Path, mark: Path, roots: Path, pin: Pin) -> None:
    torch.set_num_threads(1)
    measurements.run_selftest = own_self_test
    plain, with_it = folder / "plain", folder / "with"
    plain.mkdir()
    shares = ("max_share = 40.0", "max_share = 100.0")
    (plain / "policy.toml").write_text(policy_with(None, replaced=shares))
    allow(plugins_in_force(plain))
    found = {"plain": night(plain, roots, Recipe(**TINY, tasksets=("digits",)), "torch", {}), "marked": mark.exists()}
    with_it.mkdir()
    (with_it / "policy.toml").write_text(policy_with(pin, GATE, shares))
    allow(plugins_in_force(with_it))
    training = {**TINY["training"], "objective": "remainders/plain"}
    recipe = Recipe.model_validate({**TINY, "training": training, "tasksets": (TASKSET, "digits")})
    certified = {TASKSET: made_by(BUILT_IN, TASKSET)}
    found["with"] = night(with_it, roots, recipe, "remainders/torch", certified)
    by_reference = Recipe.model_validate({**TINY, "training": {**training, "objective": "remainders.training:PLAIN"}})
    found["objective"] = by_reference.training.objective
    found["imported"] = mark.exists()
    print(json.dumps(found))


if __name__ == "__main__":
    folder, mark, roots, *pin = sys.argv[1:]
    main(Path(folder), Path(mark), Path(roots), Pin(*pin))
