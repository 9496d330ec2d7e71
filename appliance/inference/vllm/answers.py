"""Schemas of an engine's answers: an invalid answer is an engine fault."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from appliance.inference.vllm.process import EngineFault

LogProbability = Annotated[float, Field(lt=1e-3, allow_inf_nan=False)]


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)


class _RowReport(_Answer):
    number: int
    ids: list[int]
    logprobs: list[LogProbability]
    ended: str
    cached: int
    versions: list[list[str | int]]


class _Reports(_Answer):
    reports: list[_RowReport]


class _Scores(_Answer):
    scores: list[list[LogProbability]]


ANSWERS: dict[str, type[_Answer]] = {"step": _Reports, "probe": _Reports, "drain": _Reports, "score": _Scores}
"""Schema by request kind; other answers are compared field by field by their callers."""


def require_answer(kind: str, answer: dict[str, Any]) -> None:
    """Raises EngineFault unless the engine process's answer is valid for this kind of request."""
    if kind not in ANSWERS:
        return
    try:
        ANSWERS[kind].model_validate(answer)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise EngineFault(f"invalid answer of the engine to {kind}: {where}: {fault['msg']}") from error
