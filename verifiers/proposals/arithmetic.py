"""Exact solutions of arithmetic and equations that a question contains literally.

The spec's own answer is never read, and a question gets few proposals: trying one number after another on a spec that
names the answer would be reading the answer, not solving.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Negation, Sum, symbols
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reading.plain import parse_expression
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.protocols import ProposalReply
from verifiers.registry.spec import Spec

MOST = 3
"""Maximum number of proposals per question."""
MATHEMATICAL = re.compile(r"(?:[0-9.,+*/^()=!%-]|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|sqrt)+")
SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "^"})
OPERATOR = re.compile(r"(?<=[0-9A-Za-z)!])\s*(?:\*\*|[-+*/^])\s*(?=[-0-9A-Za-z(])|!|sqrt")


def worked_out(spec: Spec, question: str, more_time: Callable[[], bool]) -> ProposalReply:
    texts: dict[str, None] = {}
    for piece in pieces(question):
        if len(texts) >= MOST or not more_time():
            break
        for text in _answers(piece, spec):
            texts.setdefault(text)
    return ProposalReply(
        texts=tuple(texts)[:MOST], by="arithmetic", note="" if texts else "no arithmetic in the question"
    )


def pieces(question: str) -> Iterator[str]:
    """Yields the formulas in a question, runs of its words, longest first: `7x+3=45` of `find x with 7x+3=45`."""
    found: list[list[str]] = [[]]
    for word in question.translate(SIGNS).split():
        bare = word.rstrip("?.,;:").lstrip("\"'")
        if bare and MATHEMATICAL.fullmatch(bare):
            found[-1].append(bare)
        else:
            found.append([])
        if bare != word:
            found.append([])
    texts = [" ".join(words).strip(", ") for words in found]
    yield from sorted((text for text in texts if "=" in text or OPERATOR.search(text)), key=len, reverse=True)


def _answers(piece: str, spec: Spec) -> Iterator[str]:
    try:
        if "=" not in piece:
            value = rational(parse_expression(piece))
            if value is not None:
                yield str(value)
            return
        left, _, right = piece.replace("==", "=").partition("=")
        if not right.strip(" ?"):
            yield from _answers(left, spec)
            return
        letters = sorted(set(re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", piece)))
        if len(letters) != 1 or "=" in right:
            return
        zero = Sum((parse_expression(left, letters), Negation(parse_expression(right, letters))))
        if not symbols(zero):
            return
    except GrammarError:
        return
    from verifiers.proposals.roots import solutions

    roots = list(solutions(zero, letters[0]))
    if len(roots) > 1 and isinstance(spec, AnswerSpec) and spec.notation == "any":
        yield ", ".join(roots)
    yield from roots
