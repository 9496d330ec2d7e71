"""kill -9 of a training at points inside of its work, and what is left when it has gone on to its end.

    python benchmarks/kill_points.py [--kills 100] [--seed 0] [--json FILE] [--model FOLDER]

A short training in two stages runs in a process of its own, which kills itself with SIGKILL at a point that was drawn
before: the n-th time that it pushes weights, writes a file of a checkpoint or of a published model, takes a decoding
step, takes an optimizer step, or writes to the ledger (before it, or after it). Points are counted and not timed, so a
busy machine changes nothing. It is started again, and killed again, until it ends; then the next training begins, until
`--kills` were made.

Checked at each end, beside a training of the same seed that nobody killed: each step is on record once, and the
multiset of its tasks is that of the other training. Each loss that was learned, the first time or once more after a
kill, is bit for bit that of a learner which takes the recorded steps without an interruption, and so are the weights
that were published. Whether the samples of a step that was cut short came out the same is told and not promised: rows
of a decoding batch meet others when tools answer at other times, and their last bits differ then.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.config.configuration import Settings
from appliance.config.places import broker_socket, runtime_settings
from appliance.daemon.processes.broker_process import BrokerProcess, command
from appliance.settings.policy_files import load_policy
from benchmarks.record import write_run
from runtime.settings import RuntimeSettings

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"
KINDS = ("push", "checkpoint", "publish", "sampling", "learning", "before ledger", "after ledger")
NAME = "t"
_WRITES = ("commit_step", "put_rollouts", "put_cycle", "put_checkpoint", "put_event", "set_aliases")


@dataclass(frozen=True)
class Point:
    kind: str
    number: int
    """The how many-eth of its kind since the process began."""


@dataclass
class PointTally:
    kills: Counter[str] = field(default_factory=Counter)
    trainings: int = 0
    replayed: int = 0
    """Steps that were learned more than once."""
    same_samples: int = 0
    """Trainings whose losses are those of the one that nobody killed, to the bit."""
    faults: list[str] = field(default_factory=list)


def recipes() -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipe of each stage: a look and a checkpoint at every second step, so that some steps are learned again."""
    training = {
        "steps": 3,
        "tasks_per_step": 3,
        "rollouts_per_task": 4,
        "keep": 2,
        "refills": 0,
        "watch_every": 2,
        "watch_items": 4,
        "watch_drop": 1.0,
        "checkpoint_every": 2,
    }
    agent = {"concurrent": 32, "max_tokens": 112, "max_calls": 2}
    evaluation = {"sealed_items": 6, "unsolvable_items": 2}
    first = {"training": training, "agent": agent, "evaluation": evaluation}
    return first, {**first, "agent": {"concurrent": 32, "max_tokens": 120, "max_calls": 4}}


def _begin(ledger: Any, seed: int) -> Any:
    """The training's record; made at the first start."""
    from appliance.learning.recipes.recipe import Recipe
    from appliance.learning.recipes.stages import Stage
    from appliance.records.cycles import Cycle, CycleState

    known = ledger.cycle(NAME)
    if known is not None:
        return known
    made = [Recipe.model_validate(one) for one in recipes()]
    stages = [
        Stage(name="short", kind="rl", recipe=made[0]),
        Stage(name="long", kind="rl", recipe=made[1], optimizer="keep"),
    ]
    plan = {"recipe": made[1].model_dump(mode="json"), "stages": [stage.model_dump(mode="json") for stage in stages]}
    at = "2026-01-01T00:00:00.000+00:00"
    cycle = Cycle(
        id=NAME,
        kind="training",
        seed=seed,
        plan=plan,
        phase="prepare",
        state=CycleState.RUNNING,
        created=at,
        updated=at,
    )
    ledger.put_cycle(cycle)
    return cycle


def _train(data: str, runtime_json: str, seed: int, model: str, point: Point | None, counted: str) -> None:
    """Trains in this process from wherever the ledger says it is, and dies at `point`; what it passed is `counted`."""
    import time

    import torch

    from appliance.ledger.sqlite import SqliteLedger
    from appliance.worker.cycle import CycleRun
    from appliance.worker.setup.context import WorkContext
    from appliance.worker.setup.progress import CycleProgress

    torch.set_num_threads(1)
    folder = Path(data)
    passed: Counter[str] = Counter()

    def hit(kind: str) -> None:
        passed[kind] += 1
        if point is not None and (point.kind, point.number) == (kind, passed[kind]):
            os.kill(os.getpid(), signal.SIGKILL)

    runtime = RuntimeSettings.model_validate_json(runtime_json)
    with SqliteLedger(folder / "ledger.sqlite3") as ledger:
        cycle = _begin(ledger, seed)
        _instrument(ledger, hit)
        from appliance.learning.recipes.recipe import Recipe

        agent = Recipe.model_validate(cycle.plan["recipe"]).agent
        with WorkContext(folder, ledger, runtime, agent, load_policy(folder)) as context:
            CycleRun(cycle, context, CycleProgress(cycle, ledger, time.monotonic), Path(model)).train()
    Path(counted).write_text(json.dumps(passed))


