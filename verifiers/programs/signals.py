"""Signals in a source, or noticed by its sandbox, that look like an attempt to cheat the judge.

A program that passes every test has passed, no matter what it imports: results are compared out of its reach. A program
that fails and has a strong signal is called `hack_suspected` instead of wrong, so that a person looks at it. Two things
are suspicious even if every test passed: naming the harness, which no honest program knows, and any strong signal if
the spec asks for that (`suspicion`). Weak signals (an import of `gc` or `signal`, a class with `__eq__`) are shown
beside a verdict and change nothing. Well-hidden attempts are not seen here; they fail because they do not compute the
answer.

The source is scanned as a sequence of words and strings, in linear time; it is never parsed here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PIECE = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<string>'''(?:[^\\]|\\.)*?(?:'''|\\?\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\\?\Z)"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<other>[^\s])",
    re.DOTALL,
)
_STRONG = (
    "_exit _Exit _getframe f_back f_locals f_globals f_builtins tb_frame gi_frame cr_frame ag_frame __subclasses__"
    " __globals__ __closure__ __builtins__ get_objects get_referrers get_referents currentframe getouterframes"
    " getinnerframes settrace setprofile addaudithook excepthook unraisablehook execv execve execvp execvpe execl"
    " execle execlp forkpty getppid killpg ptrace pthread_kill SkipTest ctypes sitecustomize usercustomize conftest"
    " _pytest TestReport _assay_begin _assay_load _assay_call LD_PRELOAD PYTHONPATH PYTEST_ADDOPTS"
    " PYTEST_CURRENT_TEST setitimer memfd_create"
)
_WEAK = (
    "gc inspect signal atexit subprocess threading multiprocessing socket pickle marshal unittest pytest __reduce__"
    " __reduce_ex__"
)
STRONG_NAMES, WEAK_NAMES = frozenset(_STRONG.split()), frozenset(_WEAK.split())
STRONG_STRINGS = (
    "/proc/", "conftest", "pytest.ini", "sitecustomize", "usercustomize", "reward.txt", "junit", "ctrf.json", "git log",
    ".git/", "/usr/bin/", "/usr/lib", "LD_PRELOAD", "__pycache__", ".pth", "\\x1e", "\x1e",
)  # fmt: skip
WEAK_STRINGS = ("ALL PASSED", "passed", "results.json", "verdict", "grader")
CALLED = re.compile(
    r"\b(?:os|posix)\s\.\s(?:abort|fork|kill|system|popen|posix_spawn\w*)\b"
    r"|\bfrom\s(?:os|posix)\simport\s(?:[\w,(]+\s){0,20}?(?:abort|fork|kill|system|popen|posix_spawnp?)\b"
)
"""Calls whose names are harmless elsewhere: philosophers have forks."""
PATCH = re.compile(
    r"\b(?:builtins|math|json|operator|numpy\.testing)\s*\.\s*\w+\s*=(?!\s*=)|\bsetattr\s*\(\s*(?:builtins|math|json|operator|unittest)\b"
    r"|\bsys\s*\.\s*modules\s*\[[^]]{0,100}\]\s*=(?!\s*=)"
)
ALWAYS_EQUAL = re.compile(
    r"def\s+__(?:eq|ne|lt|le|gt|ge|bool|instancecheck)__\s*\([^)]{0,200}\)[^:]{0,100}:\s*return\s+(?:True|1)\b"
)
MOST = 30


class SignalScan(NamedTuple):
    strong: tuple[str, ...]
    weak: tuple[str, ...]
    touches: tuple[str, ...]
    """Strong signals that name the harness."""


def scan(source: str) -> SignalScan:
    strong: dict[str, None] = {}
    weak: dict[str, None] = {}
    code = []
    for piece in PIECE.finditer(source):
        text = piece.group()
        match piece.lastgroup:
            case "name":
                code.append(text)
                if text in STRONG_NAMES:
                    strong[f"the name {text}"] = None
                elif text in WEAK_NAMES:
                    weak[f"the name {text}"] = None
            case "string":
                code.append("''")
                inside = text.strip("'\"rRbBuUfF").strip()
                if inside in STRONG_NAMES:
                    strong[f"the text {inside}"] = None
                for word in STRONG_STRINGS:
                    if word in text:
                        strong[f"the text {ascii(word)[1:-1]}"] = None
                for word in WEAK_STRINGS:
                    if word in text:
                        weak[f"the text {word}"] = None
            case "other":
                code.append(text)
            case _:
                pass
    joined = " ".join(code)
    for found in CALLED.finditer(joined):
        strong[f"the call {found.group().replace(' ', '')[:60]}"] = None
    for found in PATCH.finditer(joined):
        strong[f"the assignment {found.group().replace(' ', '')[:60]}"] = None
    if ALWAYS_EQUAL.search(joined):
        strong["a comparison that is always true"] = None
    elif "__eq__" in code:
        weak["the name __eq__"] = None
    touches = tuple(sign for sign in strong if "_assay_" in sign)
    return SignalScan(tuple(strong)[:MOST], tuple(weak)[:MOST], touches)


STRONG_NOTICED = re.compile(
    r"sys\._getframe|gc\.get_|sys\.set|sys\.addaudithook|os\.|subprocess\.|pty\.|socket\.|sys\._current_frames|signal\."
    r"|ctypes\.|opened |.* was replaced|a value that equals anything"
)


def noticed(notices: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the sandbox harness's notices that match a known form. Their text is hostile."""
    return tuple(ascii(notice)[1:-1][:120] for notice in notices if STRONG_NOTICED.match(notice))[:MOST]
