"""Says what an engine's answers look like: what is none is a fault of the engine, whatever it is."""

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
"""By what is asked; of other answers, each field is compared with what it should be."""


def require_answer(kind: str, answer: dict[str, Any]) -> None:
    """Raises EngineFault unless it is one to that kind of question."""
    if kind not in ANSWERS:
        return
    try:
        ANSWERS[kind].model_validate(answer)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise EngineFault(f"the engine answers {kind} with what is no answer: {where}: {fault['msg']}") from error
