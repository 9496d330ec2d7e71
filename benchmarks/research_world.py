"""What the questions of the environment `research` are worth: an agent that reads, one that guesses, and missing pages.

    python benchmarks/research_world.py [--each 40]

For each level: the share of questions that the oracle answers by the tools alone, the share that random names and
numbers meet, and of the questions whose pages are deleted one at a time, how many the oracle still answers (none).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path
from random import Random

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "fixtures"))
from plain_worlds import PlainToolError, plain_world

from curriculum.contract.taskset import TaskDraft
from curriculum.environments.research import RESEARCH
from curriculum.environments.research.chains import drawn_chain, giveaways, needed_pages, phrase, research_corpus
from curriculum.environments.research.oracle import Call, ResearchOracle
from curriculum.environments.research.prose import page_id
from curriculum.registry import make_draft
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide

EDITION = 3


def answer(draft: TaskDraft, call: Call) -> str:
    oracle = ResearchOracle(call)
    found = [oracle.value(one).text for one in draft.world["phrases"]]
    if draft.topic == "document_chains":
        return found[0]
    first, second = map(int, found)
    return str(first + second if draft.topic == "count_totals" else abs(first - second))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=40, help="questions of a level")
    each = parser.parse_args().each
    corpus, rng = research_corpus(EDITION), Random(0)
    names = [entity.name for entity in corpus.graph.entities]
    with tempfile.TemporaryDirectory() as folder:
        call = plain_world(RESEARCH, {"edition": EDITION, "blocked": [], "phrases": []}, Path(folder) / "world")
        print("level  answered  guessed")
        for level in range(5):
            made = (make_draft("research", level, seed) for seed in range(100_000))
            drafts = [next(one for one in made if one.world["edition"] == EDITION) for _ in range(each)]
            good = guessed = 0
            for draft in drafts:
                with contextlib.suppress(LookupError, PlainToolError):
                    good += decide(draft.spec, answer(draft, call)).outcome is Outcome.PASS
                guess = rng.choice(names) if rng.random() < 0.5 else str(rng.randint(1, 2_000))
                guessed += decide(draft.spec, guess).outcome is Outcome.PASS
            print(f"{level:5}  {good / each:8.3f}  {guessed / each:7.3f}", flush=True)
        still = deleted = 0
        for length in (2, 3, 4, 5):
            chain = drawn_chain(corpus, rng, length, "year")
            blocked = giveaways(corpus, chain)
            for page in needed_pages(corpus, chain, blocked) or ():
                setup = {"edition": EDITION, "blocked": [page_id(one) for one in [*blocked, page]], "phrases": []}
                deleted += 1
                with contextlib.suppress(LookupError, PlainToolError):
                    ResearchOracle(plain_world(RESEARCH, setup, Path(folder) / "without")).value(
                        phrase(corpus.graph, chain)
                    )
                    still += 1
        print(f"{deleted} pages deleted, {still} questions still answered")


if __name__ == "__main__":
    main()
