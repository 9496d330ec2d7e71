"""Where things lie in a data folder, for those who do not own them."""

from __future__ import annotations

from pathlib import Path

from appliance.config import Settings
from runtime.settings import RuntimeSettings


def sandboxes(data: Path) -> Path:
    """The runtime's own folder: swept by the core, used by the worker."""
    return data / "run" / "sandboxes"


def policy_file(data: Path) -> Path | None:
    """The owner's policy; None where the packaged one is in force."""
    path = data / "policy.toml"
    return path if path.exists() else None


def runtime_settings(settings: Settings, data: Path) -> RuntimeSettings:
    """Where and within which limits code runs."""
    sandbox = settings.sandbox
    return RuntimeSettings(
        state_dir=sandboxes(data),
        root_dir=data / "run" / "guest-roots",
        runsc=str(sandbox.runsc) if sandbox.runsc else None,
        python=str(sandbox.python) if sandbox.python else None,
        limits=sandbox.limits(),
        process_children=sandbox.process_children,
        ready_sandboxes=sandbox.ready_sandboxes,
    )
