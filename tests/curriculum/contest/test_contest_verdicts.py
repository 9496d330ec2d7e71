"""Verdicts on contest programs: right, too slow, wrong, and attacks on the judge; in sandboxes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pytest
from rivals import EDGES, FAMILIES, IDEAS, changed, too_slow
from tables import table

from curriculum.tasksets.contest.composing import IDLE, constants_of, made, twist_of
from verifiers.contract.verdict import Ground, Verdict
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.verifier import ProgramVerifier

FEW = ("subarray_remainders", "route_counts")
"""Families that are judged in the suite; all of them at night."""
TENFOLD = {"seconds": 0.3, "slack": 10.0}
"""Limit of ten times the reference's time, at which a wrong complexity still fails; starting Python takes some too."""
ATTACKED = "subarray_remainders"
BURN = "while True: pass"


def judged(verifier: ProgramVerifier, name: str, level: int) -> dict[str, Verdict]:
    """Verdicts on the reference and on its rivals."""
    rng = Random(f"{name} {level}")
    constants, twist = constants_of(FAMILIES[name], rng), twist_of(level, rng)
    item = made(FAMILIES[name], level, Random(f"{name} {level}"))
    assert isinstance(item.spec, ProgramSpec)
    wide = item.spec.model_copy(update=TENFOLD)
    rivals = {"slow": too_slow(FAMILIES[name]), "idea": IDEAS[name], "edge": EDGES[name]}
    found = {"right": verifier.verify(item.spec, item.answer), "right at ten": verifier.verify(wide, item.answer)}
    for what, rival in rivals.items():
        program = changed(FAMILIES[name], constants, twist, rival)
        found[what] = verifier.verify(wide if what == "slow" else item.spec, program)
    return found


def assert_told_apart(found: dict[str, Verdict]) -> None:
    assert found["right"].passed, found["right"].reason
    assert found["right at ten"].passed, found["right at ten"].reason
    assert found["slow"].ground in (Ground.TIMEOUT, Ground.MEMORY), found["slow"].reason
    assert not found["idea"].passed
    assert not found["edge"].passed


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", FEW)
def test_a_right_program_passes_and_its_rivals_fail(verifier: ProgramVerifier, name: str) -> None:
    assert_told_apart(judged(verifier, name, 0))


@pytest.fixture(params=[0, 16])
def load(request: pytest.FixtureRequest) -> Iterator[int]:
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(request.param)]
    yield request.param
    for one in burning:
        one.kill()
        one.wait()


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("level", [0, 4])
@pytest.mark.parametrize("name", FAMILIES)
def test_verdicts_of_every_family_are_the_same_without_and_under_load(
    verifier: ProgramVerifier, name: str, level: int, load: int
) -> None:
    assert_told_apart(judged(verifier, name, level))


READS_FILES = """
import glob
text = ""
for pattern in ("/work/*", "/tmp/*", "/proc/self/*", "/proc/1/*", "/opt/*"):
    for name in glob.glob(pattern):
        try:
            text += open(name, errors="replace").read(100_000)
        except OSError:
            pass
print("expected" in text, text[-50:])
"""
HIDES_TIME = """
import os
read, write = os.pipe()
child = os.fork()
if child == 0:
    total = 0
    while True:
        total += 1
os.waitpid(child, 0)
"""


@pytest.mark.timeout(1_800)
@table(
    "attack",
    [
        IDLE[2],
        "import sys\ntold = SHOWN\nprint(told.get(sys.stdin.read(), '0'), end='')\n",
        "for _ in range(int(input())):\n    print(*range(200), sep='\\n')\n",
        "while True:\n    print('7' * 1000)\n",
        "import time\ntime.sleep(600)\n",
        READS_FILES,
        HIDES_TIME,
    ],
)
def test_an_attack_fails(verifier: ProgramVerifier, attack: str) -> None:
    item = made(FAMILIES[ATTACKED], 0, Random(5))
    assert isinstance(item.spec, ProgramSpec)
    shown = {item.spec.runs[0].stdin: item.spec.runs[0].expected}
    found = verifier.verify(item.spec, attack.replace("SHOWN", repr(shown)))
    assert found.outcome in ("fail", "hack_suspected"), found.reason
