"""A pretrained model on one GPU in less than ten minutes: training, pushes, engines, and memory against `assay plan`.

    python -m benchmarks.pretrained [SOURCE] [--only ROW ...] [--json FILE]
    python -m benchmarks.pretrained [SOURCE] --device cpu [--short]

SOURCE is one of `assay model import`, such as a folder; the default is smollm2, which `./install.sh --with smollm2`
fetches. It is imported into a temporary folder.

Each row runs in processes of its own and has a time limit; a row that fails does not stop the others.

    full, lora, qlora        twice push, sampling, step; checkpoint, resume, push. Every push is proved, learner and
                             engine agree, resumed weights are those saved, memory is within 15 % of the plan
    vllm, vllm-lora          two pushes that vLLM proves, of whole weights and of an adapter; vLLM next to `generate`
    vllm-sleep               CUDA graphs, IPC and sleep beside a learner: only on a GPU
    vllm-fp8                 adapters beside weights in 8 bits, and a larger KV cache in the same share: only on a GPU
    full-offload             as full, with inputs of layers and moments in main memory: only on a GPU
    engine                   the torch engine next to `generate` (torch_engine.py)
    trl-full, trl-lora, trl-qlora    the learner next to TRL's GRPOTrainer on the same batch (trl_learner.py)

`--device cpu` runs the same rows on processors, without a limit for all of them, and `--short` in small: short
conversations, and speeds are shown but not judged. Neither says anything of a GPU.

Exit codes: 0 every row that ran met its bar, 1 one missed it or failed, 2 usage, 5 no row ran, as without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run

ROOT = Path(__file__).resolve().parents[1]
GIB = 1 << 30
MEMORY_BAR, TRL_BAR, KL_BAR = 0.15, 1.5, 0.01
BUDGET = 585
"""Seconds of all rows on a GPU."""
CPU_FACTOR = 20
"""Time limits on a CPU as a multiple of those on a GPU."""
RECIPE = {
    "lora_rank": 16,
    "packing": True,
    "rollouts_per_task": 4,
    "keep": 4,
    "tasks_per_step": 2,
    "selector": "uniform",
}
TRL = "TRL is not installed: see the first lines of benchmarks/trl_learner.py"


class RowError(Exception):
    """A row that failed; the message has the reason."""


class NotRunError(Exception):
    """A row that this machine cannot run; the message names what is missing."""


class Seen(NamedTuple):
    """Figures of a row in words and in full, and if they met its bar; None if it is not judged."""

    text: str
    figures: Mapping[str, Any]
    met: bool | None


@dataclass(frozen=True)
class Result:
    row: str
    outcome: Literal["met", "missed", "failed", "shown", "not run"]
    seen: str
    seconds: float = 0.0
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Setting:
    """Model, device and sizes of a run, with the moment at which the current row has to end."""

    base: Path
    name: str
    data: Path
    device: str
    short: bool
    deadline: float = 0.0

    @property
    def tokens(self) -> int:
        return 64 if self.short else 512

    def recipe(self, method: str) -> dict[str, Any]:
        half = {"precision": "bfloat16"} if self.device == "cuda" else {}
        name, _, offload = method.partition("-")
        moved = {"gradient_checkpointing": True, "offload": "both"} if offload else {}
        return RECIPE | half | moved | {"method": name, "micro_batch_tokens": 2 * self.tokens}

    def plan(self, method: str, engine: str = "torch", rows: int = 8, tokens: int = 0) -> dict[str, Any]:
        """Returns what `assay plan` computes for a way of training and `rows` conversations. Raises NotRunError if it
        does not fit here."""
        given = {f"RECIPE__TRAINING__{key.upper()}": value for key, value in self.recipe(method).items()}
        given |= {"RECIPE__AGENT__MAX_TOKENS": tokens or self.tokens, "RECIPE__AGENT__CONCURRENT": rows}
        given |= {"MODEL__ENGINE": engine}
        chosen = {f"ASSAY_{key}": json.dumps(value).strip('"') for key, value in given.items()}
        planned: dict[str, Any] = assay("plan", self.name, data=self.data, settings=chosen, codes=(0, 1))["configured"]
        if not planned["fits"]:
            needed, there = planned["needed"] / GIB, planned["available"] / GIB
            raise NotRunError(f"does not fit: assay plan needs {needed:.1f} GiB, and {there:.1f} are there")
        return planned

    def part(self, name: str, **given: Any) -> dict[str, Any]:
        """Returns the figures of a measurement of `pretrained_parts` in a process of its own."""
        written = json.dumps({"base": str(self.base), "device": self.device} | given)
        found: dict[str, Any] = json.loads(
            self.run("-m", "benchmarks.pretrained_parts", name, written).splitlines()[-1]
        )
        return found

    def script(self, name: str, *arguments: str) -> dict[str, Any]:
        """Returns the figures of another benchmark, which may miss its own bar."""
        with tempfile.TemporaryDirectory(prefix="assay-figures-") as folder:
            file = Path(folder) / "run.json"
            given = ["--model", str(self.base), "--device", self.device, "--json", str(file)]
            self.run("-m", f"benchmarks.{name}", *given, *arguments, codes=(0, 1), writes=file)
            figures: dict[str, Any] = json.loads(file.read_text())["figures"]
        return figures

    def run(self, *command: str, codes: tuple[int, ...] = (0,), writes: Path | None = None) -> str:
        """Runs a Python process until the row's deadline and returns its output. Raises RowError, with the last line of
        its messages."""
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as messages:
            process = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, stdout=output, stderr=messages, start_new_session=True
            )
            try:
                code = process.wait(max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                raise RowError("stopped at its time limit") from error
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            if code not in codes or (writes is not None and not writes.exists()):
                messages.seek(0)
                said = [line.strip() for line in messages if line.strip()]
                raise RowError(f"exit code {code}: {said[-1] if said else 'no message'}"[:400])
            output.seek(0)
            return output.read()


def train(setting: Setting, method: str) -> Seen:
    """Row of a way of training: proofs of its pushes, and its memory next to the plan's."""
    phases = (planned := setting.plan(method))["phases"]
    with tempfile.TemporaryDirectory(prefix="assay-checkpoints-") as kept:
        given = {"checkpoints": kept, "recipe": setting.recipe(method), "tokens": setting.tokens}
        given["sampled"] = setting.tokens // 8
        step = setting.part("learn", **given, resume=False)
        resumed = setting.part("learn", **given, resume=True)
    if (step["digest"], step["base"]) != (resumed["digest"], resumed["base"]):
        raise RowError(f"resumed with weights {resumed['digest'][:12]}, and {step['digest'][:12]} were saved")
    expected = {
        "step": max(phases[name] for name in ("loading", "sampling", "training", "pushing") if name in phases),
        # On a GPU the plan has no such phase: what fits a step has to be enough.
        "resume": max(phases.get("loading", 0), phases.get("resuming", phases["training"])),
    }
    off = {name: one["peak"] / expected[name] - 1 for name, one in (("step", step), ("resume", resumed))}
    if (apart := step["steps"][0]["mismatch_kl"]) > KL_BAR:
        raise RowError(f"learner and engine differ by {apart:.1e} nats a token; {KL_BAR} are allowed")
    judged = dict(off) if "resuming" in phases else {"step": off["step"], "resume": max(0.0, off["resume"])}
    text = ", ".join(
        f"{name} {one['peak'] / GIB:.2f} GiB of {expected[name] / GIB:.2f} ({100 * off[name]:+.1f} %)"
        for name, one in (("step", step), ("resume", resumed))
    )
    text += f"; proved: {step['digest'][:12]}, also after the resume; push {step['seconds_of_push']:.2f} s, "
    text += f"{step['steps'][1]['tokens'] / step['steps'][1]['seconds']:.0f} tokens trained a second, {apart:.1e} nats"
    figures = {"planned": {"phases": phases, "parts": planned["parts"]}, "step": step, "resume": resumed, "off": off}
    return Seen(text, figures, all(abs(one) <= MEMORY_BAR for one in judged.values()))


