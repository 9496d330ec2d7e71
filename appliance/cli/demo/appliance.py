"""A real core and control API on a temporary folder with made-up nights, for `assay tui --demo-data`.

Invariants: the folder, the audit log's head and the key are removed when the block ends, also on an exception
(`left_by_signal` turns a closed terminal into one). No worker is started and nothing else on the machine is changed.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn
from tokenizers import Tokenizer

from appliance.cli.demo.records import DemoNight, evaluation_of, texts_for_tokens, training_steps
from appliance.cli.demo.sessions import made_up_sessions
from appliance.client.person_keys import make_key, unlock
from appliance.client.signing import admission
from appliance.config.configuration import Settings
from appliance.daemon.api.app import make_app
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.listening import listen
from appliance.gateway.sessions import KeptSessions
from appliance.learning.folders import write_by_digest
from appliance.promotion.evidence import decision_on
from appliance.records.cycles import Checkpoint, Event, TrainingStage
from appliance.records.evaluations import Approval
from appliance.records.jobs import Job, JobState
from appliance.rendering.formats import write_markers
from appliance.rendering.markers import SEEDLING
from appliance.seedling.tokenizer import train_tokenizer
from verifiers.predicate.spec import PredicateSpec

NIGHTS = 5
PASSPHRASE = "passphrase-is-demo"  # noqa: S105 - of a key that counts nowhere else
LINES = 120


@dataclass(frozen=True)
class DemoAppliance:
    socket: Path
    key: Path
    """Key of a person whose signature counts there; the file name is the passphrase."""


@contextmanager
def demo_appliance(*, now: datetime | None = None, nights: int = NIGHTS) -> Iterator[DemoAppliance]:
    """Runs an appliance with made-up nights in a temporary folder for the block. Raises what `Core` raises."""
    folder = Path(tempfile.mkdtemp(prefix="assay-demo-"))
    try:
        with ExitStack() as open_until_end:
            settings = Settings.model_validate({"data": folder / "data", "audit": {"head": folder / "head"}})
            core = open_until_end.enter_context(Core(settings))
            key = make_key(folder / "keys", PASSPHRASE, PASSPHRASE)
            core.trust.change_key(admission("demo", unlock(key, PASSPHRASE)))
            fill(core, now or datetime.now(UTC), nights=nights)
            socket = settings.data / "run" / "assay.sock"
            open_until_end.enter_context(served(core, socket))
            yield DemoAppliance(socket, key.path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def served(core: Core, path: Path) -> Iterator[None]:
    """Serves the control API on the socket at `path` for the block."""
    sock = listen(path)
    app = make_app(core, wake=lambda: None, next_cycle=lambda: None, stop=lambda: None)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[sock])), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        sock.close()


def fill(core: Core, now: datetime, *, nights: int) -> None:
    """Writes made-up records into the demonstration's data folder: ended nights, models with decisions and approvals,
    jobs, logs and sessions."""
    ledger, data = core.ledger, core.data
    tokenizer = train_tokenizer(texts_for_tokens())
    began = now - timedelta(days=nights, minutes=9)
    champion = _checkpoint(data, tokenizer, DemoNight(0, began, "", (0.3, 0.3)), None, "warm_start")
    ledger.put_checkpoint(champion)
    ledger.set_aliases({"champion": champion.manifest}, "the first model", began.isoformat(timespec="milliseconds"))
    skill = 0.38
    for number in range(1, nights + 1):
        gains = number % 3 != 1
        night = DemoNight(
            number, began + timedelta(days=number - 1), champion.manifest, (skill, skill + (0.17 if gains else -0.01))
        )
        _run(core, night, tokenizer)
        candidate = _checkpoint(data, tokenizer, night, champion, "training")
        ledger.put_checkpoint(candidate)
        found = evaluation_of(night, candidate.manifest, champion.manifest)
        ledger.put_evaluation(found)
        last = number == nights
        decision = decision_on(
            found,
            core.policy,
            in_service=champion.manifest,
            history=[],
            id=f"{found.id}.decision",
            made_at=night.at(15.7),
        )
        ledger.put_decision(decision)
        core.ledger.put_event(
            Event(kind="decision", text=f"{decision.outcome.value}: {decision.reason}", created=night.at(15.8))
        )
        if last:
            ledger.set_aliases({"candidate": candidate.manifest}, "it was trained", night.at(15.9))
        elif gains:
            signed = Approval(
                decision=decision.digest(),
                candidate=candidate.manifest,
                verdict="approve",
                person="demo",
                created=night.at(15.85),
                key=core.trust.keys().keys[0].fingerprint,
            )
            approved = decision_on(
                found,
                core.policy,
                in_service=champion.manifest,
                history=[],
                approvals=[signed],
                decisions=[decision],
                id=f"{found.id}.approved",
                made_at=night.at(15.9),
            )
            ledger.put_decision(approved)
            moved: dict[str, str | None] = {"champion": candidate.manifest, "previous": champion.manifest}
            ledger.set_aliases(moved, "promoted", night.at(15.9))
            champion, skill = candidate, skill + 0.15
    _jobs(core, now)
    _logs(data, now)
    for name, consent in (("editor", True), ("notes", True), ("experiments", False)):
        core.gateway.new_token(name, consent=consent)
    for session in made_up_sessions(now, champion.manifest):
        KeptSessions(data).put(session, new=True)


def _run(core: Core, night: DemoNight, tokenizer: Tokenizer) -> None:
    core.ledger.put_event(Event(kind="phase", text="training", created=night.at(0.1)))
    core.ledger.put_cycle(night.cycle())
    for record, event in training_steps(night, tokenizer):
        core.ledger.commit_step(record)
        core.ledger.put_event(event)


def _checkpoint(
    data: Path, tokenizer: Tokenizer, night: DemoNight, parent: Checkpoint | None, stage: TrainingStage
) -> Checkpoint:
    with tempfile.TemporaryDirectory() as folder:
        write_markers(Path(folder), SEEDLING)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    files["tokenizer.json"] = tokenizer.to_str().encode()
    files["made-up.txt"] = f"{night.id} {stage}".encode()
    digest = write_by_digest(data / "models", files)
    return Checkpoint(
        manifest=digest,
        parent=parent.manifest if parent is not None else None,
        cycle=night.id,
        stage=stage,
        step=night.steps,
        recipe=f"{night.number:064x}",
        metrics={"held_out_success": night.skill[1]},
        folder=f"models/{digest}",
        created=night.at(14),
    )


def _jobs(core: Core, now: datetime) -> None:
    asked: tuple[tuple[str, JobState, str, str, dict[str, object]], ...] = (
        (
            "5f0c21",
            JobState.SOLVED,
            "find x with 7x+3=45",
            "7*x+3 == 45",
            {"solved_by": "z3 4.13", "reason": "x = 6 holds"},
        ),
        (
            "a9d3e7",
            JobState.UNSOLVED,
            "n with n*n == 2",
            "x*x == 2",
            {"reason": "16 attempts failed", "tried": ("1: 1 is not 2",)},
        ),
        (
            "77be02",
            JobState.SOLVED,
            "a prime above 10000",
            "x > 10000",
            {"solved_by": "policy model", "reason": "attempt 3 of 16 passed"},
        ),
        ("c04b11", JobState.QUEUED, "the largest divisor of 360 below 50", "360 % x == 0", {}),
        ("e2a9f4", JobState.QUEUED, "x with x*x*x == 729", "x*x*x == 729", {}),
    )
    for place, (name, state, question, check, more) in enumerate(asked):
        moment = (now - timedelta(hours=len(asked) - place)).isoformat(timespec="milliseconds")
        core.ledger.put_job(
            Job.model_validate(
                {
                    "id": f"job-{name}",
                    "question": question,
                    "spec": PredicateSpec(predicate=check),
                    "state": state,
                    "created": moment,
                    "updated": moment,
                    **more,
                }
            )
        )


def _logs(data: Path, now: datetime) -> None:
    (data / "logs").mkdir(exist_ok=True)
    for name, said in {"worker": "step {} is on record", "broker": "sandbox shared-{} is ready"}.items():
        lines = []
        for place in range(LINES):
            moment = now - timedelta(seconds=2 * (LINES - place))
            level = "warning" if place % 40 == 39 else "info"
            lines.append(f"{moment:%Y-%m-%dT%H:%M:%S} {level} {said.format(place)}\n")
        path = data / "logs" / f"{name}.log"
        path.write_text("".join(lines), encoding="utf-8")
        path.chmod(0o600)
