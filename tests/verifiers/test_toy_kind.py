"""A kind that is one folder and one row is checked, submitted, explained, self-tested and shown like all the others."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy_kind import FILES, ROW

ROOT = Path(__file__).parents[2]
LIBRARY = """
import json, sys
from datetime import UTC, datetime
from verifiers.selftest.run import run_selftest
from verifiers.registry.spec import SPEC
from verifiers.contract.verdict import SpecProblem
from verifiers.workers.service import VerifierService
from appliance.jobs.explain import in_words
from appliance.jobs.statement import statement_of
from appliance.jobs.validation import page_of
from appliance.records.jobs import Job, JobState

found = {"unused": "verifiers.backwards.spec" not in sys.modules}
spec = SPEC.validate_json('{"kind": "backwards", "word": "drawer"}')
found["words"] = in_words(spec)
job = Job(id="j", question="Turn it.", spec=spec, state=JobState.QUEUED, created="2026-01-01T00:00:00+00:00",
          updated="2026-01-01T00:00:00+00:00")
found["job"], found["again"] = job.kind, Job.model_validate_json(job.model_dump_json()) == job
with VerifierService(workers=1) as service:
    found["outcomes"] = [service.verify(spec, text, 60).outcome for text in ("reward", "drawer")]
    same = SPEC.validate_python({"kind": "backwards", "word": "noon"})
    found["problem"] = [one.hint for one in service.verify_many([(same, "noon")], 60) if isinstance(one, SpecProblem)]
    found["statement"] = [part.part for part in statement_of(spec, service.verify(spec, "reward", 60))]
    page = page_of(job, None, lambda pairs, _: service.verify_many(pairs, 60), lambda: 0.0)
    found["page"] = page.first
    service.check = service.verify
    report = run_selftest(service, made_at=datetime.now(UTC), only=["backwards"])
    found["selftest"] = [report.clean, report.attacks, report.controls, report.versions["backwards"]]
print(json.dumps(found))
"""
QUEUE = """
import json, sys
from pathlib import Path
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.client.messages import SubmitJob
from tui.screens.jobs import JobRecord, detail, row

with Core(Settings(data=Path(sys.argv[1])), worker=[sys.executable, "-c", ""]) as core:
    asked = SubmitJob.model_validate({"question": "Turn it.", "spec": {"kind": "backwards", "word": "drawer"}})
    job = core.jobs.submit(asked)
    known = core.ledger.job(job.id)
    print(json.dumps([known.kind, known.spec.summary(), detail(JobRecord(known, None)).plain]))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product with the toy kind in it: its verifiers are a copy, all else is what lies here."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("appliance", "common", "curriculum", "policies", "runtime", "tui"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "verifiers", folder / "verifiers", ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in FILES.items():
        file = folder / "verifiers" / "backwards" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    registry = folder / "verifiers" / "registry" / "__init__.py"
    registry.write_text(registry.read_text(encoding="utf-8").replace("ROWS = (\n", f"ROWS = (\n{ROW}"))
    return folder


def python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PYTHONPATH": str(tree), "PATH": "/usr/bin:/bin", "HOME": str(tree)}
    return subprocess.run(
        [sys.executable, "-P", *arguments], cwd=tree, env=environ, capture_output=True, text=True, timeout=250
    )


def test_it_is_read_checked_explained_and_self_tested(tree: Path) -> None:
    ran = python(tree, "-c", LIBRARY)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "unused": True,
        "words": ["The answer has to be this word from its end to its beginning: drawer"],
        "job": "riddle",
        "again": True,
        "outcomes": ["pass", "fail"],
        "problem": ["Take another word."],
        "statement": ["that it is drawer backwards", "that the check says what the question means"],
        "page": ["The one variant that was changed on purpose is rejected"],
        "selftest": [True, 5, 1, "1"],
    }


@pytest.mark.parametrize(("answer", "code"), [("reward", 0), ("drawer", 1)])
def test_the_command_line_has_its_check(tree: Path, answer: str, code: int) -> None:
    result = python(tree, "-m", "appliance.cli.main", "check", "backwards", "--word", "drawer", "--answer", answer)
    assert result.returncode == code, result.stdout + result.stderr
    assert "compared with reward" in result.stdout


def test_it_is_submitted_to_the_queue_and_shown_in_the_terminal(tree: Path, tmp_path: Path) -> None:
    ran = python(tree, "-c", QUEUE, str(tmp_path / "data"))
    assert ran.returncode == 0, ran.stderr
    kind, summary, shown = json.loads(ran.stdout.splitlines()[-1])
    assert (kind, summary) == ("riddle", "drawer, backwards")
    assert "drawer, backwards" in shown
