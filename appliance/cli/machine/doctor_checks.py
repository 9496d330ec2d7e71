"""One check of `assay doctor`: name, grade, finding, advice, and the page with more about it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import computed_field

from runtime.model import FrozenModel


class CheckGrade(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNDECIDED = "busy"
    """Not looked at, because the machine is too busy."""


GENERAL_PAGE = "install"
PAGES = {
    **dict.fromkeys(("broker", "socket", "disk", "memory"), "operate"),
    **dict.fromkeys(("vllm", "section [vllm]", "gpus", "gpu users", "learners"), "engines"),
    **dict.fromkeys(("shared memory", "ptrace", "peer access", "cluster", "placement"), "engines"),
    **dict.fromkeys(("cgroups", "sandbox", "packages", "gvisor", "nsjail"), "sandboxes"),
    **dict.fromkeys(("gvisor self-test", "nsjail self-test"), "sandboxes"),
    **dict.fromkeys(("answers", "claims", "checklists", "lean", "programs"), "verifiers"),
    "model": "training",
    "first prompt": "training",
    "policy": "governance",
}
"""Page in docs/ by name of a check; `GENERAL_PAGE` for the rest."""


class DoctorCheck(FrozenModel):
    """Result of one check of `assay doctor`. `advice` is what to do, or for `ok` what is worth knowing; it may be
    empty."""

    name: str
    grade: CheckGrade
    figure: str
    advice: str = ""
    whole: str = ""
    """Text that the figure shortens, where it does."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def page(self) -> str:
        """Page of the documentation about the part that was checked."""
        return f"docs/{PAGES.get(self.name, GENERAL_PAGE)}.md"


def ok(name: str, figure: str, advice: str = "") -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.OK, figure=figure, advice=advice)


def warning(name: str, figure: str, advice: str) -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.WARNING, figure=figure, advice=advice)


def failed(name: str, figure: str, advice: str) -> DoctorCheck:
    return DoctorCheck(name=name, grade=CheckGrade.FAILED, figure=figure, advice=advice)


def undecided(name: str, figure: str) -> DoctorCheck:
    again = "try again when the machine is less busy; nothing is known to be wrong"
    return DoctorCheck(name=name, grade=CheckGrade.UNDECIDED, figure=figure, advice=again)
