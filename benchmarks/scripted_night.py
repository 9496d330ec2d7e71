"""A worker that plays nights without a model: real records through the real connection to the ledger, in a second.

    scripted_night.py prepare|train|evaluate <cycle>|jobs --policy SHA256 --ledger-fd N --data DIR --settings FILE

Training commits steps with rollouts, and a checkpoint with its attestation; the evaluation asks both models as many
questions. The time is that of the file `clock` in the data folder. While `slow` is there, training waits after its
second step until it is told to end, as a night does that is too long for its window.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy
from safetensors.numpy import save

from appliance.learning.folders import write_by_digest
from appliance.ledger.remote import RemoteLedger
from appliance.records.cycles import Checkpoint, Cycle, Event
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus, WeightSpan
from appliance.records.training import Group, Judged, StepRecord
from appliance.worker.evaluation.attest import write_attestation
from verifiers.contract.verdict import Outcome, Verdict

STEPS, TASKS, SAMPLES, TOKENS, QUESTIONS = 4, 4, 4, 60, 40
SEEDLING = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"
COMPANIONS = {name: (SEEDLING / name).read_bytes() for name in ("config.json", "tokenizer.json")}
SEALED_SET = "0" * 64
FAMILIES = ("gcd", "linear", "polynomials", "tables")


class Night:
    """One cycle's work."""

    def __init__(self, cycle: str, ledger: RemoteLedger, data: Path, policy: str) -> None:
        found = ledger.cycle(cycle)
        assert found is not None
        self.cycle: Cycle = found
        self.ledger = ledger
        self.data = data
        self.policy = policy

    @property
    def now(self) -> str:
        return (self.data / "clock").read_text()

    def prepare(self) -> None:
        champion = self.ledger.alias("champion")
        self.ledger.put_sealed_set(SEALED_SET, {"items": QUESTIONS})
        exam = {"again": None, "tasksets": self.cycle.plan["recipe"]["tasksets"], "left_out": {}, "sealed": SEALED_SET}
        self._update(plan={**self.cycle.plan, **exam, **({"start": champion} if champion else {})})

    def train(self) -> None:
        champion = self.cycle.plan.get("start") or self._published(b"the first", None, "imported")
        if "start" not in self.cycle.plan:
            self._update(plan={**self.cycle.plan, "start": champion})
        self._update(phase="training")
        recorded = set(self.ledger.recorded_steps(self.cycle.id))
        for step in range(STEPS):
            if step not in recorded:
                self.ledger.commit_step(self._step(step))
            self._say("step", f"step {step + 1} of {STEPS}", step=float(step), steps=float(STEPS))
            while step == 1 and (self.data / "slow").exists():
                time.sleep(0.01)
        made = self._published(self.cycle.id.encode(), champion, "training")
        self.ledger.set_aliases({"candidate": made}, f"trained by {self.cycle.id}", self.now)
        self._update(plan={**self.cycle.plan, "candidate": made}, seconds={"training": 60.0})

    def evaluate(self) -> None:
        self._update(phase="evaluation")
        plan = self.cycle.plan
        evaluation = Evaluation(
            id=f"{self.cycle.id}.evaluation",
            cycle=self.cycle.id,
            sealed_set=SEALED_SET,
            candidate=self._results(plan["candidate"], 1.0, 0.7),
            champion=self._results(plan["start"], 1.0, 0.5),
            candidate_greedy=self._results(plan["candidate"], 0.0, 0.7),
            champion_greedy=self._results(plan["start"], 0.0, 0.5),
            anchored={name: self.ledger.alias(f"anchor/{name}") or plan["start"] for name in FAMILIES},
            created=self.now,
            policy=self.policy,
        )
        self.ledger.put_evaluation(evaluation)

    def _published(self, content: bytes, parent: str | None, stage: str) -> str:
        weights = save({"made_of": numpy.frombuffer(content, dtype=numpy.uint8)})
        digest = write_by_digest(self.data / "models", {**COMPANIONS, "model.safetensors": weights})
        made = Checkpoint.model_validate(
            {
                "manifest": digest,
                "parent": parent,
                "cycle": self.cycle.id,
                "stage": stage,
                "step": STEPS,
                "recipe": "r",
                "metrics": {},
                "folder": f"models/{digest}",
                "created": self.now,
            }
        )
        if self.ledger.checkpoint(digest) is None:
            write_attestation(self.data, self.ledger, self.cycle, made, policy=self.policy, sealed=SEALED_SET)
            self.ledger.put_checkpoint(made)
        return digest

    def _step(self, step: int) -> StepRecord:
        chance = random.Random(f"{self.cycle.id} {step}")
        judged, groups = [], []
        for task in range(TASKS):
            passed = [chance.random() < 0.3 + 0.1 * step for _ in range(SAMPLES)]
            made = [self._judged(step, task, sample, right, chance) for sample, right in enumerate(passed)]
            judged += made
            groups.append(
                Group(
                    id=f"{self.cycle.id}.{step}.{task}",
                    cycle=self.cycle.id,
                    step=step,
                    task=f"task-{step}-{task}",
                    rollouts=tuple(one.rollout.id for one in made),
                    rewards=tuple(map(float, passed)),
                    kept=tuple(range(SAMPLES)),
                    advantages=tuple(float(right) - 0.5 for right in passed),
                    selector="roc",
                    reason="",
                )
            )
        right = sum(one.verdict.outcome is Outcome.PASS for one in judged) / len(judged)
        metrics = {
            "success": right,
            "tool_errors_in_correct": chance.random() / 4,
            "learning_entropy": 1.0 - step / 10,
            "length_mean": TOKENS + 10.0 * step,
            "tool_seconds": 3.0,
            "sampling_seconds": 20.0,
            "verifying_seconds": 1.0,
            "learning_seconds": 10.0,
        }
        tasks = tuple({"id": f"task-{step}-{task}"} for task in range(TASKS))
        return StepRecord(
            cycle=self.cycle.id, step=step, tasks=tasks, judged=tuple(judged), groups=tuple(groups), metrics=metrics
        )

    def _judged(self, step: int, task: int, sample: int, right: bool, chance: random.Random) -> Judged:
        version = f"{self.cycle.id}@{step}"
        ids = tuple(chance.randrange(50_000) for _ in range(TOKENS))
        call = ToolCall(code="print(6 * 7)", status=ToolStatus.OK, output="42\n", sandbox="scripted")
        nodes = (
            Message(parent=None, role=Role.USER, ids=ids[:20], sampled=False),
            Message(
                parent=0,
                role=Role.ASSISTANT,
                ids=ids,
                sampled=True,
                logprobs=(-0.5,) * TOKENS,
                weights=(WeightSpan(version=version, start=0, end=TOKENS),),
            ),
            Message(parent=1, role=Role.TOOL, ids=ids[:5], sampled=False, call=call),
        )
        rollout = Rollout(
            id=f"{self.cycle.id}.train.{step}.{task}.{sample}",
            cycle=self.cycle.id,
            step=step,
            task=f"task-{step}-{task}",
            sample=sample,
            purpose=Purpose.TRAIN,
            temperature=1.0,
            nodes=nodes,
            ended=RolloutEnd.ANSWERED,
            answer="42" if right else "41",
            answers=1,
            seconds=0.5,
        )
        outcome = Outcome.PASS if right else Outcome.FAIL
        verdict = Verdict(
            outcome=outcome, score=float(right), reason="scripted", verifier="exact", version="1", seconds=0.0
        )
        return Judged(rollout=rollout, verdict=verdict, family=FAMILIES[task])

    def _results(self, weights: str, temperature: float, share: float) -> ModelResults:
        chance = random.Random(f"{weights} {temperature}")
        items = tuple(
            ItemResult(
                task=f"q{n}",
                family=FAMILIES[n % len(FAMILIES)],
                passed=chance.random() < share,
                calls=1,
                failed_calls=0,
            )
            for n in range(QUESTIONS)
        )
        return ModelResults(weights=weights, temperature=temperature, items=items, tokens=1000, seconds=1.0)

    def _say(self, kind: str, text: str, **figures: float) -> None:
        self.ledger.put_event(Event(kind=kind, text=text, figures=figures, created=self.now))

    def _update(self, **changes: object) -> None:
        self.cycle = self.cycle.model_copy(update={**changes, "updated": self.now})
        self.ledger.put_cycle(self.cycle)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def main(argv: list[str]) -> None:
    signal.signal(signal.SIGTERM, _end)
    work, cycle = argv[0], argv[1]
    options = dict(zip(argv[-8::2], argv[-7::2], strict=True))
    ledger = RemoteLedger(Connection(int(options["--ledger-fd"])))
    night = Night(cycle, ledger, Path(options["--data"]), options["--policy"])
    {"prepare": night.prepare, "train": night.train, "evaluate": night.evaluate}[work]()


if __name__ == "__main__":
    main(sys.argv[1:])
