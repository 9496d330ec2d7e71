"""The screens, in the order of their number keys."""

from __future__ import annotations

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
