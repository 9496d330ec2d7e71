"""An environment that works is kept; one that has to be made anew is lost at no moment of that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_install_script import ROOT, ask, checkout, complete_environment, install, tree

__all__ = ["checkout"]  # the fixture
FUNCTIONS = f". '{ROOT}/install/replacing.sh'"


def without_a_way_to_fetch(checkout: Path, *first_on_path: Path) -> dict[str, str]:
    path = ":".join([*map(str, first_on_path), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"])
    nowhere = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": ""}
    return {"PATH": path, "ASSAY_TORCH_INDEX": (checkout.parent / "none").as_uri(), **nowhere}


def test_an_environment_that_works_is_kept_whatever_interpreter_is_first_on_the_path(checkout: Path) -> None:
    complete_environment(checkout)
    before = tree(checkout)
    other = checkout.parent / "bin" / "python3"
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    said = install(checkout, "--dry-run", **without_a_way_to_fetch(checkout, other.parent)).stdout
    assert "is sound and up to date" in said
    assert tree(checkout) == before


@pytest.mark.parametrize("damaged", [False, True], ids=["other requirements", "damaged"])
def test_where_the_new_one_fails_the_old_one_is_there_also_where_it_was_activated(
    checkout: Path, *, damaged: bool
) -> None:
    venv = complete_environment(checkout)
    if damaged:
        next(venv.glob("lib/python3*/site-packages/pip/__init__.py")).write_text("x")
    else:
        (checkout / "pyproject.toml").write_text((checkout / "pyproject.toml").read_text() + "\n# after a pull\n")
    before = tree(venv)
    result = install(checkout, **without_a_way_to_fetch(checkout, venv / "bin"))
    assert result.returncode == 5
    assert "no CPU build of torch was found" in result.stderr, result.stderr
    after = tree(venv)
    if not damaged:  # it is brought up to date in place, and says until then that it is not
        del before[".assay/fingerprint"]
    assert {name: what for name, what in after.items() if "__pycache__" not in name} == before
    assert ("the one from before again" in result.stdout) == damaged


def some_environment(tmp_path: Path) -> Path:
    for name in ("bin/python", "bin/runsc", "lib/site/x.py", ".assay/made", ".assay/fingerprint", "pyvenv.cfg"):
        (tmp_path / "venv" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "venv" / name).write_text(name)
    return tmp_path / "venv"


def test_ctrl_c_brings_the_old_environment_back(tmp_path: Path) -> None:
    venv = some_environment(tmp_path)
    before = tree(venv)
    result = ask(
        f"{FUNCTIONS}\ntrap clean_up EXIT; trap 'stopped 130' INT; VENV='{venv}'; put_aside\n"
        'mkdir "$VENV/bin"; echo new >"$VENV/bin/python"; kill -INT $$; sleep 5'
    )
    assert result.returncode == 130
    assert "the one from before again" in result.stdout
    assert tree(venv) == before


@pytest.mark.parametrize("number", range(1, 12))
def test_after_a_kill_at_any_moment_the_next_run_has_the_old_environment(tmp_path: Path, number: int) -> None:
    venv = some_environment(tmp_path)
    before = tree(venv)
    step = f"n=0; step() {{ n=$((n + 1)); if [ $n = {number} ]; then kill -9 $$; fi; }}"
    steps = 'mv() { step; command mv "$@"; }; cp() { step; command cp "$@"; }; rm() { step; command rm "$@"; }'
    killed = ask(
        f"{FUNCTIONS}\nVENV='{venv}'\n{step}\n{steps}\n"
        'put_aside; mkdir "$VENV/bin"; echo new >"$VENV/bin/python"; echo other >"$VENV/.assay/torch"; put_back'
    )
    assert killed.returncode == -9
    assert ask(f"{FUNCTIONS}\nVENV='{venv}'; recover_environment").returncode == 0
    after = tree(venv)
    after.pop(".assay/torch", None)  # a record without the fingerprint beside it says nothing
    assert after == before


def test_what_was_fetched_for_sandboxes_stays_when_the_new_environment_works(tmp_path: Path) -> None:
    venv = some_environment(tmp_path)
    (venv / "guest-packages").mkdir()
    script = f"{FUNCTIONS}\nVENV='{venv}'; put_aside; mkdir \"$VENV/bin\"; record fingerprint new; put_away"
    assert ask(script).returncode == 0
    assert {one.name for one in venv.iterdir()} == {".assay", "bin", "guest-packages"}
    assert (venv / "bin" / "runsc").read_text() == "bin/runsc"


def test_what_takes_long_says_that_it_goes_on_and_leaves_nothing_behind(tmp_path: Path) -> None:
    said = tmp_path / "said"
    waits = f"waits() {{ until grep -q 'still at it' '{said}'; do sleep 0.05; done; return 7; }}"
    result = ask(f"{FUNCTIONS}\n{waits}\nSIGN_SECONDS=0.05; with_signs waits >'{said}' && exit 1; echo \"$? $$\"; wait")
    code, pid = result.stdout.split()
    assert code == "7"
    assert subprocess.run(["pgrep", "-P", pid], capture_output=True, check=False).returncode == 1