def speeds(setting: Setting, found: Mapping[str, Any]) -> tuple[str, bool | None]:
    """Returns a comparison with `generate` in words, and if it met its bars."""
    rollouts, tokens = found["rollouts a second"], found["tokens a second"]
    text = (
        f"rollouts {rollouts['ratio']:.2f} times generate's (bar {rollouts['bar']:g}), tokens {tokens['ratio']:.2f} "
        f"(bar {tokens['bar']:g}): {tokens['engine']:.0f} and {tokens['generate']:.0f} a second"
    )
    return text, None if setting.short else rollouts["met"] and tokens["met"]


def torch_rows(setting: Setting) -> Seen:
    """Row of the torch engine next to `generate`."""
    size = ["--rows", "4", "--contexts", "32", "--repeats", "1"] if setting.short else ["--contexts", "64"]
    found = setting.script("torch_engine", *size, *([] if setting.short else ["--repeats", "2"]))
    (context,) = (value for name, value in found.items() if name.startswith("context "))
    text, met = speeds(setting, context)
    return Seen(text, found, met)


def vllm_rows(setting: Setting) -> Seen:
    """Row of vLLM with whole weights: proofs, memory and speed."""
    size = {"rows": 4, "context": 32, "repeats": 1} if setting.short else {"rows": 64, "context": 64, "repeats": 2}
    planned = setting.plan("lora", "vllm", size["rows"], size["context"] + 360)  # as torch_engine's rollouts
    share = planned["vllm"]["memory_share"] if setting.device == "cuda" else None
    found = setting.part("vllm_full", **size, share=share)
    expected = share * found["total"] if share else planned["parts"]["engine"]
    text, met = speeds(setting, found)
    text += f"; push {found['seconds_of_push']:.2f} s for {found['gb']:.2f} GB, {_proved(found)}"
    text += f"; {found['memory'] / GIB:.2f} GiB of {expected / GIB:.2f} planned"
    return Seen(text, found | {"planned": expected}, met)


