"""A model as the judge of soft items: an engine asked for one token.

An engine tells the log-probability of what it draws and of nothing else. So the same prompt is asked many times at
temperature 1, with seeds of its own each time: it is read once, and every draw tells the exact probability of one first
token. A choice that was never drawn has at most the small probability that is left, and counts as 0. The same weights,
prompt and choices give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from threading import Lock

from appliance.agent.dialect import Codec
from appliance.inference.engine import Engine, ModelError, Request
from verifiers.checklists.judge import JudgeError

DRAWS = 32
"""A choice with a probability of 0.1 is missed by all of them in 3 of 100 prompts."""
FIRST_ID = 1 << 40
"""Far from the ids that a night's requests have."""


class EngineJudge:
    """A `Judge`. The engine must have weights, and nobody else may step it meanwhile; callers in threads take turns."""

    def __init__(self, engine: Engine, codec: Codec, *, draws: int = DRAWS, most_tokens: int | None = None) -> None:
        """`most_tokens`: what the model can read, its answer of one token included."""
        self._most = most_tokens
        self._engine = engine
        self._codec = codec
        self._draws = draws
        self._ids = count(FIRST_ID)
        self._lock = Lock()

    def judge(self, prompt: str, choices: Sequence[str]) -> Sequence[float]:
        """Probabilities of the choices by their first tokens, up to a common factor. Raises JudgeError."""
        firsts = [self._codec.plain(choice)[0] for choice in choices]
        if len(set(firsts)) < len(firsts):
            raise JudgeError("two choices begin with the same token")
        ids = self._codec.prompt(prompt)
        if self._most is not None and len(ids) >= self._most:
            raise JudgeError(f"the judge's model reads {self._most} tokens, and the question has {len(ids)}")
        with self._lock:
            seen = self._draw(ids)
        shares = [seen.get(token, 0.0) for token in firsts]
        if not sum(shares):
            raise JudgeError("the model answers with none of the choices")
        return shares

    def _draw(self, prompt: tuple[int, ...]) -> dict[int, float]:
        """The probability of each first token that was drawn."""
        requests = [
            Request(next(self._ids), prompt, self._codec.stop, len(prompt) + 1, temperature=1.0, seed=seed)
            for seed in range(self._draws)
        ]
        waiting = {request.id for request in requests}
        seen: dict[int, float] = {}
        try:
            for request in requests:
                self._engine.submit(request)
            while waiting:
                for turn in self._engine.step():
                    waiting.discard(turn.request)
                    seen[turn.ids[0]] = math.exp(turn.logprobs[0])
                    self._engine.finish(turn.request)
        except (ModelError, ValueError, RuntimeError) as error:
            raise JudgeError(f"the judge's model cannot answer: {error}") from error
        finally:
            for request in requests:
                self._engine.finish(request.id)
        return seen
