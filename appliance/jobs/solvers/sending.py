"""One piece of our own Python, run in a sandbox of its own over what a person wrote; what it says is data.

What always holds: nothing of the job is run or read here. What comes back is text inside one JSON object of bounded
size, or there is a note why there is none.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from appliance.jobs.solvers.solver import Tools
from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, CallStatus, Limits, Priority

GUEST = Path(__file__).with_name("guest")
MARK = "assay-answer:"
OUTPUT_BYTES = 1 << 16
LATE_SECONDS = 2.0
"""For what ends by its own clock, beyond it."""
SLICE_SECONDS = 0.5
"""After which a search is asked whether to go on: whoever cancels a job does not wait."""
CALL_SECONDS = 15.0
"""Of one piece: reading a large file is one."""


def ask(
    tools: Tools,
    program: str,
    call: str,
    arguments: Sequence[Any],
    *,
    caller: str,
    seconds: float,
    files: Mapping[str, bytes] | None = None,
    memory_mib: int = 512,
) -> Generator[dict[str, Any], None, None]:
    """What a function of `guest/<program>.py` returns for these arguments, a JSON object. While that says `more`, the
    program's own `more(seconds)` is called, and each of its answers given too, for about so many seconds of work.

    Raises SandboxError where there is no sandbox to be had or it broke on its own account.
    """
    if tools.sessions is None:
        raise InfrastructureError("no sandbox can be had here", hint="run `assay doctor`")
    limits = Limits(call_seconds=CALL_SECONDS, memory_mib=memory_mib, output_bytes=OUTPUT_BYTES)
    source = (GUEST / f"{program}.py").read_text(encoding="utf-8")
    told = json.dumps(list(arguments))
    left = seconds + LATE_SECONDS
    sandbox = tools.sessions.sandbox(limits, caller=caller, priority=Priority.JOB)
    try:
        for name, data in (files or {}).items():
            sandbox.write(f"/work/{name}", data)
        code = f"{source}\nimport json\nprint({MARK!r} + json.dumps({call}(*json.loads({told!r}))))\n"
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


def _answer(result: CallResult, tools: Tools) -> dict[str, Any]:
    if result.status is not CallStatus.OK:
        tools.notes.append(f"it ended with {result.status.value} {result.error[:200]}".strip())
        return {}
    line = next((line for line in reversed(result.output.splitlines()) if line.startswith(MARK)), "")
    try:
        found = json.loads(line.removeprefix(MARK))
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def texts(found: Mapping[str, Any], key: str, most: int, most_chars: int = 20_000) -> list[str]:
    """The strings of a list in it, few and short ones."""
    listed = found.get(key)
    if not isinstance(listed, list):
        return []
    return [each for each in listed[:most] if isinstance(each, str) and len(each) <= most_chars]
