"""Planted contamination, and clean texts: how many copies of sealed questions are stopped, how many others are.

    python benchmarks/separation.py [--sealed 800] [--each 2000] [--short] [--json FILE]

A sealed set over all tasksets is made, and copies of its questions are planted, `--each` of every sort: exact (with
other blanks, capitals and marks), reworded (synonyms for four in five of the words that the table below has,
sentences in another order, a preamble), with other numbers, with one word changed, and in the middle of what a tool
gave back, as it is and with one word changed. Each is offered at the door for what somebody wrote, or at that for
results of tools. Clean are: tasks that the same tasksets generate for training, at the door of streams; the same as
results of tools, each in a conversation about itself; texts of tasksets of which none is sealed, and paragraphs of
Python's own documentation, at the door for what somebody wrote. Bars: all exact copies, 95 % of the others, under 0.5
% of the clean. Intervals are Wilson's, 95 %.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from curriculum.contract.task import Split, Task
from curriculum.registry import TASKSETS
from curriculum.sealed import draw_task, sealed_set
from curriculum.separation.folding import tokens_of
from curriculum.separation.index import SeparationIndex, text_of
from curriculum.separation.rules import FEWEST_TOKENS, Match
from policies.statistics import wilson

SLOW = ("program_translation",)
"""Tasksets that take longer to draw than the others together; `--short` leaves them out."""
PARTS = 5
"""Of so many blocks of neighbours in the registry, each in turn is not sealed: it gives clean texts."""
CHANGED = 0.8
ALL, MOST, CLEAN = 1.0, 0.95, 0.005
DOCUMENTED = (
    "argparse", "collections", "csv", "datetime", "decimal", "email.message", "fractions", "functools", "heapq",
    "inspect", "itertools", "json", "logging", "math", "os", "pathlib", "random", "re", "shutil", "socket",
    "sqlite3", "statistics", "string", "subprocess", "tarfile", "textwrap", "threading",
    "unittest.mock", "urllib.request", "zipfile",
)  # fmt: skip
SYNONYMS = dict(
    pair.strip().split("=")
    for pair in """
    find=determine; determine=find; compute=work out; solve=resolve; give=state; write=put; answer=reply;
    number=value; numbers=values; value=number; whole=integral; smallest=least; largest=greatest; sum=total;
    product=result of multiplying; function=procedure; following=next; exact=precise; fraction=ratio;
    probability=chance; exactly=precisely; different=distinct; every=each; each=every; all=every one of;
    show=prove; takes=accepts; returns=yields; does=performs; order=sequence; items=elements; item=element;
    list=collection; text=string; words=terms; word=term; program=script; right=correct; wrong=faulty;
    says=states; made=built; stands=is; stand=are; given=known; long=lengthy; together=jointly;
    same=identical; only=just; first=initial; last=final; least=minimum; most=maximum; below=under;
    above=over; before=ahead of; behind=after; after=behind; without=lacking; holds=has; contains=has;
    possible=feasible; place=spot; places=spots; line=row; row=line; ends=finishes; end=finish; begins=starts;
    people=persons; balls=marbles; drawn=taken; random=chance; coin=disc; thrown=tossed; expected=mean;
    equation=relation; derivative=differential; integral=antiderivative; limit=limiting value; matrix=array;
    root=zero; roots=zeros; triangle=figure; circle=round figure; point=dot; points=dots; area=surface;
    remainder=rest; divided=split; digits=figures; digit=figure; base=radix; divisors=factors;
    multiple=product; choose=select; ways=manners; residue=remainder; power=exponent; fit=go; into=inside;
    often=frequently; letters=characters; letter=character; file=document; files=documents; headings=titles;
    cites=quotes; sources=references; valid=admissible; statement=claim; statements=claims; true=correct;
    theorem=proposition; joined=connected; took=lasted; sorted=ordered; head=header; matches=fits;
    parts=pieces; capital=upper-case; small=lower-case; many=large a count of; where=when;
    positive=nonnegative; needed=required; repaired=mended; counts=tallies; called=named
    """.replace("\n", " ").split(";")
)  # fmt: skip
LINES = (
    "Traceback (most recent call last):", "total 48", "-rw-r--r-- 1 user user 1204 notes.txt", "True", "[1, 4, 9, 16]",
    "INFO 200 OK 35 ms", "name,town,pieces", "3 passed in 0.41s", '{"page": 2, "next": null}', "done",
)  # fmt: skip


def exact(task: Task, rng: Random) -> str:
    text = re.sub(r" ", lambda _: rng.choice((" ", "  ", "\n", " ")), text_of(task))
    return rng.choice((text, text.upper(), f"  {text} \r\n", text.replace("?", " ?").replace(". ", ".\n")))


def reworded(task: Task, rng: Random) -> str:
    """Four in five of the words that have a synonym are changed; words in code stay: they are not prose."""

    def synonym(found: re.Match[str]) -> str:
        word = found.group()
        return SYNONYMS.get(word.lower(), word) if len(word) > 1 and rng.random() < CHANGED else word

    parts = re.split(r"(```.*?```)", text_of(task), flags=re.DOTALL)
    prose = [part if part.startswith("```") else re.sub(r"[A-Za-z]+", synonym, part) for part in parts]
    sentences = [one for part in prose for one in re.split(r"(?<=[.?:])\s+", part) if one]
    if len(sentences) > 2:
        cut = rng.randrange(1, len(sentences))
        sentences = sentences[cut:] + sentences[:cut]
    return rng.choice(("Here is a task for you. ", "Question: ", "Think it over carefully: ")) + " ".join(sentences)


def other_numbers(task: Task, rng: Random) -> str:
    return re.sub(r"\d+", lambda found: str(rng.randrange(2, 10 ** (len(found.group()) + 1))), text_of(task))


def one_word(task: Task, rng: Random) -> str:
    text = text_of(task)
    words = list(re.finditer(r"[A-Za-z]{2,}", text))
    chosen = rng.choice(words)
    new = rng.choice(("another", "green", "roughly", "seven", "house", "other"))
    return text[: chosen.start()] + new + text[chosen.end() :]


def around(text: str, rng: Random) -> str:
    return "\n".join([*rng.choices(LINES, k=rng.randrange(1, 12)), text, *rng.choices(LINES, k=rng.randrange(1, 12))])


Plant = Callable[[Task, Random], str]
WRITTEN: dict[str, Plant] = {"exact": exact, "reworded": reworded, "other numbers": other_numbers, "one word": one_word}
RESULTS: dict[str, Plant] = {
    "in a result": lambda task, rng: around(exact(task, rng), rng),
    "in a result, one word": lambda task, rng: around(one_word(task, rng), rng),
}


class Tally:
    """Counts what was stopped, by what showed it, and keeps a few that were missed."""

    def __init__(self) -> None:
        self.offered = self.stopped = 0
        self.checks: Counter[str] = Counter()
        self.others: list[str] = []
        self.seconds = 0.0

    def ask(self, met: Callable[[], Match | None], name: str, *, bad: bool) -> None:
        """Counts one text; `bad` says that stopping it is wrong."""
        started = time.process_time()
        found = met()
        self.seconds += time.process_time() - started
        self.offered += 1
        self.stopped += found is not None
        if found is not None:
            self.checks[found.check.value] += 1
        if (found is not None) is bad:
            self.others.append(f"{name}: {found}" if found else name)

    def record(self) -> dict[str, Any]:
        low, high = wilson(self.stopped, self.offered, alpha=0.05) if self.offered else (0.0, 1.0)
        return {
            "offered": self.offered,
            "stopped": self.stopped,
            "share": self.stopped / max(1, self.offered),
            "interval": [low, high],
            "by": dict(self.checks),
            "others": Counter(self.others).most_common(20),
            "microseconds": 1e6 * self.seconds / max(1, self.offered),
        }


def distinct_words(task: Task) -> bool:
    """Whether a copy with one word changed still has two: otherwise it is another question."""
    return len(re.findall(r"[A-Za-z]{2,}", task.question)) >= 3


def planted(tasksets: Sequence[str], sealed: int, each: int, seed: int) -> dict[str, Tally]:
    kept = sealed_set(sealed, seed, tasksets=tasksets).tasks
    index, rng = SeparationIndex(kept), Random(seed)
    found: dict[str, Tally] = {}
    for sort, plant in (WRITTEN | RESULTS).items():
        tally = found[sort] = Tally()
        for number in range(each):
            task = kept[number % len(kept)]
            if (
                len(tokens_of(text_of(task))) < FEWEST_TOKENS
                or ("one word" in sort and not distinct_words(task))
                or ("numbers" in sort and not re.search(r"\d", text_of(task)))
            ):
                continue
            met = index.met_by_text if sort in WRITTEN else index.met_by_result
            tally.ask(partial(met, plant(task, rng)), task.taskset, bad=False)
    return found


def clean(tasksets: Sequence[str], sealed: int, each: int, seed: int) -> dict[str, Tally]:
    """In turn, a part of the tasksets is not sealed, and gives texts that somebody might have written."""
    tallies = {
        name: Tally() for name in ("generated", "own text in a result", "other tasksets, as written", "documentation")
    }
    for part in range(PARTS):
        first, last = part * len(tasksets) // PARTS, (part + 1) * len(tasksets) // PARTS
        inside, outside = [*tasksets[:first], *tasksets[last:]], tasksets[first:last]
        kept = sealed_set(sealed, seed + part, tasksets=inside)
        index, rng, seen = SeparationIndex(kept.tasks), Random(seed + part), set(kept.questions)
        for _ in range(each // PARTS):
            task = draw_task(Split.TRAIN, rng, seen, inside)[0]
            own, other = text_of(task), draw_task(Split.TRAIN, rng, seen, outside)[0]
            tallies["generated"].ask(partial(index.met_by_task, task), task.taskset, bad=True)
            result = partial(index.met_by_result, around(own, rng), own)
            tallies["own text in a result"].ask(result, task.taskset, bad=True)
            written = partial(index.met_by_text, text_of(other))
            tallies["other tasksets, as written"].ask(written, other.taskset, bad=True)
        for text in rng.sample(paragraphs(), each // PARTS):
            tallies["documentation"].ask(partial(index.met_by_text, text), text[:60], bad=True)
    return tallies


def paragraphs() -> list[str]:
    """Of the documentation in Python's own library: what people write about programs and numbers."""
    found: set[str] = set()
    for name in DOCUMENTED:
        module = importlib.import_module(name)
        for one in [module, *vars(module).values()]:
            for text in [inspect.getdoc(one), *map(inspect.getdoc, vars(one).values() if inspect.isclass(one) else ())]:
                found.update(part for part in (text or "").split("\n\n") if len(part) > 40)
    return sorted(found)