def vllm_adapter(setting: Setting) -> Seen:
    """Row of vLLM with an adapter."""
    found = setting.part("vllm_lora", share=_share(setting))
    rate = f"{found['tokens_a_second']:.0f} tokens a second"
    return Seen(f"push {found['seconds_of_push']:.2f} s, {_proved(found)}, {rate}", found, True)


def vllm_asleep(setting: Setting) -> Seen:
    """Row of vLLM with CUDA graphs, IPC and sleep."""
    found = setting.part("vllm_sleep", share=_share(setting))
    text = f"sleep frees {found['freed'] / GIB:.1f} GiB, push {found['seconds_of_push']:.2f} s, {_proved(found)}, "
    return Seen(text + f"{'the same' if found['same_scores'] else 'OTHER'} scores", found, found["same_scores"])


def vllm_fp8(setting: Setting) -> Seen:
    """Row of vLLM with weights in 8 bits, next to those in bfloat16."""
    share = _share(setting)
    plain, small = (setting.part("vllm_lora", share=share, fp8=fp8) for fp8 in (False, True))
    text = f"KV cache of {small['cached']} tokens, {plain['cached']} beside bfloat16; {_proved(small)}, "
    text += f"{small['tokens_a_second'] / plain['tokens_a_second']:.2f} times the tokens a second"
    return Seen(text, {"bfloat16": plain, "fp8": small}, small["cached"] > plain["cached"])


def _proved(found: Mapping[str, Any]) -> str:
    return f"proved: {found['digest'][:12]}, {found['difference']:.1e} nats from the trainer"


def _share(setting: Setting) -> float | None:
    return setting.plan("lora", "vllm")["vllm"]["memory_share"] if setting.device == "cuda" else None


def beside_trl(setting: Setting, method: str) -> Seen:
    """Row of the learner next to TRL's."""
    if find_spec("trl") is None:
        raise NotRunError(TRL)
    size = ["--short", "--rounds", "1"] if setting.short else ["--rounds", "3"]
    found = setting.script("trl_learner", "--method", method, *size)
    rates, ratios = found["tokens_a_second"], found["times_trl"]
    text = ", ".join(f"{name} {rate} tokens a second" + _times(name, ratios) for name, rate in rates.items())
    return Seen(text, found, None if setting.short else ratios["packed"][1] >= TRL_BAR)


def _times(name: str, ratios: Mapping[str, Any]) -> str:
    return "" if name.startswith("trl") else f" ({ratios[name][1]:.2f} times)"


class Row(NamedTuple):
    name: str
    shows: str
    seconds: int
    """Time limit on a GPU."""
    measure: Callable[[Setting], Seen]
    gpu_only: bool = False


def ways(prefix: str, shows: str, seconds: int, measure: Callable[[Setting, str], Seen]) -> list[Row]:
    """Returns one row for each way of training."""
    return [
        Row(prefix + method, shows.format(method), seconds, lambda setting, method=method: measure(setting, method))
        for method in ("full", "lora", "qlora")
    ]


