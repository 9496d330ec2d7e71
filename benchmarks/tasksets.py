"""What must hold of every taskset: the bars of a certification, measured at build, and how fast it makes tasks.

    python benchmarks/tasksets.py [--seeds 200] [--short] [--only NAME ...] [--record] [--json FILE]
    python benchmarks/tasksets.py --summaries
    python benchmarks/tasksets.py --reading --seeds 20    # of the tasksets that search and read
    nice -n 10 python benchmarks/tasksets.py --cards [--seeds 200] [--tried 10] [--only NAME ...]
    nice -n 19 python benchmarks/tasksets.py --conducted [--journal FILE] [--record]    # what a sandbox decides; root

For each taskset, over that many seeds of each level, what `curriculum.certification` tries: the share of reference
answers that pass their own check (bar: all), and of tasks that an agent passes which does no work (bar: at most 2 %, or
chance); then the share of different questions among the drawn, and the mean length of question and answer, which says
how levels grow. Drafts a second are by processor time, on one core: of all levels (bar: 2,000 for the plain ones), and
of the slowest level (bar: 10 for those of `TRIED`). `--short` takes 10 seeds.

`--conducted` takes those that a sandbox or Lean has to decide, and those that have worlds, which are then tried, too;
the others are left out, and these without it. With `--journal` each verdict is put down, and a run that was stopped
goes on where it was when the same command is given again. `--record` writes what each taskset that holds makes into
`curriculum/certification/certified.json`: it then ships as certified; and what `assay curriculum ls` says of each into
`curriculum/taskset_summaries.json`. `--summaries` writes that one alone, in seconds; it keeps the cards of tasksets
with the same version, and drops the others. `--cards` measures the cards (`cards.py`), with so many drafts of each
topic and level to guess and to try scripts on, and writes them there. Bars: in `hard_mathematics` a guess is right for
2 % of a topic, and scripts solve 10 % of the top level.

`--reading` plays the oracle of each taskset in `READERS` in its worlds, here: by level, the median of the tokens (four
characters each) that its reading tools show on the way to the answer and of its calls, and the share of answers that
pass, of the oracle and of an agent with the null answers (bars: 40,000 tokens at the top, 95 %, 2 %).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.own_texts import OwnTexts
from benchmarks.record import write_run
from curriculum.certification.certificate import Certificate
from curriculum.certification.certify import REFERENCE, certify
from curriculum.certification.worlds import tried_in
from curriculum.contract.taskset import TaskDraft, Taskset
from curriculum.environments import ENVIRONMENTS
from curriculum.environments.mail.oracle import MailOracle
from curriculum.environments.research.oracle import ResearchOracle
from curriculum.names import PLACES
from curriculum.registry import BUILT_IN, TASKSETS, make_draft
from curriculum.summary import summary_of
from curriculum.taskset_summary import FIGURES, CardPlace, TasksetSummary, as_shipped, shipped_card, shipped_summaries
from verifiers.contract.verdict import Verdict
from verifiers.registry import decide, is_decided
from verifiers.registry.spec import Spec

FILE = Path(__file__).resolve().parents[1] / "curriculum" / "certification" / "certified.json"
SUMMARIES = FILE.parents[1] / "taskset_summaries.json"
RATE, TRIED_RATE = 2_000, 10
GUESSED, SOLVED = 0.02, 0.10
"""Of a topic of hard mathematics by a constant, and of its top level by scripts."""
TRIED = frozenset(
    (
        *("composed_problems", "composed_by_hand"),
        *("assignments", "grids", "knights", "propositions", "colourings", "shortest_ways", "hidden_rules"),
        *("programs", "program_repair", "program_completion", "program_translation"),
        *("program_tracing", "program_theorems"),
        *(f"contest_{of}" for of in ("arrays", "choices", "words", "trees", "graphs", "numbers")),
        "regular_expressions",
        *("research", "mail_search", "terminal_repairs", "data_reports", "published_servers"),
    )
)
"""Made by trying: chains of steps until all of them fit, all orders or fillings until one answer is left, a search with
the rules, programs that are run with their mutants, or yearbooks and threads until all of them matter.
benchmarks/README.md argues for each."""
AT_LEAST_SECONDS = 0.1
Call = Callable[[str, Mapping[str, Any]], str]
READERS: dict[str, Callable[[TaskDraft, Call], str]] = {
    "research": lambda draft, call: ResearchOracle(call).value(draft.world["phrases"][0]).text,
    "mail_search": lambda draft, call: MailOracle(call).answer(draft.messages[0].text),
}
LONG, ANSWERED, GUESSED = 40_000, 0.95, 0.02


def drafts(name: str, level: int, seeds: int) -> list[TaskDraft]:
    return [make_draft(name, level, seed) for seed in range(seeds)]


def rates(taskset: Taskset) -> list[float]:
    """Drafts a second of processor time, by level."""
    found = []
    for level in range(taskset.level_count):
        rng, count, started = Random(level), 0, time.process_time()
        while (took := time.process_time() - started) < AT_LEAST_SECONDS:
            taskset.draft(level, rng)
            count += 1
        found.append(count / took)
    return found


def in_process(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
    """Decides texts here: what is judged is our own."""
    return [decide(spec, answer) for spec, answer in pairs]


def measured(name: str, seeds: int, every: list[list[TaskDraft]], judge: OwnTexts | None) -> dict[str, Any]:
    """`judge` has what it takes to conduct a check, and to open worlds; without it, all is decided here."""
    taskset = TASKSETS[name]
    by_level = rates(taskset)
    worlds = tried_in(ENVIRONMENTS, judge.pool) if judge is not None else None
    return {
        "name": name,
        "distinct": min(len({draft.key for draft in made}) / seeds for made in every),
        "characters": [sum(len(one.messages[-1].text) + len(one.answer) for one in made) / seeds for made in every],
        "drafts_a_second": len(by_level) / sum(1 / one for one in by_level),
        "slowest_level": min(by_level),
        "certificate": certify(BUILT_IN, name, judge or in_process, seeds=seeds, worlds=worlds),
    }


def read(draft: TaskDraft, answer: Callable[[TaskDraft, Call], str]) -> tuple[int, int, bool]:
    """Tokens that an oracle reads in a world of its own, its calls, and True if its answer passes."""
    environment, shown, calls = ENVIRONMENTS[draft.environment], 0, 0
    names: dict[str, Any] = {"SETUP": dict(draft.world), "ToolError": ValueError, "__name__": "world"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, data in environment.files(draft.world).items():
            Path(name).write_bytes(data)
        exec(compile(environment.program, environment.name, "exec"), names)

    def call(tool: str, arguments: Mapping[str, Any]) -> str:
        nonlocal shown, calls
        text = str(names["call"](tool, arguments))
        calls += 1
        shown += len(text) if tool.startswith("read") else 0
        return text

    try:
        found = answer(draft, call)
    except LookupError:
        found = ""
    return shown // 4, calls, decide(draft.spec, found).passed


def reading(name: str, seeds: int) -> tuple[list[dict[str, Any]], list[str]]:
    """What is read for the answers of one taskset, by level, and what does not meet its bar."""
    rows, missed = [], []
    taskset = TASKSETS[name]
    for level in range(taskset.level_count):
        made = drafts(name, level, seeds)
        played = [read(draft, READERS[name]) for draft in made]
        idle = sum(any(decide(draft.spec, text).passed for text in taskset.null_answers) for draft in made)
        oracle, null = sum(passed for _, _, passed in played) / seeds, idle / seeds
        tokens, calls = (statistics.median(one[at] for one in played) for at in (0, 1))
        rows.append({"name": name, "level": level, "tokens": tokens, "calls": calls, "oracle": oracle, "null": null})
        said = f"{tokens:,.0f} tokens in {calls:.0f} calls, oracle {oracle:.1%}, null {null:.1%}"
        print(f"{name} level {level}: {said}", flush=True)
        if oracle < ANSWERED or null > GUESSED:
            missed.append(f"{name} level {level}: {said}")
    if tokens < LONG:
        missed.append(f"{name}: {tokens:,.0f} tokens at the top, of {LONG:,}")
    return rows, missed


def processor_seconds() -> float:
    """Of this process, and of those that it started and that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def said(name: str, text: str) -> None:
    print(f"{name}: {text}", file=sys.stderr, flush=True)


