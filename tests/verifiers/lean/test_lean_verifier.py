"""Verdicts about proofs: what they say, whom they blame, and that several at once are the same as one by one."""

from __future__ import annotations

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lean_kit import DEFINED, FALSE, TRUE, Local

from runtime.errors import RefusedError
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.boxes.box import BoxLost, ToolBoxes
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground, Outcome
from verifiers.lean.spec import LeanSpec
from verifiers.lean.toolchain import Toolchain
from verifiers.lean.verifier import LeanVerifier

PANIC = "INTERNAL PANIC: Nat.shiftl exponent is too big\n"
GOOD = "theorem target : 2 + 2 = 4 := rfl"


def test_a_proof_passes_with_what_it_rests_on(lean: LeanVerifier) -> None:
    verdict = lean.verify(TRUE, GOOD)
    assert verdict.passed
    assert verdict.ground is Ground.PROVED
    assert verdict.score == 1.0
    assert verdict.isolation == "nsjail"
    assert verdict.tools == {"lean": "4.35.0"}
    assert verdict.evidence["axioms"] == []
    assert verdict.evidence["kernel_replayed"] == "yes"
    assert verdict.evidence["theorem"] == "target"
    assert verdict.evidence["headers"] == "warm"


def test_the_axioms_are_named(lean: LeanVerifier) -> None:
    spec = LeanSpec(statement="theorem target (p q : Prop) (h : p ↔ q) : p = q := sorry")
    verdict = lean.verify(spec, "theorem target (p q : Prop) (h : p ↔ q) : p = q := propext h")
    assert verdict.passed
    assert verdict.evidence["axioms"] == ["propext"]


def test_what_lean_refuses_is_told_with_the_submissions_own_lines(lean: LeanVerifier) -> None:
    text = "def twice (n : Nat) : Nat := n + n\nvariable (n : Nat)\n\ntheorem target : twice n = n + n :=\n  nonsense"
    verdict = lean.verify(DEFINED, text)
    assert verdict.ground is Ground.REFUTED
    assert verdict.evidence["errors"][0]["line"] == 5
    assert "nonsense" in verdict.reason


def test_heartbeats_that_run_out_are_a_timeout(lean: LeanVerifier) -> None:
    spec = LeanSpec(statement="theorem target : 2 + 2 = 4 := sorry", heartbeats=1)
    assert lean.verify(spec, "theorem target : 2 + 2 = 4 := by decide").ground is Ground.TIMEOUT


def test_the_same_input_has_the_same_verdict(lean: LeanVerifier) -> None:
    for text in (GOOD, "theorem target : True := True.intro", "theorem target : 2 + 2 = 4 := sorry", "nonsense"):
        first, second = (lean.verify(TRUE, text).model_copy(update={"seconds": 0.0}) for _ in range(2))
        assert first == second


def test_another_verifier_says_the_same_of_it(boxes: ToolBoxes, toolchain: Toolchain, lean: LeanVerifier) -> None:
    other = LeanVerifier(boxes, toolchain, memory_mib=2560, most=1)
    try:
        for text in (GOOD, "theorem target : True := True.intro"):
            found = [one.verify(TRUE, text).model_copy(update={"seconds": 0.0}) for one in (lean, other)]
            assert found[0] == found[1]
    finally:
        other.close()


def test_the_secret_mark_is_told_to_nobody(lean: LeanVerifier) -> None:
    for spec, text in ((TRUE, GOOD), (FALSE, "theorem target : True := True.intro"), (FALSE, "x")):
        assert lean._mark not in lean.verify(spec, text).model_dump_json()


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("theorem target : 2 + 2 = := sorry", "does not compile"),
        ("import Nowhere\ntheorem target : 2 + 2 = 4 := sorry", "does not compile"),
        ("theorem target : nonsense := sorry", "does not compile"),
        ("def hole : Nat := sorry\ntheorem target : hole = hole := sorry", "sorryAx"),
    ],
)
def test_a_statement_that_lean_refuses_is_the_specs_fault(lean: LeanVerifier, statement: str, what: str) -> None:
    with pytest.raises(SpecError, match=what) as raised:
        lean.verify(LeanSpec(statement=statement), GOOD)
    assert raised.value.hint
    assert lean._mark not in str(raised.value)


def test_a_statement_that_cannot_be_read_is_found_without_lean(lean: LeanVerifier) -> None:
    with pytest.raises(SpecError):
        lean.check(LeanSpec(statement="no theorem"))
    lean.check(TRUE)


def test_text_that_is_no_unicode_or_too_long_is_unreadable(lean: LeanVerifier) -> None:
    for text in ("theorem \ud800", "x" * 400_000):
        assert lean.verify(TRUE, text).ground is Ground.UNREADABLE
    assert lean.verify(TRUE, "\0").outcome is Outcome.FAIL


