"""Headers imported once: what is made with one is what Lean's command line makes, and nothing is believed for it."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lean_kit import DEFINED, TRUE, Local

from verifiers.lean.controls import PROBE
from verifiers.lean.headers import MOST_HEADERS
from verifiers.lean.toolchain import Toolchain
from verifiers.lean.verifier import LeanVerifier

GOOD = "theorem target : 2 + 2 = 4 := rfl"
RUNAWAY = "theorem x : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 0 := by decide +kernel"
CHECK = "theorem m.check : type_of% @x.m := @x\n#print axioms m.check"
UNSEEN = "set_option debug.skipKernelTC true\n"
STATED = "theorem x.m : 2 + 2 = 4 := sorry"


def ask(local: Local, source: str, **more: Any) -> dict[str, Any]:
    limits: dict[str, Any] = {"seconds": 60, "memory_mib": 2048, "header": []}
    return local.ask({"do": "step", "module": "X", "source": source} | limits | more)


def cold(local: Local, source: str, **more: Any) -> dict[str, Any]:
    limits: dict[str, Any] = {"seconds": 60, "memory_mib": 2048}
    return local.ask({"do": "step", "module": "X", "source": source} | limits | more)


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, local: Local, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with modules that can be imported."""
    folder = tmp_path_factory.mktemp("library")
    for number in range(MOST_HEADERS + 2):
        source = f"def number{number} : Nat := {number}\ninstance : Inhabited Bool := ⟨true⟩"
        made = cold(local, source, module=f"M{number}", keep=True)
        (folder / f"M{number}.olean").write_bytes(base64.b64decode(made["file"]))
    return folder


@pytest.fixture(scope="module")
def own(toolchain: Toolchain, library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    made = Local(
        toolchain, tmp_path_factory.mktemp("own"), environment={"LEAN_PATH": f"{toolchain.compiled}:{library}"}
    )
    yield made
    made.kill()


def children(process: int) -> list[int]:
    """Those that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (path / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except (OSError, ValueError):
            continue
        if int(parent) == process and state != "Z":
            found.append(int(path.name))
    return found


@pytest.mark.parametrize(
    "source",
    [
        PROBE,
        "private theorem hidden : 1 + 1 = 2 := rfl\ntheorem y : 1 + 1 = 2 := hidden",
        "inductive T where | a | b (t : T)\ndef x := T.a\n@[simp] theorem z : x = .a := rfl",
        "set_option maxHeartbeats 1000 in\ntheorem w (n : Nat) : n + 0 = n := by simp",
        "theorem open_one : 2 + 2 = 5 := sorry",
    ],
)
def test_a_file_made_with_a_header_is_byte_by_byte_the_one_that_lean_makes(local: Local, source: str) -> None:
    warm, usual = ask(local, source, keep=True), cold(local, source, keep=True)
    assert usual["code"] == 0
    assert warm["file"] == usual["file"]


@pytest.mark.parametrize(
    "source",
    ["theorem x : 1 = 2 := rfl", "nonsense", "theorem x : False := by decide\n#check x", "#check Nat", "\0", ""],
)
def test_lean_says_the_same_with_a_header(local: Local, source: str) -> None:
    warm, usual = (ask(local, source), cold(local, source))
    assert (warm["ended"], warm["code"]) == (usual["ended"], usual["code"])
    assert warm["out"].replace("<input>", "X.lean") == usual["out"]


def test_options_are_obeyed(local: Local) -> None:
    answer = ask(local, "theorem x : 2 + 2 = 4 := by decide", options=["-DmaxHeartbeats=1"])
    assert "maximum number of heartbeats (1)" in answer["out"]
    assert ask(local, PROBE, options=["--trust=0"])["ended"] == "cold"


def test_what_a_header_brings_is_there_and_steps_leave_nothing(own: Local) -> None:
    assert ask(own, "theorem x : number1 = 1 := rfl\ndef left := 0", header=["M1"])["code"] == 0
    assert ask(own, "theorem x : left = 0 := rfl", header=["M1"])["code"] == 1
    assert ask(own, "theorem x : number1 = 1 := rfl", header=["M2"])["code"] == 1
    assert ask(own, PROBE, header=["M1", "Nowhere"])["ended"] == "cold"


def test_there_are_only_so_many_headers(own: Local) -> None:
    for number in range(MOST_HEADERS + 2):
        assert ask(own, PROBE, header=[f"M{number}"], idle_mib=4096)["code"] == 0
    assert len(children(own.process.pid)) == MOST_HEADERS
    assert ask(own, PROBE, header=["M0"], idle_mib=0)["code"] == 0
    assert len(children(own.process.pid)) == 1


def test_a_step_that_does_not_end_is_ended_and_its_header_goes_on(own: Local) -> None:
    assert ask(own, PROBE)["code"] == 0
    before = children(own.process.pid)
    assert ask(own, RUNAWAY, seconds=0.5)["ended"] == "timeout"
    assert ask(own, RUNAWAY, memory_mib=20)["ended"] == "memory"
    assert ask(own, PROBE)["code"] == 0
    assert children(own.process.pid) == before
    assert [children(header) for header in before] == [[]] * len(before)


def test_a_header_that_is_gone_is_made_again(own: Local) -> None:
    ask(own, PROBE)
    for header in children(own.process.pid):
        os.kill(header, signal.SIGKILL)
    assert [ask(own, PROBE)["ended"] for _ in range(2)] == ["cold", "exited"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("theorem x : 2 + 2 = 4 := rfl", "does not depend on any axioms"),
        ("theorem x : 2 + 2 = 4 := sorry", "[sorryAx]"),
        ("axiom a : 2 + 2 = 4\ntheorem x : 2 + 2 = 4 := a", "[a]"),
        ("theorem x : 2 + 2 = 5 := sorry", "error"),
        ("def x : Nat := 4", "error"),
        (f"{UNSEEN}theorem x : 2 + 2 = 4 := absurd (by decide +kernel : 2 + 2 = 5) (by decide)", "(kernel)"),
    ],
)
def test_files_that_are_added_go_through_the_kernel(local: Local, source: str, expected: str) -> None:
    files = {
        "S.olean": ask(local, STATED, module="S", keep=True)["file"],
        "P.olean": ask(local, source, module="P", keep=True)["file"],
    }
    answer = ask(local, CHECK, files=files, add=list(files), bare=["P.olean"], wanted="x")
    assert expected in answer["out"] + answer["err"]
    assert answer["ended"] == ("cold" if expected == "(kernel)" else "exited")


def test_a_header_that_is_lost_costs_no_verdict(toolchain: Toolchain, tmp_path: Path) -> None:
    made: list[Local] = []

    def launch() -> Local:
        made.append(Local(toolchain, tmp_path))
        return made[-1]

    verifier = LeanVerifier(launch, toolchain, most=1)
    try:
        assert verifier.verify(TRUE, GOOD).evidence["headers"] == "warm"
        for local in made:
            for header in children(local.process.pid):
                os.kill(header, signal.SIGKILL)
        found = [verifier.verify(TRUE, GOOD) for _ in range(2)]
    finally:
        verifier.close()
    assert [(one.passed, one.evidence["headers"]) for one in found] == [(True, "cold"), (True, "warm")]


def test_a_statement_with_definitions_of_its_own_is_compiled_against_them(lean: LeanVerifier) -> None:
    verdict = lean.verify(DEFINED, "theorem target : twice n = n + n := rfl")
    assert verdict.passed
    assert verdict.evidence["headers"] == "cold"