def shown(row: dict[str, Any]) -> str:
    found: Certificate = row["certificate"]
    checked = "nothing was checked"
    if found.agents:
        idle = {name: one for name, one in found.agents.items() if name != REFERENCE}
        worst = max(idle, key=lambda name: idle[name].rate)
        chance = f" (chance {idle[worst].chance:.1%})" if idle[worst].chance else ""
        checked = f"references {found.agents[REFERENCE].rate:7.2%}  {worst} {idle[worst].rate:.2%}{chance}"
    lengths = " ".join(f"{one:.0f}" for one in row["characters"])
    return (
        f"{row['name']:26} {row['drafts_a_second']:8.0f}/s, slowest level {row['slowest_level']:6.0f}/s  {checked:44}"
        f"  distinct at least {row['distinct']:4.0%}  characters {lengths}  {row['processor_seconds']:.0f} s"
    )


def below_bars(row: dict[str, Any]) -> list[str]:
    """What does not meet its bar, in sentences."""
    rate, bar = (row["slowest_level"], TRIED_RATE) if row["name"] in TRIED else (row["drafts_a_second"], RATE)
    found = [f"{row['name']}: {rate:.0f} drafts a second, of {bar}"] if rate < bar else []
    certificate: Certificate = row["certificate"]
    return found + [f"{row['name']}: {fault}" for fault in certificate.faults]


