"""One observation of the doctor's: a name, a grade, a figure, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from runtime.model import FrozenModel


class CheckGrade(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class DoctorCheck(FrozenModel):
    """`advice` is what to do, or for `ok` what is worth knowing; it may be empty."""

    name: str
    grade: CheckGrade
    figure: str
    advice: str = ""


def ok(name: str, figure: str, advice: str = "") -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.OK, figure=figure, advice=advice)


def warning(name: str, figure: str, advice: str) -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.WARNING, figure=figure, advice=advice)


def failed(name: str, figure: str, advice: str) -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.FAILED, figure=figure, advice=advice)
