"""A night over mixed tasksets on a chat-format model: it learns where it can, and says by taskset what it could not.

    python benchmarks/mixed_night.py [--short] [--data FOLDER] [--taught FOLDER] [--json FILE]

Makes a small Qwen3 with random weights, Qwen3's special tokens, chat template and call format, and teaches it on
demonstrations of one family of problems for a calculator, and of nothing else. Then a real daemon with its worker and
the engine `torch` has a night from it over six tasksets: that family, programs, a puzzle, mailboxes (an environment
with a world), problems of the owner's that were added with `assay curriculum add`, and theorems, which need a Lean that
most machines lack. At the end `assay cycle show` says by taskset what was learned from and why the rest was not.
`--short` is a smaller model, taught for a few steps, and a night of two: it shows that everything runs, and nothing
about learning.

Bar: the night ends, the family that it was taught is learned from and gains on the sealed questions, and everything
that was not learned from has a reason. `--data` keeps the taught model in `taught`, and the same command begins from it
again; `--taught` begins from one of another run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import chat_night

from appliance.agent.budget import AgentBudget
from appliance.learning.recipe import Recipe
from appliance.rendering.tools import offered
from curriculum.registry import make_draft

ASSAY = (sys.executable, "-I", "-m", "appliance.cli.main")
TAUGHT = "arithmetic"
OWN = "own/till"
MIX = (TAUGHT, "programs", "knights", "mail_search", OWN, "theorems")
TOKENS = 768
FULL = {
    "hidden": 128,
    "layers": 3,
    "entries": 1200,
    "demonstrations": 8000,
    "teaching": 1000,
    "batch": 32,
    "steps": 32,
    "tasks": 16,
    "rollouts": 16,
    "sealed": 240,
    "unsolvable": 16,
    "watched": 32,
    "rows": 300,
}
SHORT = FULL | {
    "hidden": 64,
    "layers": 2,
    "demonstrations": 64,
    "teaching": 4,
    "batch": 8,
    "steps": 2,
    "tasks": 6,
    "rollouts": 4,
    "sealed": 12,
    "unsolvable": 4,
    "watched": 4,
    "rows": 60,
}
SHOPS = (
    *("bakery", "library", "pharmacy", "butcher", "florist", "cinema", "museum", "garage", "theatre", "kiosk"),
    *("bookshop", "hotel", "canteen", "ferry", "stadium", "hospital", "market", "brewery", "dairy", "tailor"),
)
TOWNS = (
    *("Lisbon", "Graz", "Oslo", "Turin", "Porto", "Lyon", "Ghent", "Cork", "Bergen", "Malmo", "Tartu", "Riga"),
    *("Split", "Varna", "Brno", "Linz", "Bonn", "Arles", "Leeds", "Bath", "Nice", "Pisa", "Kiel", "Ulm"),
)
FINISHED = frozenset({"learned", "always solved"})


def own_rows(count: int) -> list[dict[str, str]]:
    """Problems of an owner's, near what the model was taught. Each has words of its own: one that had only other
    numbers than a sealed one would be its copy."""
    rng, rows = Random(1), []
    for _ in range(count):
        a, b = rng.randint(100, 999), rng.randint(2, 99)
        place = f"{rng.choice(SHOPS)} in {rng.choice(TOWNS)}"
        rows.append({"question": f"the till of the {place}, {a} plus {b}?", "answer": str(a + b)})
    return rows


def told() -> tuple[str, ...]:
    """What the model will read of the other tasksets, so that its tokenizer has their words."""
    plain = chat_night.wordy()
    drafts = [
        make_draft(name, level, seed)
        for name in MIX
        if name not in (OWN, TAUGHT)
        for level in range(3)
        for seed in range(20)
    ]
    read = [plain.prompt(draft.messages, offered(draft.environment, draft.tools, draft.world)) for draft in drafts]
    return tuple(plain.text(ids) for ids in (*read, *(plain.question(row["question"]) for row in own_rows(60))))


def settings_of(data: Path, model: Path, size: Mapping[str, int]) -> dict[str, str]:
    """The environment of the daemon and of the commands."""
    chosen: dict[str, Any] = {
        "DATA": data,
        "MODEL__PATH": model,
        "SCHEDULE__ENABLED": "false",
        "AUDIT__HEAD": data.parent / "head",
        "RECIPE__TRAINING__STEPS": size["steps"],
        "RECIPE__TRAINING__TASKS_PER_STEP": size["tasks"],
        "RECIPE__TRAINING__ROLLOUTS_PER_TASK": size["rollouts"],
        "RECIPE__TRAINING__KEEP": size["rollouts"] // 2,
        "RECIPE__TRAINING__REFILLS": 0,
        "RECIPE__TRAINING__WATCH_EVERY": size["steps"],
        "RECIPE__TRAINING__WATCH_ITEMS": size["watched"],
        "RECIPE__TRAINING__WATCH_DROP": 1,
        "RECIPE__TRAINING__CHECKPOINT_EVERY": size["steps"],
        "RECIPE__TRAINING__DIFFICULTY": "adaptive",
        "RECIPE__TRAINING__PACKING": "true",
        "RECIPE__TRAINING__LEARNING_RATE": 2e-4,
        "RECIPE__AGENT__MAX_TOKENS": TOKENS,
        "RECIPE__AGENT__CONCURRENT": 64,
        "RECIPE__EVALUATION__SEALED_ITEMS": size["sealed"],
        "RECIPE__EVALUATION__UNSOLVABLE_ITEMS": size["unsolvable"],
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_C", "XDG_D"))}
    return {
        **kept,
        "XDG_CONFIG_HOME": str(data.parent / "config"),
        **{f"ASSAY_{name}": str(value) for name, value in chosen.items()},
    }


def asked(environ: Mapping[str, str], *arguments: str, may_end_with: tuple[int, ...] = (0,)) -> str:
    """What a command says. Raises RuntimeError where it ends with another code."""
    done = subprocess.run([*ASSAY, *arguments], env=environ, capture_output=True, text=True, check=False)
    if done.returncode not in may_end_with:
        raise RuntimeError(f"assay {' '.join(arguments)} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def night(data: Path, model: Path, size: Mapping[str, int]) -> dict[str, Any]:
    """Runs one, and gives what `assay cycle show` says of it."""
    environ = settings_of(data, model, size)
    config = Path(environ["XDG_CONFIG_HOME"]) / "assay" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[recipe]\ntasksets = {json.dumps(MIX)}\n")
    rows = data.parent / "till.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in own_rows(size["rows"])))
    with (data.parent / "serve.log").open("wb") as log:
        daemon = subprocess.Popen([*ASSAY, "serve"], env=environ, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 300
            while not _answers(environ):
                if daemon.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the daemon did not start: {(data.parent / 'serve.log').read_text()[-2000:]}")
                time.sleep(0.2)
            print(asked(environ, "curriculum", "add", str(rows), "--name", "till").splitlines()[-1], flush=True)
            asked(environ, "curriculum", "certify", OWN)
            asked(environ, "cycle", "start", "--seed", "0")
            with subprocess.Popen([*ASSAY, "cycle", "watch"], env=environ) as watching:
                watching.wait()
            print(asked(environ, "cycle", "show"), flush=True)
            return dict(json.loads(asked(environ, "cycle", "show", "--json")))
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(120)


def _answers(environ: Mapping[str, str]) -> bool:
    return subprocess.run([*ASSAY, "status"], env=environ, capture_output=True, check=False).returncode == 0


def faults_of(found: Mapping[str, Any], *, short: bool) -> list[str]:
    """What does not meet its bar."""
    faults = [] if found["cycle"]["state"] == "done" else [f"the cycle is {found['cycle']['state']}"]
    rows = {row["name"]: row for row in found["tasksets"]}
    faults += [f"nothing is said of {name}" for name in MIX if name not in rows]
    faults += [
        f"{name} has no reason" for name, row in rows.items() if row["state"] not in FINISHED and not row["reason"]
    ]
    taught = rows.get(TAUGHT, {})
    if not short and taught.get("state") != "learned":
        faults.append(f"{TAUGHT} was not learned from")
    if not short and taught.get("candidate", 0) <= taught.get("champion", 0):
        faults.append(f"{TAUGHT} gained nothing on the sealed questions")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--taught", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.taught is not None and not (given.taught / "model.safetensors").is_file():
        parser.error(f"{given.taught} holds no taught model; name the folder `taught` of an earlier run's --data")
    size = SHORT if given.short else FULL
    folder = Path(tempfile.mkdtemp(prefix="assay-m-")) if given.data is None else given.data.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(agent=AgentBudget(max_tokens=TOKENS))
    started = time.monotonic()
    model = (
        given.taught.resolve() if given.taught else chat_night.teach(folder, size, recipe, (TAUGHT,), told(), rate=3e-3)
    )
    taught = time.monotonic()
    shutil.rmtree(folder / "night", ignore_errors=True)
    (folder / "night").mkdir()
    found = night(folder / "night" / "data", model, size)
    report = {"teaching_seconds": taught - started, "night_seconds": time.monotonic() - taught, **found}
    if given.json:
        given.json.write_text(json.dumps(report, indent=1) + "\n")
    faults = faults_of(found, short=given.short)
    print(f"teaching {taught - started:.0f} s, the night {time.monotonic() - taught:.0f} s")
    print(*faults, sep="\n", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
