"""The purity check attacked: whatever it lets through, in two sessions of one interpreter, each sees only itself.

Programs are grown from a grammar that is full of hostile shapes. Those that are classified as pure run in a real shared
worker (no sandbox around it here, in a process of its own for each history): two sessions interleaved, and each history
alone in a fresh interpreter. The answers have to be equal, no value that can change may be reachable from both, and
after both sessions are dropped the interpreter has to be as it was.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz_blocks import in_blocks
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from purity_grammar import SNIPPETS

from runtime.sessions.purity import Need, classify

DRIVER = r"""
import builtins, cmath, gc, itertools, json, math, os, select, signal, sys, types
sys.path.insert(0, sys.argv[1])
from runtime.guest import ops
from runtime.guest.shared import SharedWorker

FROZEN = (int, float, complex, str, bytes, bool, type, types.BuiltinFunctionType, types.CodeType, types.ModuleType,
          type(None), type(...), type(NotImplemented), types.MethodDescriptorType, types.WrapperDescriptorType)

def mutable(namespace):
    # ids of everything that can change and can be reached from a session's names, its builtins apart
    seen, waiting = set(), [value for name, value in namespace.items() if name != '__builtins__']
    keep = []
    while waiting:
        value = waiting.pop()
        if isinstance(value, FROZEN) or id(value) in seen or value is namespace or value == ():
            continue
        if isinstance(value, types.MethodType) and value.__func__.__name__ == 'print':
            continue
        if type(value) is dict and value.get('__import__') is namespace['__builtins__']['__import__']:
            continue
        seen.add(id(value))
        keep.append(value)
        waiting += gc.get_referents(value)
    return seen, keep

def state():
    modules = (builtins, math, cmath, itertools)
    return ([sorted((name, id(value)) for name, value in vars(module).items()) for module in modules],
            sorted(sys.modules), sys.getrecursionlimit(), sys.get_int_max_str_digits(),
            [str(signal.getsignal(number)) for number in (2, 15)], sorted(os.listdir('/proc/self/fd'))[:-1])

def run(calls, sink):
    worker = SharedWorker(slice_seconds=0.3, output_bytes=4096, memory_bytes=1 << 28)
    worker._namespace(0)
    before = state()
    said = []
    for session, source in calls:
        kind, error = worker._call(ops.RUN, session, source.encode('utf-8', 'surrogatepass'))
        error = json.loads(error)['error'] if error else ''
        said.append([session, int(kind), worker._printer.take().decode('utf-8', 'replace'), error])
    spaces = [mutable(names) for number, names in worker._sessions.items() if number]
    common = set.intersection(*(seen for seen, _ in spaces)) if len(spaces) > 1 else set()
    found = [type(value).__name__ for _, keep in spaces[:1] for value in keep if id(value) in common]
    spaces = None
    worker._sessions.clear()
    gc.collect()
    kept = [o for o in gc.get_objects() if isinstance(o, types.FunctionType) and o.__code__.co_filename == '<call>']
    result = {'said': said, 'common': found, 'changed': state() != before, 'kept': len(kept)}
    os.write(sink, json.dumps(result).encode() + b'\n')

gc.disable()
for line in sys.stdin.buffer:
    results = []
    for calls in json.loads(line):
        source, sink = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                null = os.open('/dev/null', os.O_RDWR)
                os.dup2(null, 1)
                run(calls, sink)
            finally:
                os._exit(0)
        os.close(sink)
        data, poll = b'', select.poll()
        poll.register(source, select.POLLIN)
        while poll.poll(10_000):
            more = os.read(source, 1 << 20)
            if not more:
                break
            data += more
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(source)
        results.append(json.loads(data) if data.endswith(b'\n') else None)
    sys.stdout.write(json.dumps(results) + '\n')
    sys.stdout.flush()
"""
ROOT = Path(__file__).parents[3]
OK, EXCEPTION = 0, 1
Calls = list[tuple[int, str]]


class Interpreters:
    """Runs each history in an interpreter of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-S", "-B", "-W", "ignore", "-c", DRIVER, str(ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONHASHSEED": "0"},
            text=True,
        )

    def run(self, histories: list[Calls]) -> list[dict[str, Any] | None]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(histories) + "\n")
        self._process.stdin.flush()
        answer: list[dict[str, Any] | None] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    running = Interpreters()
    yield running
    running.close()


FIRST = "a = [1, 2]\nb = {1: 2}\nc = 'c'\nx = 5\ng = [[3], a]\nimport math, cmath"


def outputs_of(result: dict[str, Any], session: int) -> list[list[Any]]:
    """To the letter: a pure snippet knows no addresses and no order that they could give."""
    return [[kind, *texts] for who, kind, *texts in result["said"] if who == session]


def judge(interpreters: Interpreters, first: list[str], second: list[str]) -> None:
    pure = [[FIRST, *(source for source in sources if classify(source) is Need.PURE)] for sources in (first, second)]
    assume(min(map(len, pure)) > 1)
    turns: Calls = []
    for port in range(max(map(len, pure))):
        turns += [(number + 1, sources[port]) for number, sources in enumerate(pure) if port < len(sources)]
    alone = [[(number + 1, source) for source in sources] for number, sources in enumerate(pure)]
    together, *fresh = interpreters.run([turns, *alone])
    assume(together is not None and None not in fresh)
    assert together is not None
    assert together["common"] == [], "both sessions reach a value that can change"
    assert not together["changed"], "something of the interpreter has changed"
    assert together["kept"] == 0, "a function outlives its session"
    for number, result in enumerate(fresh, start=1):
        assert result is not None
        if all(kind in (OK, EXCEPTION) for one in (together, result) for _, kind, _, _ in one["said"]):
            assert outputs_of(together, number) == outputs_of(result, number)


HISTORIES = st.lists(SNIPPETS, min_size=6, max_size=12)
"""So many, as few snippets are pure: of lists of one to four, 98 % of the pairs were drawn for nothing."""
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]


@settings(max_examples=20, deadline=None, suppress_health_check=CHECKS)
@given(HISTORIES, HISTORIES)
def test_two_sessions_of_one_interpreter_see_only_themselves(
    interpreters: Interpreters, first: list[str], second: list[str]
) -> None:
    judge(interpreters, first, second)


@pytest.mark.slow
@pytest.mark.timeout(2_400)
def test_two_sessions_of_one_interpreter_see_only_themselves_for_long(
    interpreters: Interpreters, capsys: pytest.CaptureFixture[str]
) -> None:
    both = st.tuples(HISTORIES, HISTORIES)
    in_blocks(lambda pair: judge(interpreters, *pair), both, examples=20_000, capsys=capsys)


def test_the_judge_finds_what_leaks(interpreters: Interpreters) -> None:
    """It is not blind: a program that is not pure is caught by it."""
    leak = "math.__dict__.setdefault('kept', []).append(1)\nx = math.kept"
    [result] = interpreters.run([[(1, FIRST), (2, FIRST), (1, leak), (2, leak)]])
    assert result is not None
    assert result["common"] == ["list"]
    assert result["changed"]
