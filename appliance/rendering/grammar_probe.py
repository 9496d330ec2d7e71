"""Grammar process: compiles a grammar from standard input within limits, and prints its fault, or nothing.

  python -I -m appliance.rendering.grammar_probe

A few lines of JSON Schema (a `multipleOf`, many `patternProperties`) can take gigabytes and minutes to compile, in
native code that cannot be interrupted: a separate process contains that, and an engine compiles what it has passed.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import threading
from functools import lru_cache

SECONDS, WALL_SECONDS = 2, 60.0
"""Limits of CPU time, and of time on a busy machine."""
MEMORY = 512 << 20
_TOKEN = re.compile(r"<\[\d+\]>")
_PLACE = re.compile(r"^at \d+\(\d+\): ")
_ANY = "<[257]>"
"""A special token of the vocabulary of bytes, which stands here for those of any model."""
_TURNS = threading.BoundedSemaphore(2)
TOO_COMPLEX = "it is too complex to draw by"


@lru_cache(maxsize=256)
def grammar_fault(grammar: str) -> str:
    """Returns why a grammar of `turn_grammar` cannot be drawn by, as a sentence; empty if it can."""
    argv = [sys.executable, "-I", "-m", "appliance.rendering.grammar_probe"]
    try:
        with _TURNS:
            ran = subprocess.run(argv, input=grammar.encode(), capture_output=True, timeout=WALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return TOO_COMPLEX
    return TOO_COMPLEX if ran.returncode else ran.stdout.decode(errors="replace")


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    from llguidance import LLMatcher, LLTokenizer

    text = _TOKEN.sub(_ANY, sys.stdin.read())
    matcher = LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(text), log_level=0)
    if not matcher.is_error():
        matcher.compute_bitmask()
    said = _PLACE.sub("", " ".join(matcher.get_error().split("\n")[0].split()))
    sys.stdout.write(TOO_COMPLEX if matcher.is_error() and (not said or "panic" in said) else said[:200])


if __name__ == "__main__":
    _main()
