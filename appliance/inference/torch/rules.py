"""Restricts the draws of single rows: by a grammar, or to the most probable tokens.

Invariants: rows without a rule are drawn as ever. A grammar is compiled once; who gives one has compiled it before in
a process of its own, as that can take all memory. If llguidance gives up on a turn, the turn ends there, and `Turn.ids`
do not fit the grammar: who asked for it checks what it got.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from appliance.inference.engine import DrawRule, GenerationRequest, ModelFiles

TOKENIZER = "tokenizer.json"
MOST_COMPILED = 32
"""Grammars that stay compiled."""


class DrawRules:
    """Rules of an engine's unfinished turns, by request."""

    def __init__(self) -> None:
        self._tokenizer = ""
        """Text of the model's tokenizer.json; empty if it is unknown."""
        self._readers: dict[tuple[int, ...], Any] = {}
        """llguidance's tokenizer by stop tokens."""
        self._compiled: OrderedDict[tuple[str, tuple[int, ...]], Any] = OrderedDict()
        """Unused matchers by grammar and stop tokens."""
        self._rules: dict[int, DrawRule] = {}
        self._matchers: dict[int, Any] = {}
        self._top: dict[int, list[tuple[tuple[int, float], ...]]] = {}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def load(self, weights: object) -> None:
        """Takes a model's tokenizer from its files; a model without files has none."""
        files: ModelFiles = weights if isinstance(weights, Mapping) else {}
        self.clear()
        self._readers = {}
        self._compiled.clear()
        self._tokenizer = files.get(TOKENIZER, b"").decode(errors="replace")

    def clear(self) -> None:
        for told in (self._rules, self._matchers, self._top):
            told.clear()

    def add(self, request: GenerationRequest, vocabulary: int) -> None:
        """Applies a request's rule to its first turn. Raises ValueError for an unusable grammar."""
        rule = request.rule
        if rule is None:
            return
        if rule.grammar:
            self._matchers[request.id] = self._matcher(rule.grammar, request, vocabulary)
        self._rules[request.id] = rule
        self._top[request.id] = []

    def _matcher(self, grammar: str, request: GenerationRequest, vocabulary: int) -> Any:
        if not self._tokenizer:
            raise ValueError("an answer can be bound to a grammar only for a model with its tokenizer.json")
        key = (grammar, request.stops)
        if key not in self._compiled:
            self._compiled[key] = self._made(grammar, request.stops, vocabulary)
            while len(self._compiled) > MOST_COMPILED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        matcher = self._compiled[key].deep_copy()
        begun = request.prompt[len(request.prompt) - request.rule.drawn :] if request.rule is not None else ()
        if not matcher.consume_tokens(list(begun)):
            raise ValueError("the turn does not begin as its grammar does")
        return matcher

    def _made(self, grammar: str, stops: tuple[int, ...], vocabulary: int) -> Any:
        from llguidance import LLMatcher, LLTokenizer

        if stops not in self._readers:
            self._readers[stops] = LLTokenizer(self._tokenizer, n_vocab=vocabulary, eos_token=list(stops))
        matcher = LLMatcher(self._readers[stops], LLMatcher.grammar_from_lark(grammar), log_level=0)
        if matcher.is_error():
            raise ValueError(f"the grammar cannot be used: {matcher.get_error().splitlines()[0][:200]}")
        return matcher

    def restrict(self, rows: Mapping[int, GenerationRequest], logits: Tensor, temperature: Tensor) -> None:
        """Sets the logits `[B, V]` of forbidden tokens to minus infinity, in place, for the rows of these requests;
        `temperature` is `[B]`."""
        for row, request in rows.items():
            rule = self._rules.get(request.id)
            if rule is None:
                continue
            if (matcher := self._matchers.get(request.id)) is not None:
                self._follow(matcher, request, logits[row])
            if rule.top_p < 1 and float(temperature[row]) > 0:
                logits[row] = nucleus(logits[row], float(temperature[row]), rule.top_p)
            if rule.top:
                given = float(temperature[row]) or 1.0
                best = ((logits[row] - logits[row].max()) / given).log_softmax(-1).topk(min(rule.top, logits.shape[-1]))
                pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
                self._top[request.id].append(tuple((token, value) for token, value in pairs if value > -torch.inf))

    def _follow(self, matcher: Any, request: GenerationRequest, logits: Tensor) -> None:
        """Forbids what a grammar does not allow next; everything but the stop token if its parser has given up."""
        allowed = b"" if matcher.is_error() else matcher.compute_bitmask()
        bits = np.unpackbits(np.frombuffer(allowed, np.uint8), bitorder="little")[: logits.shape[-1]].astype(bool)
        mask = torch.zeros(logits.shape[-1], dtype=torch.bool)
        mask[: len(bits)] = torch.from_numpy(bits)
        if matcher.is_error() or not mask.any():
            mask[list(request.stops)] = True
        logits.masked_fill_(~mask.to(logits.device), -torch.inf)

    @staticmethod
    def most_probable(logits: Tensor, temperature: float) -> tuple[int, float]:
        """Returns the most probable token of logits `[V]`, and its log-probability."""
        best = int(logits.argmax())
        return best, float(((logits - logits[best]) / (temperature or 1.0)).log_softmax(-1)[best])

    def drawn(self, request: GenerationRequest, token: int) -> None:
        """Tells a request's rule the token that was drawn."""
        matcher = self._matchers.get(request.id)
        if matcher is not None and token not in request.stops:
            matcher.consume_token(token)

    def end(self, request: int) -> tuple[tuple[tuple[int, float], ...], ...]:
        """Lifts a request's rule; returns the most probable tokens of its turn, if the rule asked for them."""
        rule = self._rules.pop(request, None)
        self._matchers.pop(request, None)
        top = self._top.pop(request, [])
        return tuple(top) if rule is not None and rule.top else ()


def nucleus(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """Returns logits `[V]` with minus infinity outside the most probable tokens at this temperature, the fewest whose
    probabilities sum to at least `top_p`. Source: Holtzman et al., The Curious Case of Neural Text Degeneration."""
    # After subtracting the peak, so that a tiny temperature gives no infinity.
    values, order = ((logits - logits.max()) / temperature).softmax(-1).sort(descending=True, stable=True)
    kept = values.cumsum(-1) - values < top_p
    kept[0] = True
    return logits.masked_fill(~torch.zeros_like(kept).scatter(0, order, kept), -torch.inf)
