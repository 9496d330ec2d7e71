"""Model judge of soft checklist items: the engine scores each choice as the first token of an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

from appliance.inference.engine import Engine, ModelError
from appliance.rendering.renderer import Renderer
from runtime.errors import InfrastructureError
from verifiers.contract.protocols import JudgeError

LEAST_MASS = 0.1
"""Minimum total probability of the choices; below, the model would have answered something else."""


class EngineJudge:
    """`Judge` that asks the model of an engine with weights and no other user; callers in threads take turns."""

    def __init__(self, engine: Engine, renderer: Renderer, *, most_tokens: int | None = None) -> None:
        """Creates a judge that asks the engine's model. `most_tokens` is the model's context, including one answer
        token."""
        self._most = most_tokens
        self._engine = engine
        self._renderer = renderer
        self._lock = Lock()

    def judge(self, prompt: str, choices: Sequence[str]) -> Sequence[float]:
        """Returns the model's probability of each choice as the answer to a prompt, by its first token. Raises
        JudgeError."""
        firsts = [self._renderer.plain(choice)[0] for choice in choices]
        if len(set(firsts)) < len(firsts):
            raise JudgeError("two choices begin with the same token")
        ids = self._renderer.question(prompt)
        if self._most is not None and len(ids) >= self._most:
            raise JudgeError(f"the judge's model reads {self._most} tokens, and the question has {len(ids)}")
        try:
            with self._lock:
                scores = self._engine.score([(*ids, first) for first in firsts])
        except (ModelError, InfrastructureError, ValueError, RuntimeError) as error:
            raise JudgeError(f"the judge's model cannot answer: {error}") from error
        shares = [math.exp(score[-1]) for score in scores]
        if not sum(shares) >= LEAST_MASS:
            raise JudgeError("the model answers none of the choices")
        return shares
