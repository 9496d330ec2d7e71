"""Sentences in which a text speaks of itself: that it fulfils the list, or has a word in it. They count for nothing."""

from __future__ import annotations

import re

from verifiers.checklists.prose import sentences

WHAT = r"(?:items?|points?|constraints?|requirements?|criteria|conditions|checklists?|instructions?|keywords?)"
DONE = r"(?:met|satisfied|fulfilled|fulfils?|satisf(?:y|ies)|meets?|completed?|checked|followed|passed|included)"
TEXT = r"(?:this|my|the) (?:answer|text|response|essay|submission|reply|output)"
CLAIM = re.compile(
    rf"\b(?:all|every|each|both)\b.{{0,60}}\b{WHAT}\b.{{0,60}}\b{DONE}\b"
    rf"|\b{TEXT} (?:meets|satisfies|fulfils|fulfills|follows|passes|deserves|mentions|contains|includes)\b"
    rf"|\b(?:is|are|occurs?|appears?|mentioned|included|contained|present) in {TEXT}\b"
    r"|\bthe (?:whole |entire )?checklist (?:is|was|has been) \w+",
    re.IGNORECASE,
)


def is_claim(sentence: str) -> bool:
    return CLAIM.search(sentence) is not None


def without_claims(text: str) -> str:
    """The sentences of one block that speak of something else; the text itself where none is a claim."""
    if not CLAIM.search(text):
        return text
    return " ".join(sentence for sentence in sentences(text) if not is_claim(sentence))