def missed(figures: dict[str, dict[str, Any]], bars: Iterable[tuple[str, float]]) -> list[str]:
    return [f"{sort}: {figures[sort]['share']:.2%} stopped" for sort, bar in bars if figures[sort]["share"] < bar]


def measure(
    tasksets: Sequence[str], sealed: int, each: int, seed: int = 1
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The figures by sort, and what misses its bar, in sentences."""
    plants = {sort: tally.record() for sort, tally in planted(tasksets, sealed, each, seed).items()}
    others = {sort: tally.record() for sort, tally in clean(tasksets, sealed, each, seed).items()}
    below = missed(plants, [(sort, ALL if sort in ("exact", "in a result") else MOST) for sort in plants])
    below += [
        f"{sort}: {one['share']:.2%} of clean ones stopped" for sort, one in others.items() if one["share"] >= CLEAN
    ]
    return plants | others, below


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sealed", type=int, default=800)
    parser.add_argument("--each", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    names = [name for name in TASKSETS if not (asked.short and name in SLOW)]
    sealed, each = (200, 200) if asked.short else (asked.sealed, asked.each)
    figures, below = measure(names, sealed, each, asked.seed)
    for sort, one in figures.items():
        low, high = one["interval"]
        print(
            f"{sort:28} {one['stopped']:5} of {one['offered']:5}  {one['share']:8.2%}  [{low:.2%}, {high:.2%}]"
            f"  {one['microseconds']:7.0f} us  {one['by']}"
        )
    print(*below, sep="\n", file=sys.stderr)
    write_run(figures, asked.json)
    return int(bool(below))


if __name__ == "__main__":
    sys.exit(main())