def test_several_at_once_are_as_one_by_one(boxes: ToolBoxes, toolchain: Toolchain) -> None:
    texts = [GOOD, "theorem target : True := True.intro", "theorem target : 2 + 2 = 4 := sorry", "nonsense"] * 3
    verifier = LeanVerifier(boxes, toolchain, memory_mib=1536, most=2)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda text: verifier.verify(TRUE, text).ground, texts))
    finally:
        verifier.close()
    assert found == [Ground.PROVED, Ground.REFUTED, Ground.UNFINISHED, Ground.REFUTED] * 3


def test_a_replay_that_is_asked_for_and_cannot_be_had_is_nobodys_fault(
    lean: LeanVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lean.verify(TRUE.model_copy(update={"require_replay": True}), GOOD).passed
    monkeypatch.setattr(lean._boxes, "replays", False)
    monkeypatch.setattr(lean._boxes, "headers", "not with this version")
    verdict = lean.verify(TRUE, GOOD)
    assert verdict.passed
    assert verdict.evidence["kernel_replayed"] == "no"
    assert verdict.evidence["headers"] == "cold: not with this version"
    refused = lean.verify(TRUE.model_copy(update={"require_replay": True}), GOOD)
    assert refused.outcome is Outcome.INFRA_ERROR
    assert refused.ground is Ground.BROKEN


class Faulty:
    """A real server whose answers go wrong in a chosen way, as a broken machine's do."""

    isolation = "process"

    def __init__(self, inner: Local, fault: str, times: list[int], also: tuple[str, ...] = ()) -> None:
        self._inner, self._fault, self._times = inner, fault, times
        self._modules = ("AssaySubmission", *also)

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        if message["do"] != "step" or message["module"] not in self._modules or not self._times[0]:
            return self._inner.ask(message, seconds)
        self._times[0] -= 1
        answer = self._inner.ask(message, seconds)
        if self._fault == "threads":
            return answer | {"ended": "exited", "code": 1, "err": "libc++abi: failed to create thread", "file": None}
        if self._fault == "kept from computing":
            return answer | {"ended": "timeout", "code": 0, "cpu": 0.01, "file": None}
        if self._fault == "nonsense":
            return {"pass": True}
        if self._fault == "signal":
            return answer | {"ended": "signal", "code": 11, "err": "", "out": "", "file": None}
        if self._fault == "panic":
            return answer | {"ended": "exited", "code": 1, "err": PANIC, "out": "", "file": None}
        raise BoxLost(self._fault, "as chosen")

    def kill(self) -> None:
        pass


@pytest.mark.parametrize("fault", ["threads", "kept from computing", "nonsense", "died"])
def test_what_breaks_once_is_tried_again_and_what_breaks_twice_is_infra(
    local: Local, toolchain: Toolchain, fault: str
) -> None:
    for times, outcome in (([1], Outcome.PASS), ([2], Outcome.INFRA_ERROR)):
        verifier = LeanVerifier(lambda left=times: Faulty(local, fault, left), toolchain, most=1)
        verdict = verifier.verify(TRUE, GOOD)
        verifier.close()
        assert verdict.outcome is outcome, verdict


@pytest.mark.parametrize("fault", ["signal", "timeout"])
@pytest.mark.parametrize(
    ("times", "broken", "outcome"),
    [(1, (), Outcome.PASS), (99, (), Outcome.FAIL), (99, ("Probe",), Outcome.INFRA_ERROR)],
    ids=["once", "always", "always, as everything does"],
)
def test_lean_that_breaks_off_or_falls_silent_is_the_submissions_doing_where_others_do_not(
    local: Local, toolchain: Toolchain, fault: str, times: int, broken: tuple[str, ...], outcome: Outcome
) -> None:
    left = [times]
    verifier = LeanVerifier(lambda: Faulty(local, fault, left, broken), toolchain, most=1)
    verdict = verifier.verify(TRUE, GOOD)
    verifier.close()
    assert verdict.outcome is outcome, verdict


def test_a_number_that_lean_gives_up_on_is_the_submissions_doing(local: Local, toolchain: Toolchain) -> None:
    verifier = LeanVerifier(lambda: Faulty(local, "panic", [9]), toolchain, most=1)
    verdict = verifier.verify(TRUE, GOOD)
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.MEMORY)


def test_a_box_that_was_too_small_is_a_matter_of_memory(local: Local, toolchain: Toolchain) -> None:
    verifier = LeanVerifier(lambda: Faulty(local, "memory", [1]), toolchain, most=1)
    verdict = verifier.verify(TRUE, GOOD)
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.MEMORY)


def test_memory_beyond_the_specs_is_a_failure_that_says_so(lean: LeanVerifier) -> None:
    spec = LeanSpec(statement="theorem target : 2 + 2 = 5 := sorry", memory_mib=256, seconds=200)
    text = (
        "theorem target : 2 + 2 = 5 :=\n"
        "  have : @Nat.rec (fun _ => Nat) 2 (fun _ x => Nat.mul x x) 32 = 0 := by decide +kernel\n  sorry"
    )
    verdict = lean.verify(spec, text, 200.0)
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.MEMORY), verdict


