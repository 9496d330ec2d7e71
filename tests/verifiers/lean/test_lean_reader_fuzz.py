"""Any text is read or refused, quickly, and Lean sees no word that the reader took for a comment or a string."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest
from lean_kit import DEFINED, FALSE, Local

from verifiers.contract.errors import SpecError
from verifiers.lean.kind import LEAN
from verifiers.lean.reading.lexer import LeanToken, TokenKind, without_comments, words
from verifiers.lean.reading.screening import MOST_FINDINGS, ScreeningFinding, parts, screen
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import LeanStatement, read_statement
from verifiers.lean.submission import LeanSource, assemble
from verifiers.registry.canaries import cases_of

SOUP = [
    "--", "/-", "-/", "/--", "/-!", "\n", " ", "x", "-", "/", '"', "\\", "'", "|", "{", "}", "#", 'r#"', 'r"', '\\"',
    "\\\\", "!", "«", "»", "'a'", "'\\''", "`", "s!", "@[", "]", "(", ")", ":=", "⟨", ".", "é", "𝔸", "\0", "\r", "\t",
    "set_option", "axiom", "open", "in", "notation", "namespace", "end", "theorem", "target", "import", "prelude", "0x",
]  # fmt: skip
SHORT = SOUP[:26]
WITNESS = "axiom witness : True"
MOST_SECONDS = 2.0
LINES = [line for case in cases_of(LEAN) if 42 not in case.rows for line in case.submission.splitlines()]


def _changed(source: Random, text: str) -> str:
    for _ in range(source.choice([1, 1, 2, 4])):
        at = source.randrange(len(text) + 1)
        match source.randrange(4):
            case 0:
                text = text[:at] + source.choice(SOUP) + text[at:]
            case 1:
                text = text[:at] + text[at + source.randint(1, 12) :]
            case 2:
                text = text[:at] + text[max(0, at - source.randint(1, 30)) : at] * source.randint(1, 3) + text[at:]
            case _:
                text = text[:at] + "".join(source.choice(SOUP) for _ in range(source.randint(1, 8))) + text[at:]
    return text


def _texts(source: Random) -> Iterator[str]:
    """Canaries, changed; their lines, mixed; and soup."""
    while True:
        match source.randrange(3):
            case 0:
                yield _changed(source, source.choice(LINES))
            case 1:
                yield _changed(source, "\n".join(source.choice(LINES) for _ in range(source.randint(1, 8))))
            case _:
                yield "".join(source.choice(SOUP) for _ in range(source.randint(0, 60)))


def _read(text: str, spec: LeanSpec, statement: LeanStatement) -> str:
    """What became of it."""
    every = list(words(text))
    assert "".join(word.text for word in every) == text
    assert all(word.start == before.end for before, word in pairwise(every))
    found = screen(text, every, allowed=parts(spec.statement))
    assert found == screen(text, allowed=parts(spec.statement))
    assert len(found) <= MOST_FINDINGS
    code = [word for word in every if word.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]
    made = assemble(spec, statement, text, code)
    assert isinstance(made, (LeanSource, ScreeningFinding))
    with contextlib.suppress(SpecError):
        read_statement(spec.model_copy(update={"statement": text}))
    return "refused" if found or isinstance(made, ScreeningFinding) else "read"


def _hiding(source: Random) -> str:
    """Comments, strings and names, whole or not, one of which may hold the witness."""

    def junk() -> str:
        return "".join(source.choice(SHORT) for _ in range(source.randint(0, 5)))

    def piece(number: int, held: str) -> str:
        return source.choice([
            f"--{held}\n", f"/-{held}-/", f"/--{held}-/ theorem t{number} : True := True.intro\n",
            f'#check_failure "{held}"\n', f"#check_failure '{held[:1]}'\n", f'#check_failure r"{held}"\n',
            f'#check_failure r#"{held}"#\n', f"/-!{held}-/\n", f"theorem «t{held}» : True := True.intro\n", "\n",
            f"theorem t{number}' : True := True.intro ",
        ])  # fmt: skip

    found = [piece(number, junk()) for number in range(source.randint(1, 4))]
    at = source.randrange(len(found) + 1)
    found.insert(at, piece(9, f"{junk()} {WITNESS} {junk()}") if source.random() < 0.5 else f"{WITNESS}\n")
    return "".join(found)


def _seen(every: list[LeanToken]) -> bool:
    """Whether the reader takes the witness for code, or says that it cannot tell."""
    doubtful = (word.doubtful and word.kind is not TokenKind.COMMENT for word in every)
    return any(doubtful) or any(word.kind is TokenKind.NAME and word.text == "axiom" for word in every)


def fuzz(seed: int, local: Local, *, texts: int = 0, seconds: float = 0.0) -> dict[str, int]:
    """How many were what."""
    source = Random(seed)
    statements = [(spec, read_statement(spec)) for spec in (FALSE, DEFINED)]
    counts: Counter[str] = Counter()
    changed = _texts(source)
    end = time.monotonic() + seconds
    while sum(counts.values()) < texts or time.monotonic() < end:
        for _ in range(10):
            text = next(changed)
            began = time.process_time()
            counts[_read(text, *source.choice(statements))] += 1
            assert time.process_time() - began < MOST_SECONDS, text
        text = _hiding(source)
        every = list(words(text))
        text = without_comments(text, every)
        step = {"do": "step", "module": "X", "source": text, "header": [], "keep": True, "seconds": 30}
        files = {"X.olean": local.ask(step | {"memory_mib": 2048}).get("file")}
        if files["X.olean"] is None:
            counts["hidden, no file"] += 1
            continue
        check = {"do": "step", "module": "Y", "source": "", "files": files, "bare": ["X.olean"], "wanted": "witness"}
        has = local.ask(check | {"seconds": 30, "memory_mib": 2048})["has"]
        assert _seen(every) or not has, f"Lean sees what the reader does not: {text!r}"
        counts["hidden, declared" if has else "hidden, not declared"] += 1
    return dict(counts)


def test_any_text_is_read_or_refused_and_hides_nothing_from_the_reader(local: Local) -> None:
    counts = fuzz(int(os.environ.get("FUZZ_SEED", "1")), local, texts=200)
    assert counts["hidden, declared"]


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_ten_minutes_of_texts_hide_nothing_from_the_reader(local: Local) -> None:
    print(fuzz(int(os.environ.get("FUZZ_SEED", "1")), local, seconds=float(os.environ.get("FUZZ_SECONDS", "600"))))
