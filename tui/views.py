"""The screens, in the order of their number keys. Those of admitted distributions come last, on function keys."""

from __future__ import annotations

import re

from common.plugins.installed import PluginError
from common.plugins.table import OpenTable
from tui.widgets.view import View

VIEWS: tuple[View, ...] = (
    View("now", "1", "Now", "Now", "running work, speed, load and queue", "tui.screens.now:NowPane"),
    View(
        "learning",
        "2",
        "Learning",
        "Learn",
        "a night's curves, and success by taskset",
        "tui.screens.learning:LearningPane",
    ),
    View(
        "curriculum",
        "3",
        "Curriculum",
        "Curric",
        "pass rates by taskset and level",
        "tui.screens.curriculum:CurriculumPane",
    ),
    View("rollouts", "4", "Rollouts", "Rolls", "the model's attempts in full", "tui.screens.rollouts:RolloutsPane"),
    View(
        "checkpoints",
        "5",
        "Checkpoints",
        "Models",
        "models and the decisions about them",
        "tui.screens.models:ModelsPane",
    ),
    View("jobs", "6", "Jobs", "Jobs", "submitted jobs and their results", "tui.screens.jobs:JobsPane"),
    View(
        "validation",
        "7",
        "Validation",
        "Valid",
        "checks that wait for a person's validation",
        "tui.screens.validation:ValidationPane",
    ),
    View(
        "policy",
        "8",
        "Policy",
        "Policy",
        "the policy, its keys, and the audit log",
        "tui.screens.governance:GovernancePane",
    ),
    View("logs", "9", "Logs", "Logs", "worker's and broker's logs, and events", "tui.screens.logs:LogsPane"),
    View("gateway", "0", "Gateway", "Gate", "kept sessions of your own agent", "tui.screens.gateway:GatewayPane"),
)


def _unusable(name: str, view: View) -> str:
    """Returns why a screen from outside could take a built-in key; empty if it cannot."""
    return "" if re.fullmatch("f[1-9]|f1[0-2]", view.key) else f"its key {view.key!r} is not one of f1 to f12"


SCREENS: OpenTable[View] = OpenTable("screens", {view.name: view for view in VIEWS}, require=_unusable)


def all_views() -> tuple[View, ...]:
    """Returns all screens. Raises PluginError for two with the same key."""
    views = {view.key: view for view in SCREENS.values()}
    for name in SCREENS:
        if (other := views[SCREENS[name].key]).name != name:
            raise PluginError(f"plug-in {other.name}: {name} has its key {other.key}", hint="admit one of them")
    return tuple(views.values())
