"""Any text is read or refused, quickly and always alike, and what is read means what Z3 reads there."""

from __future__ import annotations

import os
import re
import time
from random import Random

import pytest
import z3
from smt_kit import RandomTerms

from verifiers.registry.canaries import cases_of
from verifiers.smt.kind import SMT
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.render import TooLong, query_text
from verifiers.smt.language.script import SmtClaim, read_text
from verifiers.smt.supplied import read_definitions, read_term

PIECE = re.compile(r'\(|\)|\|[^|]*\||"[^"]*"|[^\s()|"]+|\s+')
SOUP = [
    *"()()()()()xyfab", " ", "|", "\\", '"', ";", "\n", ":named", "goal", "let", "forall", "exists", "!", "_", "as",
    "const",
    "declare-const", "declare-fun", "declare-sort", "define-fun", "assert", "check-sat", "set-logic", "ALL", "minimize",
    "Int", "Real", "Bool", "(_ BitVec 8)", "(Array Int Int)", "0", "1", "00", "-1", "2.50", ".5", "#x0f", "#xg",
    "#b102",
    "1e9", "99999999999999999999", "and", "or", "not", "=>", "xor", "=", "distinct", "ite", "+", "-", "*", "/", "div",
    "mod", "abs", "<", ">=", "to_real", "is_int", "(_ divisible 3)", "bvadd", "bvudiv", "concat", "(_ extract 3 0)",
    "(_ zero_extend 4)", "(_ bv5 8)", "select", "store", "true", "false", "reset", "\x00", "é", "{", "}", '"x": 3', ",",
]  # fmt: skip
DECLARED = {"Bool": ["p", "q"], "Int": ["x", "y"], "Real": ["r"], 8: ["b", "c"]}
DECLARATIONS = (
    "(declare-const p Bool)(declare-const q Bool)(declare-const x Int)(declare-const y Int)(declare-const r Real)"
    "(declare-const b (_ BitVec 8))(declare-const c (_ BitVec 8))"
)
ASIDE = re.compile(r"set-logic|set-info|check-sat|minimize|maximize")
"""Claims with these are not put to Z3's parser, which does more with them than read."""


def _changed(source: Random, text: str) -> str:
    """A few pieces of it left out, doubled, exchanged or replaced."""
    pieces = PIECE.findall(text)[:400]
    for _ in range(source.choice([1, 1, 1, 2, 3, 8])):
        if not pieces:
            break
        at = source.randrange(len(pieces))
        match source.randrange(5):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, source.choice(SOUP))
            case 2:
                pieces[at] = source.choice(SOUP)
            case 3:
                other = source.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case _:
                other = min(len(pieces), at + source.randint(1, 6))
                pieces[at:at] = pieces[at:other]
    return "".join(pieces)


def _random_text(source: Random, known: list[str]) -> str:
    match source.randrange(4):
        case 0:
            return " ".join(source.choices(SOUP, k=source.randint(0, 40)))
        case 1:
            return _changed(source, source.choice(known))
        case _:
            terms = RandomTerms(source, {sort: list(names) for sort, names in DECLARED.items()})
            text = DECLARATIONS + "".join(f"(assert {terms.term('Bool', 3)})" for _ in range(source.randint(1, 3)))
            return text if source.random() < 0.5 else _changed(source, text)


def _read(text: str) -> SmtClaim | str:
    try:
        return read_text(text)
    except ClaimError as error:
        return str(error)


def _written(claim: SmtClaim) -> str | None:
    try:
        return query_text([each.term for each in claim.assertions])
    except TooLong:
        return None


def _submitted(text: str, wanted: SmtClaim) -> None:
    lines: list[str] = []
    for read in (read_term, lambda text: read_definitions(text, wanted.declared, wanted.names)):
        try:
            read(text)
        except ClaimError as error:
            lines.append(str(error))
    assert all(each.isprintable() for each in lines), lines


def _means_what_z3_reads(text: str, written: str) -> bool:
    """Whether Z3 was asked. Raises AssertionError where its own parser finds another claim, or none."""
    if ASIDE.search(text) or "|" in text:
        return False
    if "divisible" in text:  # which that parser does not know
        return False
    theirs = z3.And(*z3.parse_smt2_string(f"(set-logic ALL){text}"))
    ours = z3.And(*z3.parse_smt2_string(written))
    if z3.eq(z3.simplify(ours), z3.simplify(theirs)):
        return True
    solver = z3.Solver()
    solver.set("rlimit", 200_000)
    solver.add(z3.Xor(ours, theirs))
    found = solver.check()
    assert found != z3.sat, (text, written)
    return bool(found == z3.unsat)


def fuzz(seed: int, *, texts: int | None = None, seconds: float = 0.0) -> str:
    """Until so many texts, or so long; what was done, in a few words."""
    source = Random(seed)
    known = [text for case in cases_of(SMT) for text in (case.spec.claim, case.submission) if len(text) < 4_000]  # type: ignore[union-attr]
    wanted = read_text(DECLARATIONS)
    until = time.monotonic() + seconds
    count = accepted = compared = 0
    slowest = 0.0
    while count < texts if texts is not None else time.monotonic() < until:
        text = _random_text(source, known)
        started = time.process_time()
        found = _read(text)
        _submitted(text, wanted)
        slowest = max(slowest, time.process_time() - started)
        count += 1
        if isinstance(found, str):
            assert found.isprintable(), text
            assert _read(text) == found, text
            continue
        accepted += 1
        written = _written(found)
        if written is None:
            continue
        again = _read(written.replace("?t", "shared.").replace("?v", "bound."))  # names that claims may not take
        assert isinstance(again, SmtClaim), (text, again)
        assert _written(again) == written, text
        compared += _means_what_z3_reads(text, written)
    assert slowest < 5, slowest
    return f"seed {seed}: {count} texts, {accepted} read, {compared} compared with Z3's parser, slowest {slowest:.2f} s"


def test_texts_are_read_or_refused_and_mean_what_z3_reads() -> None:
    fuzz(int(os.environ.get("FUZZ_SEED", "1")), texts=150)


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_ten_minutes_of_texts_are_read_or_refused_and_mean_what_z3_reads() -> None:
    print(fuzz(int(os.environ.get("FUZZ_SEED", "1")), seconds=float(os.environ.get("FUZZ_SECONDS", "600"))))