def _instrument(ledger: Any, hit: Callable[[str], None]) -> None:
    """Has `hit` called at every point of this process."""
    import torch

    from appliance.inference import adapters
    from appliance.inference.torch import engine as torch_engine

    for module in (torch_engine, adapters):
        _before(module, "proof_of", lambda: hit("push"))
    _before(torch_engine.TorchEngine, "step", lambda: hit("sampling"))
    _before(torch.optim.AdamW, "step", lambda: hit("learning"))
    sync = os.fsync

    def fsync(handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if "/checkpoints/" in path:
            hit("checkpoint")
        elif "/models/" in path:
            hit("publish")
        sync(handle)

    os.fsync = fsync
    for name in _WRITES:
        real = getattr(ledger, name)

        def around(*arguments: Any, _real: Any = real, **named: Any) -> Any:
            hit("before ledger")
            answer = _real(*arguments, **named)
            hit("after ledger")
            return answer

        setattr(ledger, name, around)


def _before(owner: Any, name: str, call: Callable[[], None]) -> None:
    real = getattr(owner, name)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        call()
        return real(*arguments, **named)

    setattr(owner, name, wrapped)


def _replay(data: str, model: str, written: str) -> None:
    """Takes the recorded steps in one go, and writes what was lost in each and which weights came out."""
    import torch

    from appliance.inference.adapters import weights_digest
    from appliance.inference.folder import open_model
    from appliance.learning.folders import read_verified
    from appliance.learning.recipes.recipe import Recipe
    from appliance.learning.training.trainer import Trainer
    from appliance.ledger.sqlite import SqliteLedger

    torch.set_num_threads(1)
    losses: dict[str, float] = {}
    trainer: Trainer | None = None
    with SqliteLedger(Path(data) / "ledger.sqlite3") as ledger:
        cycle = ledger.cycle(NAME)
        assert cycle is not None
        start = ledger.checkpoint(cycle.plan["start"])
        assert start is not None
        files = read_verified(Path(data) / start.folder)
        network = open_model(files)
        first = 0
        for stage in (1, 2):
            recipe = Recipe.model_validate(cycle.plan["stages"][stage - 1]["recipe"])
            before = trainer
            trainer = Trainer(
                network, recipe.training, cycle.seed, max_tokens=recipe.agent.max_tokens, first_step=first
            )
            if before is not None:
                trainer._optimizer.load_state_dict(before._optimizer.state_dict())
            first = int(cycle.plan[f"stage_{stage}"]["next_step"])
            while trainer.step < first:
                step = trainer.step
                record = ledger.step(NAME, step)
                assert record is not None
                losses[str(step)] = trainer.train_step(step, record.judged, record.groups)["loss"]
        made = ledger.checkpoint(cycle.plan["candidate"])
        assert made is not None
        published = weights_digest(open_model(read_verified(Path(data) / made.folder)))
    Path(written).write_text(json.dumps({"losses": losses, "same": weights_digest(network) == published}))


class Trials:
    """Starts trainings in processes that are forked from one which has loaded the libraries."""

    def __init__(self, runtime: RuntimeSettings, model: Path, folder: Path) -> None:
        self._runtime = runtime.model_dump_json()
        self._model = str(model)
        self._folder = folder
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["benchmarks.kill_points", "appliance.worker.cycle", "peft"])

    def start(self, data: Path, seed: int, point: Point | None = None) -> tuple[int, Counter[str]]:
        """The exit code of one start, and what it passed when it came to its end."""
        data.mkdir(parents=True, exist_ok=True)
        counted = data / "passed.json"
        arguments = (str(data), self._runtime, seed, self._model, point, str(counted))
        code = self._run(_train, arguments)
        return code, Counter(json.loads(counted.read_text())) if code == 0 else Counter()

    def replay(self, data: Path) -> dict[str, Any]:
        written = data / "replayed.json"
        code = self._run(_replay, (str(data), self._model, str(written)))
        if code:
            raise RuntimeError(f"the replay ended with {code}")
        found: dict[str, Any] = json.loads(written.read_text())
        return found

    def _run(self, target: Callable[..., None], arguments: tuple[Any, ...]) -> int:
        process = self._context.Process(target=target, args=arguments)
        process.start()
        process.join()
        return int(process.exitcode or 0)

    def trial(self, kills: int, seed: int, kinds: tuple[str, ...] = KINDS) -> PointTally:
        """Kills until `kills` were made and the training under way has ended; the kinds take turns."""
        rng, tally = Random(seed), PointTally()
        plain = self._folder / "plain"
        code, passed = self.start(plain, 0)
        if code:
            tally.faults.append(f"the training that nobody killed ended with {code}")
            return tally
        turn = 0
        while sum(tally.kills.values()) < kills:
            data = self._folder / f"killed-{tally.trainings}"
            code = -signal.SIGKILL
            while code == -signal.SIGKILL:
                point = None
                if sum(tally.kills.values()) < kills:
                    kind = kinds[turn % len(kinds)]
                    turn += 1
                    # What is left grows less with each start: a point in the first third is there most times.
                    point = Point(kind, rng.randint(1, max(1, passed[kind] // 3)))
                code, _ = self.start(data, 0, point)
                if code == -signal.SIGKILL and point is not None:
                    tally.kills[point.kind] += 1
            if code:
                tally.faults.append(f"training {tally.trainings} ended with {code}")
            else:
                self._compare(data, plain, tally)
            tally.trainings += 1
            shutil.rmtree(data)
            print(
                f"training {tally.trainings}: {sum(tally.kills.values())} kills, {len(tally.faults)} faults", flush=True
            )
        return tally

    def _compare(self, data: Path, plain: Path, tally: PointTally) -> None:
        name = f"training {tally.trainings}"
        (tasks, losses), (expected, other) = recorded(data), recorded(plain)
        if tasks != expected:
            tally.faults.append(f"{name}: other tasks than without a kill")
        replayed = self.replay(data)
        if not replayed["same"]:
            tally.faults.append(f"{name}: published weights are not those of the recorded steps")
        for step, found in losses.items():
            tally.replayed += len(found) > 1
            if set(found) != {replayed["losses"].get(str(step))}:
                tally.faults.append(f"{name}: step {step} was learned with the losses {found}")
        if losses.keys() != {int(step) for step in replayed["losses"]}:
            tally.faults.append(f"{name}: learned the steps {sorted(losses)}")
        tally.same_samples += {step: set(found) for step, found in losses.items()} == {
            step: set(found) for step, found in other.items()
        }


def recorded(data: Path) -> tuple[Counter[tuple[int, str]], dict[int, list[float]]]:
    """Of a finished training: its tasks by step, and each step's loss as often as it was learned.

    Raises ValueError where a step or a rollout is on record twice."""
    from appliance.ledger.sqlite import SqliteLedger

    losses: dict[int, list[float]] = {}
    tasks: Counter[tuple[int, str]] = Counter()
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        rollouts: list[str] = []
        for step in ledger.recorded_steps(NAME):
            record = ledger.step(NAME, step)
            assert record is not None
            tasks.update((step, str(task["id"])) for task in record.tasks)
            rollouts += [one.rollout.id for one in record.judged]
        if len(set(rollouts)) != len(rollouts):
            raise ValueError("a rollout is on record twice")
        for _, event in ledger.events(limit=1_000_000):
            if event.kind == "step":
                losses.setdefault(int(event.figures["step"]), []).append(event.figures["learning_loss"])
    return tasks, losses


@contextmanager
def broker(folder: Path) -> Iterator[RuntimeSettings]:
    """A broker on that folder, as a worker has it of the daemon."""
    settings = Settings.load({"data": str(folder)}, environ={"HOME": str(folder)}, etc_dir=folder)
    made, socket = runtime_settings(settings, folder), broker_socket(settings, folder)
    process = BrokerProcess(made.own, socket, command(socket, 0))
    if trouble := process.start():
        raise RuntimeError(trouble)
    try:
        yield made.model_copy(update={"broker": socket})
    finally:
        process.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, default=FIXTURE)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-kp-") as name:
        folder = Path(name)
        with broker(folder / "b") as runtime:
            tally = Trials(runtime, arguments.model, folder).trial(arguments.kills, arguments.seed)
    summary = {
        "kills": sum(tally.kills.values()),
        "kills_by_point": dict(tally.kills),
        "trainings": tally.trainings,
        "steps_learned_again": tally.replayed,
        "trainings_with_the_losses_of_one_without_a_kill": tally.same_samples,
        "faults": tally.faults,
    }
    print(json.dumps(summary, indent=1))
    write_run(summary, arguments.json)
    sys.exit(1 if tally.faults else 0)


if __name__ == "__main__":
    main()