def record(rows: Sequence[dict[str, Any]]) -> None:
    """Puts down what holds: what a taskset makes, by its name."""
    known = json.loads(FILE.read_text())  # another run may have put something down meanwhile
    for row in rows:
        found: Certificate = row["certificate"]
        if found.holds:
            known[found.taskset] = found.made
    FILE.write_text(json.dumps({name: known[name] for name in sorted(known)}, indent=1) + "\n")


def write_summaries(
    summaries: Iterable[TasksetSummary] | None = None, cards: Mapping[str, Sequence[CardPlace]] | None = None
) -> None:
    """With these cards, and the known ones of the others."""
    made = list(summaries or (summary_of(BUILT_IN, name) for name in TASKSETS))
    known = {one.name: shipped_card(one.name, one.version) for one in made}
    SUMMARIES.write_text(as_shipped(made, {**known, **(cards or {})}))


def write_cards(names: Sequence[str], seeds: int, tried: int) -> list[str]:
    """Measures and writes the cards of these tasksets; returns what does not meet its bar, in sentences."""
    from benchmarks.cards import card_of

    missed = []
    for name in names:
        before, card = processor_seconds(), card_of(name, seeds, tried)
        write_summaries(shipped_summaries().values(), {name: card})
        said(name, f"{processor_seconds() - before:.0f} s")
        for level in range(TASKSETS[name].level_count):
            print(name, level, *(f"{one} {share(card, level, one)}" for one in FIGURES), flush=True)
        if name in PLACES["hard_mathematics"]:
            guessed = max(mean(by_topic(card, topic)) for topic in TASKSETS[name].topics)
            missed += [f"{name}: the best guess is right for {guessed:.1%} of a topic"] if guessed > GUESSED else []
            top = [max(one.one_line or 0, one.brute_force or 0) for one in card if one.level == card[-1].level]
            missed += [f"{name}: scripts solve {mean(top):.0%} of the top level"] if mean(top) > SOLVED else []
    return missed


def by_topic(card: Sequence[CardPlace], topic: str) -> list[float]:
    return [one.guess or 0.0 for one in card if one.topic == topic]


def share(card: Sequence[CardPlace], level: int, figure: str) -> str:
    """The mean over a level's topics for which the figure is measured."""
    found = [value for one in card if one.level == level and (value := getattr(one, figure)) is not None]
    return f"{mean(found):.3g}" if found else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", nargs="+", choices=sorted(TASKSETS), metavar="NAME")
    parser.add_argument("--conducted", action="store_true")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--summaries", action="store_true")
    parser.add_argument("--reading", action="store_true")
    parser.add_argument("--cards", action="store_true")
    parser.add_argument("--tried", type=int, default=10)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.summaries:
        write_summaries()
        return 0
    seeds = 10 if asked.short else asked.seeds
    if asked.cards:
        faults = write_cards(asked.only or list(TASKSETS), seeds, asked.tried)
        print(*faults, sep="\n", file=sys.stderr)
        return int(bool(faults))
    rows: list[dict[str, Any]] = []
    missed: list[str] = []
    if asked.reading:
        for name in READERS:
            if name in (asked.only or READERS):
                more, below = reading(name, seeds)
                rows += more
                missed += below
        print(*missed, sep="\n", file=sys.stderr)
        write_run(rows, asked.json)
        return int(bool(missed))
    for name in asked.only or TASKSETS:
        before = processor_seconds()
        every = [drafts(name, level, seeds) for level in range(TASKSETS[name].level_count)]
        here = all(is_decided(draft.spec) and draft.environment not in ENVIRONMENTS for made in every for draft in made)
        if here is asked.conducted:
            continue
        if why := TASKSETS[name].missing():
            missed.append(f"{name} is left out: {why}")
            continue
        if here:
            row = measured(name, seeds, every, None)
        else:
            with OwnTexts(asked.journal, partial(said, name)) as judge:
                row = measured(name, seeds, every, judge)
        row["processor_seconds"] = processor_seconds() - before
        rows.append(row)
        missed += below_bars(row)
        print(shown(row), flush=True)
        if asked.record:
            record([row])
    if asked.record:
        write_summaries()
    print(*missed, sep="\n", file=sys.stderr)
    found = [row | {"certificate": row["certificate"].model_dump()} for row in rows]
    write_run(found, asked.json)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
