"""The program in the box: a step ends when it has to, leaves nothing behind, and says how it ended."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from lean_kit import Local

from verifiers.lean import server
from verifiers.lean.controls import PROBE
from verifiers.lean.server import COLD
from verifiers.lean.toolchain import Toolchain

RUNAWAY = "theorem x : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 0 := by decide +kernel"

LONG = "b" * 100_000
FLOOD = (
    f"namespace {LONG}\ndef T : Prop := True\n"
    f"theorem _root_.t (_ : {' ∧ '.join(['T'] * 30)}) : T := True.intro\nend {LONG}\n" + "#check @t\n" * 30
)
"""90 MB of names."""


def ask(local: Local, source: str, **more: Any) -> dict[str, Any]:
    limits: dict[str, Any] = {"seconds": 60, "memory_mib": 2048}
    return local.ask({"do": "step", "module": "X", "source": source} | limits | more)


def test_it_is_warm_and_can_replay(local: Local) -> None:
    assert local.ask({"do": "describe"}) == {"warm": True, "problem": "", "replay": "library", "headers": "warm"}


def test_a_step_compiles_and_gives_the_file(local: Local) -> None:
    answer = ask(local, PROBE, keep=True)
    assert (answer["ended"], answer["code"], answer["out"]) == ("exited", 0, "")
    assert base64.b64decode(answer["file"]).startswith(b"olean")
    assert "file" not in ask(local, PROBE)


def test_errors_are_told_as_lean_tells_them(local: Local) -> None:
    answer = ask(local, "theorem x : 1 = 2 := rfl", keep=True)
    assert (answer["ended"], answer["code"]) == ("exited", 1)
    assert '"severity":"error"' in answer["out"]


def test_a_step_that_does_not_end_is_ended(local: Local) -> None:
    began = time.monotonic()
    answer = ask(local, RUNAWAY, seconds=0.5)
    assert answer["ended"] == "timeout"
    assert 0.4 < time.monotonic() - began < 120
    assert ask(local, PROBE)["code"] == 0


def test_a_step_that_takes_too_much_memory_is_ended(local: Local) -> None:
    answer = ask(local, RUNAWAY, memory_mib=20)
    assert answer["ended"] == "memory"


def test_much_output_is_dropped_and_too_much_ends_it(local: Local) -> None:
    answer = ask(local, "#check Nat\n" * 1500)
    assert (answer["ended"], answer["code"]) == ("exited", 0)
    assert len(answer["out"]) <= 256 << 10
    assert ask(local, FLOOD)["ended"] == "output"


def test_steps_share_nothing_and_leave_nothing(local: Local, tmp_path: Path, toolchain: Toolchain) -> None:
    own = Local(toolchain, tmp_path)
    try:
        assert ask(own, PROBE, keep=True)["code"] == 0
        assert ask(own, "import X\ntheorem y : True := probe")["code"] == 1
        assert list(tmp_path.iterdir()) == []
    finally:
        own.kill()


def test_a_file_that_is_made_bare_is_made_so_before_lean_sees_it(local: Local) -> None:
    file = ask(local, "instance evil : Add Nat := ⟨fun _ _ => 5⟩\ntheorem t : True := True.intro", keep=True)["file"]
    source = "import Y\ntheorem x : 2 + 2 = 5 := rfl"
    files = {"Y.olean": file}
    assert ask(local, source, files=files)["code"] == 0
    bare = ask(local, source, files=files, bare=["Y.olean"], wanted="t")
    assert bare["code"] == 1
    assert bare["has"] is True
    assert bare["reserved"] == []


def test_a_file_that_cannot_be_made_bare_ends_the_step(local: Local) -> None:
    files = {"Y.olean": base64.b64encode(b"olean but not really" * 20).decode()}
    assert ask(local, "import Y", files=files, bare=["Y.olean"])["ended"] == "unreadable"


def test_names_that_the_kernel_computes_with_are_reported(local: Local) -> None:
    file = ask(local, "def Nat.pow (_ _ : Nat) : Nat := 0", keep=True)["file"]
    found = ask(local, "import Y", files={"Y.olean": file}, bare=["Y.olean"], wanted="x")
    assert found["reserved"] == ["Nat.pow"]
    assert found["has"] is False


def test_a_replay_tells_true_files_from_false_ones(local: Local) -> None:
    for source, expected in (
        (PROBE, "yes"),
        ("theorem a (p q : Prop) (h : p ∧ q) : q ∧ p := ⟨h.right, h.left⟩\ninductive T where | a | b (t : T)", "yes"),
        ("set_option debug.skipKernelTC true\ntheorem x : 2 + 2 = 5 := by decide +kernel", "(kernel)"),
    ):
        made = ask(local, source, keep=True)
        found = ask(local, "", files={"X.olean": made["file"]}, replay="X.olean")
        assert expected in found["replayed"], found


def test_a_lean_that_cannot_be_set_up_beforehand_still_works(toolchain: Toolchain, tmp_path: Path) -> None:
    cold = Local(toolchain, tmp_path, flags=(COLD,))
    try:
        description = cold.ask({"do": "describe"})
        assert (description["warm"], description["problem"], description["replay"]) == (False, "", "library")
        assert "initialized before a fork" in description["headers"]
        assert ask(cold, PROBE)["code"] == 0
    finally:
        cold.kill()


TOOL = """#!{python}
import ctypes, os, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from verifiers.lean.native import LeanRefused, replay
library = ctypes.CDLL({library!r}, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
library.lean_initialize()
try:
    replay(library, Path(sys.argv[1] + ".olean"))
except LeanRefused as error:
    os.write(2, str(error).encode())
    os._exit(1)
os._exit(0)
"""
ASK_TOOL = """
import json, sys
sys.path.insert(0, {root!r})
from verifiers.lean.running import Lean, LeanStep
from verifiers.lean.controls import FALSE_PROBE, PROBE
lean = Lean({library!r})
lean.tool, lean.replays = {tool!r}, "tool"
limits = {{"module": "X", "seconds": 60, "memory_mib": 2048}}
said = []
for source in (PROBE, FALSE_PROBE):
    file = LeanStep(lean, limits | {{"source": source, "keep": True}}).run()["file"]
    said.append(LeanStep(lean, limits | {{"files": {{"X.olean": file}}, "replay": "X.olean"}}).run()["replayed"])
print(json.dumps(said))
"""


def test_a_toolchains_own_replay_program_does_where_the_library_does_not(toolchain: Toolchain, tmp_path: Path) -> None:
    """In a process of its own: a step ends all children of whoever asks for it."""
    tool = tmp_path / "leanchecker"
    known = {"root": str(Path(server.__file__).resolve().parents[2]), "library": str(toolchain.library)}
    tool.write_text(TOOL.format(python=sys.executable, **known))
    tool.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-c", ASK_TOOL.format(tool=str(tool), **known)],
        env={"LEAN_PATH": str(toolchain.compiled), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    true, false = json.loads(ran.stdout)
    assert true == "yes"
    assert "(kernel)" in false


@pytest.mark.parametrize("environment", [{"LEAN_PATH": "/nowhere"}])
def test_a_lean_without_its_library_says_so(toolchain: Toolchain, tmp_path: Path, environment: dict[str, str]) -> None:
    broken = Local(toolchain, tmp_path, environment=environment)
    try:
        description = broken.ask({"do": "describe"})
        assert description["warm"] is False
        assert "Init" in description["problem"]
    finally:
        broken.kill()
