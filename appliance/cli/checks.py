"""One observation of the doctor's: a name, a grade, a figure, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Check(BaseModel):
    """`advice` is what to do, or for `ok` what is worth knowing; it may be empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    grade: Grade
    figure: str
    advice: str = ""


def ok(name: str, figure: str, advice: str = "") -> Check:
    return Check(name=name, grade=Grade.OK, figure=figure, advice=advice)


def warning(name: str, figure: str, advice: str) -> Check:
    return Check(name=name, grade=Grade.WARNING, figure=figure, advice=advice)


def failed(name: str, figure: str, advice: str) -> Check:
    return Check(name=name, grade=Grade.FAILED, figure=figure, advice=advice)
