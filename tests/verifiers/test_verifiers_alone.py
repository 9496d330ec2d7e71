"""The verifiers are a distribution of their own: they install without the appliance and give the same verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packages" / "verifiers"


def test_the_verifiers_install_alone_and_judge(tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run([*pip, "--target", target, PACKAGE], capture_output=True, text=True, timeout=240)
    assert built.returncode == 0, built.stderr
    assert {path.name for path in target.iterdir() if path.suffix != ".dist-info"} == {"common", "runtime", "verifiers"}
    program = (
        f"import sys, json; sys.path.insert(0, {str(target)!r})\n"
        "from verifiers import AnswerSpec, Checker\n"
        "import verifiers\n"
        "with Checker() as checker:\n"
        "    verdicts = [checker.check(AnswerSpec(expected='1/2'), text).outcome.value for text in ('0.5', '0.6')]\n"
        "foreign = sorted({name.partition('.')[0] for name in sys.modules} & {'appliance', 'curriculum', 'policies'})\n"
        "print(json.dumps([verifiers.__file__, verdicts, foreign]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    place, verdicts, foreign = json.loads(ran.stdout)
    assert Path(place).is_relative_to(target)
    assert (verdicts, foreign) == (["pass", "fail"], [])


def test_what_the_verifiers_need_is_asked_for_as_the_whole_program_asks_for_it() -> None:
    alone = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(alone["dependencies"]) <= set(whole["dependencies"])
    assert alone["version"] == whole["version"]
