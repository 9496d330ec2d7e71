"""One observation of the doctor's: a name, a grade, a figure, what to do about it, and where more is said."""

from __future__ import annotations

from enum import StrEnum

from pydantic import computed_field

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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def page(self) -> str:
        """The place in the documents that says what it looks at and how it is mended."""
        return f"docs/doctor.md#{self.name.lower().replace(' ', '-')}"


def ok(name: str, figure: str, advice: str = "") -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.OK, figure=figure, advice=advice)


def warning(name: str, figure: str, advice: str) -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.WARNING, figure=figure, advice=advice)


def failed(name: str, figure: str, advice: str) -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.FAILED, figure=figure, advice=advice)
