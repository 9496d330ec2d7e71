"""Where the head of the audit log is kept outside the data folder.

What always holds: not inside of it, where an old copy of the whole folder would bring its own.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.config_layers import ConfigError

if TYPE_CHECKING:
    from appliance.client_config import ClientSettings


def head_files(settings: ClientSettings, data: Path) -> tuple[Path, ...]:
    """Where the audit log's head is kept outside the data folder, and the witness if there is one. Raises ConfigError
    for a place in the data folder."""
    name = hashlib.sha256(bytes(data.resolve())).hexdigest()[:16]
    head = settings.audit.head or _state_folder() / "assay" / "heads" / name
    files = (head,) if settings.audit.witness is None else (head, settings.audit.witness)
    if any(file.resolve().is_relative_to(data.resolve()) for file in files):
        raise ConfigError(
            f"the audit log's head would be kept in the data folder {data}, where it shows nothing",
            hint="set audit.head (ASSAY_AUDIT__HEAD) to a file outside of it",
        )
    return files


def _state_folder() -> Path:
    """The user's, or one of that user's in /var/tmp for whoever has no home."""
    state, home = os.environ.get("XDG_STATE_HOME"), Path("~").expanduser()
    if state:
        return Path(state)
    if os.access(home, os.W_OK):
        return home / ".local" / "state"
    return Path("/var/tmp", f"assay-{os.geteuid()}")  # noqa: S108 - kept over a start, and only in a folder of its own
