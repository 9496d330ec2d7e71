"""Runs one of our own Python programs in a fresh sandbox on text that a person wrote, and returns data.

Invariants: nothing of the question is run or parsed in this process. The result is text inside one JSON object of
bounded size; a missing result is explained by a note.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runtime.errors import InfrastructureError
from runtime.sandbox import NO_FILES, CallResult, CallStatus, Limits, Priority
from verifiers.contract.protocols import SolverTools

GUEST = Path(__file__).with_name("guest")
MARK = "assay-answer:"
OUTPUT_BYTES, MEMORY_MIB = 1 << 16, 512
LATE_SECONDS = 2.0
"""Seconds past the time limit that a program gets to stop by its own clock."""
SLICE_SECONDS = 0.5
"""Seconds of search between checks for cancellation."""
CALL_SECONDS = 15.0
"""Time limit of one call, in seconds; reading a large file is one call."""


def ask(
    tools: SolverTools,
    program: str,
    call: str,
    arguments: Sequence[Any],
    *,
    seconds: float,
    files: Mapping[str, bytes] = NO_FILES,
) -> Generator[dict[str, Any], None, None]:
    """Yields the JSON object that a function of `guest/<program>.py` returns for these arguments.

    While an answer has `more`, calls the program's own `more(seconds)` and yields each answer, for about `seconds` in
    total. An answer's `note` is passed to the solver's caller. Raises SandboxError if no sandbox is available or it
    broke.
    """
    if tools.sessions is None:
        raise InfrastructureError("no sandbox is available here", hint="Run `assay doctor`.")
    limits = Limits(call_seconds=CALL_SECONDS, memory_mib=MEMORY_MIB, output_bytes=OUTPUT_BYTES)
    source = (GUEST / f"{program}.py").read_text(encoding="utf-8")
    given = json.dumps(list(arguments))
    left = seconds + LATE_SECONDS
    sandbox = tools.sessions.sandbox(limits, caller=tools.caller, priority=Priority.JOB)
    try:
        for name, data in files.items():
            sandbox.write(f"/work/{name}", data)
        code = f"{source}\nimport json\nprint({MARK!r} + json.dumps({call}(*json.loads({given!r}))))\n"
        while True:
            result = sandbox.run(code)
            left -= result.seconds
            found = _answer(result, tools)
            yield found
            if not found.get("more") or tools.stop() or left <= 0:
                return
            code = f"print({MARK!r} + json.dumps(more({SLICE_SECONDS})))\n"
    finally:
        sandbox.close()


def _answer(result: CallResult, tools: SolverTools) -> dict[str, Any]:
    if result.status is not CallStatus.OK:
        tools.notes.append(f"it ended with {result.status.value} {result.error[:200]}".strip())
        return {}
    line = next((line for line in reversed(result.output.splitlines()) if line.startswith(MARK)), "")
    try:
        found = json.loads(line.removeprefix(MARK))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {}
    note = found.get("note")
    if isinstance(note, str) and note:
        tools.notes.append(note[:200])
    return found


def texts(found: Mapping[str, Any], key: str, most: int, most_chars: int = 20_000) -> list[str]:
    """Returns the strings of a list in an answer: at most `most`, each at most `most_chars` long."""
    listed = found.get(key)
    if not isinstance(listed, list):
        return []
    return [each for each in listed[:most] if isinstance(each, str) and len(each) <= most_chars]
