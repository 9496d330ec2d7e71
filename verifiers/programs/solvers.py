"""Small programs by enumeration from the visible examples only; the verifier judges them with all its tests."""

from __future__ import annotations

import re
from collections.abc import Generator

from verifiers.boxes.in_sandbox import ask, texts
from verifiers.contract.protocols import Proposal, Solver, SolverTools
from verifiers.programs.spec import ProgramSpec

MOST = 32
"""Maximum number of proposals: a program that fits the shown examples may be wrong elsewhere."""
AT_A_TIME = 12
MOST_EXAMPLES = 30
MOST_CHARS = 20_000
SECONDS = 8.0
CALL = (
    r"(?:^|[\s`>(]){name}\((?P<arguments>[^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)\s*`?"
    r"\s*(?:==|=|->|→|gives|returns|is)\s*`?(?P<value>[^\n`;]+)"
)


class ProgramSolver:
    name = "enumeration"
    at_once = 4

    def proposals(
        self, spec: ProgramSpec, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        limit = min(seconds, SECONDS)
        arguments = [spec.function, question[:MOST_CHARS], shown_examples(spec, question), limit, AT_A_TIME]
        proposed = 0
        for found in ask(tools, "program_search", "begin", arguments, seconds=limit):
            for text in texts(found, "programs", min(AT_A_TIME, MOST - proposed)):
                proposed += 1
                yield Proposal(text, self.name)
            if proposed >= MOST:
                return


def solvers(spec: ProgramSpec, question: str, _files: bool) -> list[Solver]:
    """Returns one solver, which searches programs, for a plain Python function with shown examples; else none."""
    plain = spec.language == "python" and spec.tool is None and not spec.driver and spec.function.isidentifier()
    return [ProgramSolver()] if plain and shown_examples(spec, question) else []


def shown_examples(spec: ProgramSpec, question: str) -> list[list[str]]:
    """Returns arguments and results as text: visible examples, else those of the question, like `f(2, 3) == 13`."""
    shown = [[each.arguments, each.expected] for each in spec.examples if each.visible and each.expected]
    if not shown and spec.function:
        pattern = CALL.replace("{name}", re.escape(spec.function))
        shown = [[found["arguments"], _value(found["value"])] for found in re.finditer(pattern, question[:MOST_CHARS])]
    short = [each for each in shown if sum(map(len, each)) <= MOST_CHARS // MOST_EXAMPLES]
    return short[:MOST_EXAMPLES]


def _value(text: str) -> str:
    """Returns the value at the start of the text, up to a comma or `and` outside brackets and quotes."""
    depth, quote = 0, ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif depth == 0 and (sign == "," or text[place:].startswith((" and ", ". "))):
            return text[:place].strip()
    return text.strip().rstrip(".")
