"""Whether labels of proposals are right, and proposals follow the solver: `python benchmarks/proposer.py [--quick]`.

    LEAN_TOOLCHAIN=/tmp/lean python benchmarks/proposer.py --kinds statement --labels 100 --rounds 0

Labels: random proposals of every kind go through the doors that a model's go through. Those that
become tasks are checked by another route: programs by plain CPython in a process of the host with other hash seeds (the
proposals are this script's own), inputs of abduction likewise, puzzles by trying every assignment, lines for the
calculator by arithmetic of this script's own, statements in Lean by how they were made: their schemata know without
Lean which side is true, and a fifth of them come with the proof of another one. Without a Lean there are none, and it
is said. Bar: 0 wrong in 2,000.

Rounds: a scripted proposer draws programs of 1 to 10 steps, with odds that it learns from the rewards; a scripted
solver passes with a chance that falls with the steps and grows with the rounds. Bars: difficulty follows the skill
(rank correlation over tenths at least .9; the first tenth, in which the proposer knows nothing yet, is shown and left
out), and at least .9 of the proposals that ran are distinct.

Needs root, as sandboxes do. Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curriculum.proposing.execution import Executor
from curriculum.proposing.kind import Provers
from curriculum.proposing.labels import ProvenTask
from curriculum.proposing.novelty import NoveltyMemory
from curriculum.proposing.refusals import RefusedProposal
from curriculum.proposing.registry import KINDS
from curriculum.proposing.rewards import REWARDS, advantages, reward
from curriculum.tasksets.disproofs import SCHEMATA
from verifiers.checker import Checker
from verifiers.lean.spec import LeanSpec

SHARES = {
    "calculation": 0.42,
    "deduction": 0.42,
    "abduction": 0.04,
    "induction": 0.04,
    "puzzle": 0.04,
    "statement": 0.04,
}
FOREIGN_PROOFS = 0.2
AT_ONCE = 4
BATCH = 60
STEPS = (
    "x = [v * {a} + i for i, v in enumerate(x)]",
    "x = [v for v in x if v % {b} != {c}] or [{a}]",
    "x = sorted(x, key=lambda v: (v % {b}, v))",
    "x = [u - v for u, v in zip(x, x[1:])] + [len(x)]",
    "x = [sum(x[:i + 1]) % {d} for i in range(len(x))]",
    "x = x[{c}:] + x[:{c}]",
    "x = [v ** 2 % {d} if v % 2 else v // 2 for v in x]",
    "x = [v + k for v in reversed(x)]",
    "x = x + [max(x) - min(x)]",
    "x = [(v * k) % {d} for v in x]",
)
ENDS = (
    "return sum(x) + k",
    "return max(x) * {a} - k",
    "return sum(v * i for i, v in enumerate(x, k))",
    "return x + [k]",
)


def program(rng: Random, steps: int) -> str:
    """A function of so many steps on a list and a number."""
    filled = {"a": rng.randint(2, 9), "b": rng.randint(2, 7), "c": rng.randint(0, 2), "d": rng.randint(11, 97)}
    lines = [rng.choice(STEPS).format(**{**filled, "d": rng.randint(11, 97)}) for _ in range(steps)]
    return "\n    ".join(["def f(x, k):", *lines, rng.choice(ENDS).format(**filled)])


def call(rng: Random) -> str:
    return f"{[rng.randint(1, 60) for _ in range(rng.randint(3, 7))]}, {rng.randint(2, 12)}"


def blocks(source: str, calls: str) -> str:
    return f"```python\n{source}\n```\n```input\n{calls}\n```"


def proposal(kind: str, rng: Random) -> str:
    """A proposal of that kind, in the format of its prompt; many are no tasks."""
    if kind == "calculation":
        a, b, c = (rng.randint(0, 10 ** rng.randint(1, 4)) for _ in range(3))
        return rng.choice(LINES).format(a=a, b=b, c=c)
    if kind == "puzzle":
        return f"```puzzle\n{puzzle(rng)}\n```"
    if kind == "statement":
        return statement(rng)
    count = 8 if kind == "induction" else 1
    return blocks(program(rng, rng.randint(1, 4)), "\n".join(call(rng) for _ in range(count)))


KNOWN: dict[str, bool] = {}
"""Of each proposition that was drawn, whether it is true, as its schema knows it."""


def statement(rng: Random) -> str:
    """A true or false proposition with a proof of the side that holds, or with the proof of another one."""
    claim, other = (rng.choice(list(SCHEMATA.values()))(rng.randint(0, 4), rng) for _ in range(2))
    KNOWN[claim.statement] = claim.true
    proof = other.proof if rng.random() < FOREIGN_PROOFS else claim.proof
    return f"```statement\n{claim.statement}\n```\n```proof\n{proof}\n```"


def puzzle(rng: Random) -> str:
    """Bounds, and conditions that hold for drawn values; sometimes one that does not."""
    names = "abcd"[: rng.randint(2, 3)]
    most = rng.choice((9, 12, 20))
    values = {name: rng.randint(1, most) for name in names}
    lines = [f"{', '.join(names)} in 1..{most}"]
    for one, two in itertools.pairwise(names):
        lines.append(f"{one} + {two} == {values[one] + values[two]}")
    lines.append(f"{names[0]} * {names[-1]} == {values[names[0]] * values[names[-1]]}")
    if rng.random() < 0.8:
        lines.append(f"{names[0]} {'<' if values[names[0]] < values[names[-1]] else '>='} {names[-1]}")
    if rng.random() < 0.3:
        lines.append(f"({names[0]} + {names[1]} * 2) % 5 == {rng.randint(0, 4)}")
    return "\n".join(lines)


LINES = (
    "print({a}+{b})",
    "print({a}-{b})",
    "print({a}*{b})",
    "print({a}//{b})",
    "print({a}%{b})",
    "import math\nprint(math.gcd({a},{b}))",
    "import math\nprint(math.lcm({a},{b}))",
    "print(pow({a},{b},{c}))",
    "print(sum(range({a}+1)))",
    "import math\nprint(math.isqrt({a}))",
    "print(sum(map(int,str({a}))))",
    "print(oct({a})[2:])",
    "print(({c}-{b})//{a})",
    "print(({c}+{b})//{a})",
    "print(sum(d for d in range(1,{a}+1) if {a}%d==0))",
    "import math\nprint(math.comb({a},{b}))",
)


# ---- another route to each answer


def calculated(key: str, answer: str) -> bool:
    """Looks at a calculator's answer with arithmetic of its own: by definitions, not by the line's functions."""
    name, numbers = key.split(":")
    n = [int(one) for one in numbers.split(",")]
    value = int(answer, 8) if name == "octal" else int(answer)
    checks: dict[str, Callable[[], bool]] = {
        "add": lambda: value - n[0] == n[1],
        "subtract": lambda: value + n[1] == n[0] and value > 0,
        "multiply": lambda: value == sum(n[0] << at for at in range(n[1].bit_length()) if n[1] >> at & 1),
        "quotient": lambda: value * n[1] <= n[0] < (value + 1) * n[1],
        "remainder": lambda: 0 <= value < n[1] and any((n[0] - value) == n[1] * q for q in [(n[0] - value) // n[1]]),
        "gcd": lambda: _euclid(*n) == value,
        "lcm": lambda: value * _euclid(*n) == n[0] * n[1],
        "divisor_sum": lambda: _divisor_sum(n[0]) == value,
        "power_modulo": lambda: _power(*n) == value,
        "choose": lambda: _choose(*n) == value,
        "sum_to": lambda: 2 * value == n[0] * (n[0] + 1),
        "integer_root": lambda: value * value <= n[0] < (value + 1) * (value + 1),
        "digit_sum": lambda: value == _digit_sum(n[0]),
        "octal": lambda: value == n[0],
        "solve_plus": lambda: n[0] * value + n[1] == n[2],
        "solve_minus": lambda: n[0] * value - n[1] == n[2],
    }
    return checks[name]()


def _euclid(a: int, b: int) -> int:
    while b:
        a, b = b, a - b * (a // b)
    return a


def _divisor_sum(n: int) -> int:
    total, prime = 1, 2
    while n > 1:
        power = 1
        while n % prime == 0:
            n //= prime
            power = power * prime + 1
        total *= power
        prime = prime + 1 if prime * prime <= n else max(n, prime + 1)
    return total


def _power(a: int, b: int, c: int) -> int:
    result = 1 % c
    for _ in range(b):
        result = result * a % c
    return result


def _choose(a: int, b: int) -> int:
    row = 1
    for at in range(min(b, a - b)):
        row = row * (a - at) // (at + 1)
    return row


def _digit_sum(n: int) -> int:
    total = 0
    while n:
        n, digit = divmod(n, 10)
        total += digit
    return total


def elsewhere(jobs: list[dict[str, Any]]) -> list[list[str]]:
    """What plain CPython gives for each job's calls, in a process of its own with a hash seed of its own."""
    script = (
        "import json, sys\n"
        "found = []\n"
        "for job in json.load(sys.stdin):\n"
        "    names = {}\n"
        "    exec(compile(job['source'], 'made', 'exec'), names)\n"
        "    found.append([repr(eval('f(' + call + ')', names)) for call in job['calls']])\n"
        "json.dump(found, sys.stdout)\n"
    )
    results = []
    for seed in ("1", "77"):
        ran = subprocess.run(
            [sys.executable, "-S", "-c", script],
            input=json.dumps(jobs),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        results.append(json.loads(ran.stdout))
    assert results[0] == results[1], "a label hangs on the hash seed"
    return results[0]


def solutions(lines: str) -> list[tuple[int, ...]]:
    """Every assignment that meets a puzzle, by trying all."""
    bounds: dict[str, range] = {}
    conditions = []
    for line in lines.split("\n"):
        if " in " in line:
            names, span = line.split(" in ")
            low, high = map(int, span.split(".."))
            bounds |= {name.strip(): range(low, high + 1) for name in names.split(",")}
        elif line.startswith("distinct"):
            names = line.removeprefix("distinct ").split(", ")
            conditions.append(f"len({{{', '.join(names)}}}) == {len(names)}")
        else:
            conditions.append(line)
    code = compile(" and ".join(f"({one})" for one in conditions), "puzzle", "eval")
    return [
        values
        for values in itertools.product(*bounds.values())
        if eval(code, {"len": len}, dict(zip(bounds, values, strict=True)))
    ]


# ---- the two measures


def attempt(kind: str, provers: Provers, text: str) -> ProvenTask | RefusedProposal:
    """The task of a proposal, or why it is none."""
    try:
        return KINDS[kind].make(text, provers)
    except RefusedProposal as error:
        return error


def labels(count: int, rng: Random, provers: Provers, kinds: Collection[str]) -> dict[str, Any]:
    """Makes so many tasks of these kinds, and looks at each label by the other route."""
    started = time.monotonic()
    refused: Counter[str] = Counter()
    made: Counter[str] = Counter()
    wrong: list[str] = []
    whole = sum(SHARES[kind] for kind in kinds)
    wanted = {kind: round(SHARES[kind] / whole * count) for kind in kinds}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while made.total() < sum(wanted.values()):
            left = [kind for kind in wanted for _ in range(wanted[kind] - made[kind])]
            drawn = [(kind, proposal(kind, rng)) for kind in rng.sample(left, min(len(left), BATCH))]
            found = list(threads.map(lambda one: attempt(one[0], provers, one[1]), drawn))
            accepted = []
            for (kind, text), task in zip(drawn, found, strict=True):
                if isinstance(task, RefusedProposal):
                    refused[task.reason.value] += 1
                else:
                    made[kind] += 1
                    accepted.append((kind, text, task))
            wrong += mistaken(accepted)
            seconds = time.monotonic() - started
            told = f"{made.total()} tasks, {len(wrong)} wrong, {refused.total()} refused, {seconds:.0f} s"
            print(told, file=sys.stderr, flush=True)
    return {"tasks": dict(made), "wrong": len(wrong), "refused": dict(refused), "seconds": seconds, "first": wrong[:3]}


def mistaken(accepted: list[tuple[str, str, ProvenTask]]) -> list[str]:
    """Those of these tasks whose label the other route does not find."""
    wrong: list[str] = []
    jobs: list[dict[str, Any]] = []
    expected: list[list[str]] = []
    for kind, text, task in accepted:
        if kind == "calculation":
            wrong += [] if calculated(task.task.key, task.label.answer) else [task.task.question]
        elif kind == "puzzle":
            lines = text.split("\n", 1)[1].rsplit("\n", 1)[0]
            told = tuple(int(one.rstrip(")").split()[-1]) for one in task.label.answer.split(") ("))
            wrong += [] if solutions(lines) == [told] else [lines]
        elif kind == "statement":
            wrong += [] if stated(text, task) else [text]
        else:
            halves = text.split("```python\n")[1].split("```input\n")
            source, calls = (part.split("\n```")[0] for part in halves)
            jobs.append({"source": source.strip(), "calls": calls.split("\n")})
            expected.append(task.label.answer.split("\n"))
    for job, labelled, given in zip(jobs, expected, elsewhere(jobs), strict=True):
        wrong += [] if labelled == given else [job["source"]]
    return wrong


def stated(text: str, task: ProvenTask) -> bool:
    """Whether the label of a statement is the side that its schema knows, and its spec asks for that side."""
    proposition = text.split("\n")[1]
    says = f"theorem target : {proposition if KNOWN[proposition] else f'¬ ({proposition})'} := sorry"
    label = "true" if KNOWN[proposition] else "false"
    return task.label.answer == label and isinstance(task.task.spec, LeanSpec) and task.task.spec.statement == says


def rounds(count: int, rng: Random, provers: Provers, switch: str = "azr", each: int = 4) -> dict[str, Any]:
    """A proposer that learns which number of steps pays, beside a solver whose skill grows."""
    logits = [0.0] * 10
    memory = NoveltyMemory()
    proposed: list[str] = []
    refused: Counter[str] = Counter()
    skills, asked, accepted = [], [], 0
    for number in range(count):
        skill = 1.0 + 7.0 * number / max(1, count - 1)
        odds = [math.exp(one - max(logits)) for one in logits]
        chosen = rng.choices(range(10), odds, k=each)
        earned = []
        for level in chosen:
            text = blocks(program(rng, level + 1), call(rng))
            try:
                task = KINDS["deduction"].make(text, provers)
                proposed.append(task.task.key)
                similarity = memory.require_new(task)
            except RefusedProposal as error:
                refused[error.reason.value] += 1
                earned.append(0.0)
                continue
            memory.add(task.task)
            accepted += 1
            chance = 1.0 / (1.0 + math.exp(1.5 * (level + 1 - skill)))
            passed = sum(rng.random() < chance for _ in range(16))
            earned.append(reward(switch, passed, 16, similarity))
        share = [one / sum(odds) for one in odds]
        for level, worth in zip(chosen, advantages(earned), strict=True):
            for at in range(10):
                logits[at] += 0.12 * worth * ((at == level) - share[at])
        logits = [max(-3.0, min(3.0, one - mean(logits))) for one in logits]
        skills.append(skill)
        asked.append(mean(level + 1 for level in chosen))
    tenth = max(1, count // 10)
    curve = [(mean(skills[at : at + tenth]), mean(asked[at : at + tenth])) for at in range(0, count - tenth + 1, tenth)]
    return {
        "rounds": count,
        "switch": switch,
        "curve": [(round(skill, 2), round(steps, 2)) for skill, steps in curve],
        "rank_correlation": round(rank_correlation(curve[1:]), 3),
        "accepted": accepted,
        "distinct_proposed": round(len(set(proposed)) / max(1, len(proposed)), 4),
        "distinct_accepted": round(len(memory) / max(1, accepted), 4),
        "refused": dict(refused),
    }


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    """Spearman's, for values without ties."""
    ranks = [[sorted(column).index(one) for one in column] for column in zip(*pairs, strict=True)]
    n = len(pairs)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (n * (n * n - 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="60 labels and 40 rounds")
    parser.add_argument("--labels", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--reward", choices=sorted(REWARDS), default="azr")
    parser.add_argument("--kinds", nargs="+", choices=sorted(SHARES), default=list(SHARES), metavar="KIND")
    given = parser.parse_args()
    for kind in given.kinds[:]:
        if why := KINDS[kind].missing():
            print(f"{kind} is left out: {why}", file=sys.stderr)
            given.kinds.remove(kind)
    if given.labels and not given.kinds:
        parser.error("none of these kinds can be proved here")
    rng = Random(7)
    with Checker() as checker:
        provers = Provers(Executor(checker.sessions(), "benchmark"), checker, "proposed:benchmark@0")
        found: dict[str, Any] = {}
        if given.labels:
            found["labels"] = labels(60 if given.quick else given.labels, rng, provers, given.kinds)
        if given.rounds:
            found["rounds"] = rounds(40 if given.quick else given.rounds, rng, provers, given.reward)
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    bars = []
    if "labels" in found:
        bars.append(found["labels"]["wrong"] == 0)
    if "rounds" in found:
        bars += [found["rounds"]["distinct_proposed"] >= 0.9]
        bars += [found["rounds"]["rank_correlation"] >= 0.9 or given.quick]
    return 0 if all(bars) else 1


if __name__ == "__main__":
    sys.exit(main())