def test_without_a_box_nothing_is_said_of_the_submission(toolchain: Toolchain, tmp_path: Path) -> None:
    nobody = RuntimeSettings(
        broker=tmp_path / "nobody", own=BrokerSettings(state_dir=tmp_path / "s", root_dir=tmp_path / "r")
    )
    with ToolBoxes(nobody) as none:
        verifier = LeanVerifier(none, toolchain, most=1)
        verdict = verifier.verify(TRUE, GOOD)
        verifier.close()
    assert (verdict.outcome, verdict.ground) == (Outcome.INFRA_ERROR, Ground.BROKEN)


def test_a_refused_box_keeps_its_hint(toolchain: Toolchain) -> None:
    def refuse() -> Local:
        raise RefusedError("no sandbox here", hint="Be root.")

    verdict = LeanVerifier(refuse, toolchain, most=1).verify(TRUE, GOOD)
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert verdict.evidence["hint"] == "Be root."


def test_a_runaway_holds_nobody_else_up(boxes: ToolBoxes, toolchain: Toolchain) -> None:
    verifier = LeanVerifier(boxes, toolchain, memory_mib=1536, most=2)
    runaway = LeanSpec(statement="theorem target : 2 + 2 = 5 := sorry", seconds=200)
    text = "theorem target : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 0 := by decide +kernel"
    try:
        verifier.verify(TRUE, GOOD)
        slow = threading.Thread(target=verifier.verify, args=(runaway, text, 200.0))
        slow.start()
        assert all(verifier.verify(TRUE, GOOD).passed for _ in range(3))
        assert slow.is_alive()
    finally:
        verifier.close()
    slow.join(120)
    assert not slow.is_alive()  # closing ends those that are at work


def test_a_machine_without_lean_says_how_to_have_it(boxes: ToolBoxes) -> None:
    verdict = LeanVerifier(boxes, None).verify(TRUE, GOOD)
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert "elan" in verdict.evidence["hint"]


def test_boxes_of_one_kind_never_do_the_others_work(local: Local, toolchain: Toolchain) -> None:
    asked: dict[int, set[str]] = {}

    class Box:
        isolation = "process"

        def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
            if message["do"] == "step":
                asked.setdefault(id(self), set()).add(message["module"])
            return local.ask(message, seconds)

        def kill(self) -> None:
            pass

    boxes: list[Box] = []

    def launch() -> Box:
        boxes.append(Box())
        return boxes[-1]

    verifier = LeanVerifier(launch, toolchain, most=1)
    assert verifier.verify(TRUE, GOOD).passed
    verifier._boxes.headers = ""  # as where headers cannot be imported beforehand
    assert verifier.verify(TRUE, GOOD).passed
    assert sorted(map(sorted, asked.values())) == [["AssayCheck", "AssayStatement", "Replay"], ["AssaySubmission"]]


@pytest.mark.parametrize(
    "own",
    [
        "#eval 1 + 1",
        'macro "two" : term => `(2)',
        "def f : IO Unit := unsafeIO",
        "run_cmd pure ()",
        "def f : Nat := eval% 1",
        "theorem f : 1 = 1 := by simp (maxSteps := 1 + 1)",
    ],
)
def test_a_statement_with_code_of_its_own_has_boxes_that_nobody_else_is_asked_in(
    local: Local, toolchain: Toolchain, own: str
) -> None:
    """Whether Lean takes it is another matter: its code has run by then."""

    class Box:
        isolation = "process"

        def __init__(self) -> None:
            self.said: list[str] = []
            self.killed = False

        def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
            assert not self.killed
            self.said.append(str(message))
            return local.ask(message, seconds)

        def kill(self) -> None:
            self.killed = True

    boxes: list[Box] = []

    def launch() -> Box:
        boxes.append(Box())
        return boxes[-1]

    verifier = LeanVerifier(launch, toolchain, most=1)
    assert verifier.verify(TRUE, GOOD).passed
    shared = list(boxes)
    with contextlib.suppress(SpecError):
        verifier.verify(LeanSpec(statement=f"{own}\ntheorem target : 2 + 2 = 4 := sorry"), GOOD)
    alone = boxes[len(shared) :]
    assert alone
    assert all(box.killed for box in alone)
    assert not any(box.killed for box in shared)
    assert verifier.verify(TRUE, GOOD).passed
    assert len(boxes) == len(shared) + len(alone)
    assert any(own in said for box in alone for said in box.said)
    assert not any(own in said for box in shared for said in box.said)
    verifier.close()


def test_closed_boxes_are_no_boxes(local: Local, toolchain: Toolchain) -> None:
    verifier = LeanVerifier(lambda: local, toolchain)
    verifier.close()
    assert verifier.verify(TRUE, GOOD).outcome is Outcome.INFRA_ERROR


def test_evidence_is_json_of_bounded_size(lean: LeanVerifier) -> None:
    text = "".join(f"theorem t{n} : {'x' * 3000} := rfl\n" for n in range(30)) + GOOD
    verdict = lean.verify(TRUE, text)
    assert verdict.outcome is Outcome.FAIL
    assert len(json.dumps(verdict.evidence)) < 20_000
    assert len(verdict.reason) < 1000
