"""`benchmarks/pretrained.py`: outcomes and exit codes of its rows, and its short form on a real model."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import pretrained
from benchmarks.pretrained import ROWS, NotRunError, Result, Row, RowError, Seen, Setting, exit_code, result_of

HAS_MODEL = any(Path(f"{sys.prefix}-smollm2").glob("*.gguf"))


def setting(tmp_path: Path, device: str = "cpu") -> Setting:
    return Setting(tmp_path, "none", tmp_path, device, short=True)


def row(measure: Callable[[Setting], Seen], *, gpu_only: bool = False) -> Row:
    return Row("tried", "a property", 60, measure, gpu_only)


def test_without_a_gpu_each_row_says_what_it_would_show_and_the_exit_code_is_5(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pretrained, "gpu_name", lambda: "")
    monkeypatch.setattr(sys, "argv", ["pretrained.py"])
    with pytest.raises(SystemExit) as ended:
        pretrained.main()
    shown = capsys.readouterr()
    assert ended.value.code == 5
    assert [line.split()[0] for line in shown.out.splitlines() if "no GPU; would show: " in line] == [
        one.name for one in ROWS
    ]
    assert "--device cpu --short" in shown.err


@pytest.mark.parametrize(("met", "outcome"), [(True, "met"), (False, "missed"), (None, "shown")])
def test_a_row_meets_or_misses_its_bar_or_only_shows_its_figures(
    met: bool | None, outcome: str, tmp_path: Path
) -> None:
    result = result_of(row(lambda _: Seen("seen", {"figure": 1}, met)), setting(tmp_path), 60)
    assert (result.outcome, result.seen, result.figures) == (outcome, "seen", {"figure": 1})


def test_an_error_is_the_result_of_its_row(tmp_path: Path) -> None:
    def fails(_: Setting) -> Seen:
        raise RowError("it broke")

    def lacks(_: Setting) -> Seen:
        raise NotRunError("no TRL")

    assert result_of(row(fails), setting(tmp_path), 60) == Result("tried", "failed", "it broke")
    assert result_of(row(lacks), setting(tmp_path), 60).seen == "no TRL; would show: a property"
    assert result_of(row(lacks), setting(tmp_path), 0).seen == "no time was left; run it with --only tried"
    beyond = result_of(row(fails, gpu_only=True), setting(tmp_path), 60)
    assert (beyond.outcome, beyond.seen) == ("not run", "needs a GPU; would show: a property")


def test_a_process_that_fails_or_takes_too_long_fails_its_row_with_the_reason(tmp_path: Path) -> None:
    tried = setting(tmp_path)
    tried.deadline = time.monotonic() + 60
    with pytest.raises(RowError, match="exit code 3: last words"):
        tried.run("-c", "import sys; print('last words', file=sys.stderr); sys.exit(3)")
    tried.deadline = time.monotonic() + 0.2
    with pytest.raises(RowError, match="stopped at its time limit"):
        tried.run("-c", "import time; time.sleep(600)")


def test_the_exit_code_is_1_after_a_miss_and_5_if_no_row_ran() -> None:
    outcomes = {"met": 0, "shown": 0, "missed": 1, "failed": 1, "not run": 5}
    for outcome, code in outcomes.items():
        assert exit_code([Result("one", outcome, "")]) == code  # type: ignore[arg-type]
    assert exit_code([Result("one", "not run", ""), Result("two", "met", "")]) == 0


@pytest.mark.skipif(not HAS_MODEL, reason="there is no smollm2: ./install.sh --with smollm2 fetches it")
@pytest.mark.timeout(1_800)
def test_the_short_form_trains_a_real_model_with_proved_pushes_and_names_the_row_that_needs_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    asked = ["--device", "cpu", "--short", "--only", "lora", "vllm-sleep", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["pretrained.py", *asked])
    with pytest.raises(SystemExit) as ended:
        pretrained.main()
    shown = capsys.readouterr().out
    lora, asleep = json.loads(file.read_text())["figures"]["rows"]
    assert asleep["seen"].startswith("needs a GPU; would show: ")
    assert lora["outcome"] in {"met", "missed"}, shown  # the plan's bar is `half_billion.py`'s
    assert ended.value.code == (lora["outcome"] == "missed")
    step, resumed = lora["figures"]["step"], lora["figures"]["resume"]
    assert (step["digest"], step["base"]) == (resumed["digest"], resumed["base"])
    assert step["digest"] not in {one["digest"] for one in step["steps"]}, "a step changes the adapter"
    assert max(one["mismatch_kl"] for one in step["steps"]) < 1e-3
    assert lora["figures"]["planned"]["phases"]["training"] > 0