ROWS = (
    *ways("", "{}: proved pushes, a resume with equal weights, memory within 15 % of assay plan", 70, train),
    Row("vllm", "vLLM: proved pushes, 3 times generate's rollouts and 1.25 times its tokens", 150, vllm_rows),
    Row("vllm-lora", "vLLM: adapters pushed and proved", 90, vllm_adapter),
    Row("engine", "torch engine: 3 times generate's rollouts and 1.25 times its tokens", 130, torch_rows),
    *ways("trl-", "{}: learner with 1.5 times the trained tokens a second of TRL", 75, beside_trl),
    Row("vllm-sleep", "vLLM: CUDA graphs, IPC and sleep at level 2, woken by a proved push", 90, vllm_asleep, True),
    Row("vllm-fp8", "vLLM: proved pushes beside FP8 weights, which leave more for the KV cache", 120, vllm_fp8, True),
    Row(
        "full-offload",
        "full: as row full, with inputs of layers and moments in main memory",
        90,
        lambda setting: train(setting, "full-offload"),
        True,
    ),
)


def result_of(row: Row, setting: Setting, left: float) -> Result:
    """Runs a row in at most `left` seconds; any error is its result."""
    if row.gpu_only and setting.device == "cpu":
        return Result(row.name, "not run", f"needs a GPU; would show: {row.shows}")
    if left < 1:
        return Result(row.name, "failed", f"no time was left; run it with --only {row.name}")
    started = time.monotonic()
    setting.deadline = started + left
    try:
        seen = row.measure(setting)
    except NotRunError as error:
        return Result(row.name, "not run", f"{error}; would show: {row.shows}")
    except (RowError, KeyError, ValueError) as error:
        return Result(row.name, "failed", f"{error}" if isinstance(error, RowError) else f"{error!r}")
    outcome: Literal["met", "missed", "shown"] = "shown" if seen.met is None else "met" if seen.met else "missed"
    return Result(row.name, outcome, seen.text, time.monotonic() - started, seen.figures)


def assay(
    *arguments: str, data: Path, settings: Mapping[str, str] | None = None, codes: tuple[int, ...] = (0,)
) -> dict[str, Any]:
    """Returns the JSON of a command. Raises NotRunError with its message."""
    program = Path(sys.executable).with_name("assay")
    command = [str(program), *arguments, "--data", str(data), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | (settings or {}))
    if done.returncode not in codes:
        raise NotRunError(f"assay {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def gpu_name() -> str:
    """Returns the name of the first GPU; empty without one that torch can use. Creates no CUDA context here."""
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def run_rows(source: str, chosen: list[Row], device: str, *, short: bool) -> tuple[dict[str, Any], list[Result]]:
    """Imports the model and runs the rows; shows each as it ends. Raises NotRunError without the model."""
    with tempfile.TemporaryDirectory(prefix="assay-pretrained-") as temporary:
        base = assay("model", "import", source, data=Path(temporary) / "data")
        ends = time.monotonic() + BUDGET if device == "cuda" else float("inf")
        setting = Setting(Path(base["folder"]), base["name"], Path(temporary) / "data", device, short)
        results = []
        for row in chosen:
            limit = row.seconds * (CPU_FACTOR if device == "cpu" else 1)
            results.append(result_of(row, setting, min(limit, ends - time.monotonic())))
            show(results[-1])
    return {name: base[name] for name in ("name", "digest", "parameters")}, results


def main() -> None:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", default="smollm2")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--short", action="store_true", help="small sizes; speeds are not judged")
    parser.add_argument("--only", nargs="+", metavar="ROW", choices=names, default=names, help=", ".join(names))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    chosen = [row for row in ROWS if row.name in given.only]
    name = gpu_name() if given.device == "cuda" else "no GPU"
    if not name:
        for row in chosen:
            show(Result(row.name, "not run", f"no GPU; would show: {row.shows}"))
        print(
            "no GPU that torch can use: run this on a machine with one, or pass --device cpu --short", file=sys.stderr
        )
        sys.exit(5)
    try:
        model, results = run_rows(given.source, chosen, given.device, short=given.short)
    except NotRunError as error:
        print(error, file=sys.stderr)
        sys.exit(5)
    ran = [one for one in results if one.outcome != "not run"]
    bad = sum(one.outcome in ("missed", "failed") for one in ran)
    print(f"{len(ran)} of {len(results)} rows ran, {bad} missed a bar or failed")
    figures = {"model": model, "device": given.device, "gpu": name, "short": given.short}
    write_run(figures | {"rows": [vars(one) for one in results]}, given.json)
    sys.exit(exit_code(results))


def show(one: Result) -> None:
    print(f"{one.row:10}  {one.outcome:7}  {one.seconds:5.0f} s  {one.seen}", flush=True)


def exit_code(results: list[Result]) -> int:
    """Returns 5 if no row ran, 1 if one missed its bar or failed, else 0."""
    ran = [one.outcome for one in results if one.outcome != "not run"]
    return 5 if not ran else int("missed" in ran or "failed" in ran)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a row's processes end as well
    main()
