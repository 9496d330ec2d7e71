"""Judges texts that this repository makes, many of them, as the verifiers do: for certifying what a sandbox decides.

What always holds: whatever passes was passed by its verifier, in a sandbox. Three things make that affordable. Places
of programs are used again (`reused_sessions`), and what fails in one is asked in a fresh one. A program is first run
here, in a child of this process: one that has no value, or another than a test expects, is refuted and asked of no
verifier; what is not plainly refuted is. And each verdict is put down in a journal, so that a run which was stopped
goes on where it was; what broke on our side is not put down, and asked again.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from benchmarks.reused_sessions import CALLS, ReusedSessions
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from verifiers.checker import Checker, default_settings
from verifiers.contract.verdict import Ground, Judgement, Outcome, SpecProblem, Verdict
from verifiers.programs.data.compare import CompareRule
from verifiers.programs.spec import ProgramSpec
from verifiers.registry import decide, identity, is_decided
from verifiers.registry.spec import Spec

CHUNK = 50
"""Pairs that are put down together."""
SECONDS = 0.2
"""Of processor time, for all tests of one text that is run here; what takes longer is asked of the verifier."""
ATTEMPTS = 3
"""For what broke: on a busy machine a sandbox may be kept from computing."""

Pair = tuple[Spec, str]


class OwnTexts:
    """A judge for `curriculum.certification.certify`. A context manager; without a journal nothing is put down."""

    def __init__(self, journal: Path | None = None, say: Callable[[str], object] = lambda text: None) -> None:
        self._journal, self._say = journal, say
        self._known: dict[str, Verdict] = {}
        if journal is not None and journal.exists():
            whole = [line for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
            journal.write_text("".join(whole))  # the last line may have been cut off
            rows = map(json.loads, whole)
            self._known = {row["of"]: Verdict.model_validate(row["verdict"]) for row in rows}
        self._here = ProcessPoolExecutor(1, get_context("fork"))
        self._here.submit(int).result()  # it forks now, while there are no threads
        settings = default_settings()
        self.pool = Sessions(settings.model_copy(update={"limits": Limits(calls=CALLS)}))
        self._reused = ReusedSessions(self.pool)
        self._programs = Checker(settings, sessions=self._reused)  # type: ignore[arg-type]  # less is asked of it
        self._others = Checker(settings, sessions=self.pool)

    def __enter__(self) -> OwnTexts:
        return self

    def __exit__(self, *_error: object) -> None:
        self._here.shutdown()
        self._reused.close()
        for part in (self._programs, self._others, self.pool):
            part.close()

    def __call__(self, pairs: Sequence[Pair]) -> list[Verdict | SpecProblem]:
        """A verdict for each pair, in order."""
        names = [_name(pair) for pair in pairs]
        problems: dict[str, SpecProblem] = {}
        left = {name: pair for name, pair in zip(names, pairs, strict=True) if name not in self._known}
        waiting = list(left.items())
        for at in range(0, len(waiting), CHUNK):
            self._say(f"{at} of {len(left)} answers, {len(pairs) - len(left)} known before")
            for name, verdict in self._judged(dict(waiting[at : at + CHUNK])).items():
                if isinstance(verdict, SpecProblem):
                    problems[name] = verdict
                else:
                    self._known[name] = verdict
        return [problems.get(name) or self._known[name] for name in names]

    def _judged(self, asked: dict[str, Pair]) -> dict[str, Verdict | SpecProblem]:
        refuted = self._here.map(fails_here, asked.values(), chunksize=CHUNK)
        found: dict[str, Verdict | SpecProblem] = {
            name: Judgement(Ground.REFUTED, "run here, it fails a test", {}).verdict(*identity(spec), seconds=0.0)
            for (name, (spec, _)), wrong in zip(asked.items(), refuted, strict=True)
            if wrong
        }
        found |= {name: decide(*pair) for name, pair in asked.items() if is_decided(pair[0])}
        for _ in range(ATTEMPTS):
            left = {name: pair for name, pair in asked.items() if _broke(found.get(name))}
            for own in (True, False):
                some = {name: pair for name, pair in left.items() if isinstance(pair[0], ProgramSpec) is own}
                checker = self._programs if own else self._others
                found |= dict(zip(some, checker.check_many(list(some.values())), strict=True))
            # a used place may have ended for what came before, and a verifier blames the text
            again = {name: pair for name, pair in left.items() if _failed(found[name], pair)}
            found |= dict(zip(again, self._others.check_many(list(again.values())), strict=True))
        self._put_down({name: one for name, one in found.items() if isinstance(one, Verdict) and not _broke(one)})
        return found

    def _put_down(self, verdicts: dict[str, Verdict]) -> None:
        if self._journal is None:
            return
        with self._journal.open("a") as file:
            for name, verdict in verdicts.items():
                kept = verdict.model_dump(mode="json", exclude={"evidence", "tools"})
                file.write(json.dumps({"of": name, "verdict": kept}) + "\n")


def _failed(verdict: Verdict | SpecProblem, pair: Pair) -> bool:
    return isinstance(pair[0], ProgramSpec) and not (isinstance(verdict, Verdict) and verdict.passed)


def _broke(verdict: Verdict | SpecProblem | None) -> bool:
    return verdict is None or (isinstance(verdict, Verdict) and verdict.outcome is Outcome.INFRA_ERROR)


def _name(pair: Pair) -> str:
    spec, answer = pair
    said = json.dumps([*identity(spec), spec.model_dump(mode="json"), answer], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:24]


def fails_here(pair: Pair) -> bool:
    """Whether this text plainly fails a test, for a child process."""
    spec, source = pair
    if not isinstance(spec, ProgramSpec) or spec.compare != CompareRule() or spec.reference or not spec.function:
        return False
    if any(one.raises or one.compare for one in spec.examples):
        return False
    try:
        tests = [(ast.literal_eval(f"[{one.arguments}]"), ast.literal_eval(one.expected)) for one in spec.examples]
    except (ValueError, SyntaxError):  # by name, or a nan
        return False
    try:
        with _clock(), redirect_stdout(io.StringIO()):
            call = _function(spec, source)
            values = ((call(*arguments), expected) for arguments, expected in tests)
            return any(type(value) is not type(expected) or value != expected for value, expected in values)
    except TimeoutError:
        return False
    except Exception:  # noqa: BLE001 - whatever it raises, there is no value
        return True


def _function(spec: ProgramSpec, source: str) -> Callable[..., Any]:
    module = ModuleType("solution")
    exec(compile(source, "made here", "exec"), module.__dict__)
    if not spec.driver:
        return module.__dict__[spec.function]  # type: ignore[no-any-return]
    names: dict[str, Any] = {"solution": module}
    exec(compile(spec.driver, "made here", "exec"), names)
    return lambda *arguments: names["drive"](module, *arguments)


@contextmanager
def _clock() -> Iterator[None]:
    def over(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
