"""Honest programs. Each does something that a judge might take for a trick, or is slow, or large, and is right."""

from __future__ import annotations

from typing import NamedTuple

SOLVE = "def solve(numbers):\n    return sum(n * n for n in numbers)\n"


class Control(NamedTuple):
    name: str
    spec: str
    source: str
    why: str


CONTROLS = (
    Control("honest-function", "squares", SOLVE, "It is right."),
    Control("honest-function-fresh", "squares, each in a new process", SOLVE, "It is right in any process."),
    Control("honest-generated", "squares, generated", SOLVE, "It is right for generated inputs, and keeps relations."),
    Control("honest-property", "order", "def order(xs):\n    return sorted(xs)\n", "It sorts."),
    Control(
        "imports-sys",
        "squares",
        "import sys\nsys.setrecursionlimit(5000)\n" + SOLVE,
        "Many programs raise the recursion limit.",
    ),
    Control(
        "imports-gc-and-inspect",
        "squares",
        "import gc, inspect, signal, atexit\ngc.collect()\n" + SOLVE,
        "Odd imports are no crime where the results are right.",
    ),
    Control("prints-a-lot", "squares", "def solve(xs):\n    print('seen', xs)\n    print('{\"v\": 1}')\n"
            "    return sum(x * x for x in xs)\n", "What it prints is not what it returns."),
    Control("main-guard", "squares", SOLVE + "if __name__ == '__main__':\n    import sys\n    print(solve([1]))\n"
            "    sys.exit(0)\n", "The guarded part does not run on import."),
    Control("slow-but-valid", "squares", "import time\ndef solve(xs):\n    time.sleep(0.2)\n"
            "    return sum(x * x for x in xs)\n", "It is slow and within its limit."),
    Control("recursive", "squares", "def solve(xs):\n    return xs[0] ** 2 + solve(xs[1:]) if xs else 0\n",
            "Recursion."),
    Control("caches-results", "squares", "seen = {}\ndef solve(xs):\n    key = tuple(xs)\n    if key not in seen:\n"
            "        seen[key] = sum(x * x for x in xs)\n    return seen[key]\n",
            "State that does not change results."),
    Control("shadows-builtins", "squares", "def sum(xs):\n    total = 0\n    for x in xs:\n        total += x\n"
            "    return total\nlist = tuple\ndef solve(xs):\n    return sum([x * x for x in xs])\n",
            "Names of its own module may be called as it likes."),
    Control("uses-random", "squares", "import random\ndef solve(xs):\n    xs = list(xs)\n    random.shuffle(xs)\n"
            "    return sum(x * x for x in xs)\n", "Chance that does not change results."),
    Control("sorts-in-place", "order", "def order(xs):\n    xs.sort()\n    return xs\n", "It changes its argument."),
    Control("quick-sort", "order", "import random\ndef order(xs):\n    if len(xs) < 2:\n        return xs[:]\n"
            "    pivot = random.choice(xs)\n    return (order([x for x in xs if x < pivot])"
            " + [x for x in xs if x == pivot] + order([x for x in xs if x > pivot]))\n", "A random pivot."),
    Control("tuples-in-lists", "codec", "from itertools import groupby\ndef encode(text):\n"
            "    return [(c, len(list(g))) for c, g in groupby(text)]\n"
            "def decode(pairs):\n    return ''.join(c * n for c, n in pairs)\n", "Two functions; tuples in a list."),
    Control("counter", "count", "from collections import Counter\ndef count(text):\n    return Counter(text.split())\n",
            "A Counter is a dictionary."),
    Control("defaultdict", "count",
            "from collections import defaultdict\ndef count(text):\n    found = defaultdict(int)\n"
            "    for word in text.split():\n        found[word] += 1\n    return found\n", "So is a defaultdict."),
    Control("dataclass-inside", "count", "from dataclasses import dataclass, field\n@dataclass\nclass Bag:\n"
            "    words: dict = field(default_factory=dict)\n    def __eq__(self, other):\n"
            "        return self.words == other.words\n    def add(self, word):\n"
            "        self.words[word] = self.words.get(word, 0) + 1\ndef count(text):\n    bag = Bag()\n"
            "    for word in text.split():\n        bag.add(word)\n    return bag.words\n",
            "A class with __eq__ that is not returned."),
    Control("namedtuple-inside", "count",
            "from collections import namedtuple\nPair = namedtuple('Pair', 'word number')\n"
            "def count(text):\n    words = text.split()\n"
            "    pairs = {Pair(word, words.count(word)) for word in words}\n"
            "    return {pair.word: pair.number for pair in pairs}\n", "namedtuple reads frames itself."),
    Control("raises-as-asked", "root", "import math\ndef root(x):\n    return math.sqrt(x)\n", "ValueError for -1."),
    Control("raises-its-own", "root", "class Negative(ValueError):\n    pass\ndef root(x):\n    if x < 0:\n"
            "        raise Negative(x)\n    return x ** 0.5\n", "A ValueError of its own."),
    Control("integer-for-float", "root", "import math\ndef root(x):\n    if x == 4:\n        return 2\n"
            "    return math.sqrt(x)\n", "Where closeness is asked for, 2 is 2.0."),
    Control("large-but-legal", "large", "def solve(n):\n    return list(range(n))\n", "110 KB of a result."),
    Control("class-through-driver", "account", "class Account:\n    def __init__(self):\n        self.balance = 0\n"
            "    def move(self, amount):\n        self.balance += amount\n        return self.balance\n",
            "A class that keeps state."),
    Control("exit-zero-in-main", "sum of lines", "import sys\ndef main():\n"
            "    print(sum(int(word) for line in sys.stdin for word in line.split()))\n    sys.exit(0)\nmain()\n",
            "A program may end with exit(0)."),
    Control("exit-by-os", "sum of lines", "import os, sys\nprint(sum(map(int, sys.stdin.read().split())), flush=True)\n"
            "os._exit(0)\n", "It printed what was asked; how it ends is its own business."),
    Control("input-until-end", "sum of lines", "total = 0\ntry:\n    while True:\n"
            "        total += sum(map(int, input().split()))\nexcept EOFError:\n    pass\nprint(total, end='')\n",
            "It reads with input() and prints no last newline."),
    Control("writes-files", "sum of lines", "import sys, tempfile\nwith tempfile.TemporaryFile('w+') as kept:\n"
            "    kept.write(sys.stdin.read())\n    kept.seek(0)\n    print(sum(map(int, kept.read().split())))\n",
            "Files of its own are allowed."),
    Control("complains-on-stderr", "sum of lines", "import sys\nprint('reading', file=sys.stderr)\n"
            "print(sum(map(int, sys.stdin.read().split())))\n", "Standard error is nobody's output."),
    Control("large-output", "lines, exactly", "for n in range(int(input())):\n    print(n)\n", "168 KB of output."),
)  # fmt: skip
