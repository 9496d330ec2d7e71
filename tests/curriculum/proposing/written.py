"""Proposals as a model would write them."""

from __future__ import annotations

BODY = """def f(xs, k):
    out = []
    for i, x in enumerate(sorted(xs)):
        out.append(x * k + i)
    return sum(out) - len(xs)"""
CALL = "[3, 1, 2], 4"
CALLS = "\n".join(f"[{number}, {number * number}, 2], {number + 3}" for number in range(8))


def program(body: str = BODY, call: str = CALL) -> str:
    return f"Here it is.\n```python\n{body}\n```\n```input\n{call}\n```\n"


def puzzle(lines: str) -> str:
    return f"```puzzle\n{lines}\n```"


def statement(says: str, proof: str) -> str:
    return f"```statement\n{says}\n```\n```proof\n{proof}\n```"
