"""The bytes of a job's files, as they were given: `files/<sha256>` in the data folder, checked by their digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from appliance.records import Job
from runtime.errors import InfrastructureError

HINT = "give it again with `assay submit`, with its files"


def job_bytes(job: Job, data: Path) -> dict[str, bytes]:
    """By name. Raises InfrastructureError where one is gone or is not what was given."""
    found: dict[str, bytes] = {}
    for file in job.files:
        try:
            content = (data / "files" / file.sha256).read_bytes()
        except OSError as error:
            raise InfrastructureError(f"the file {file.name} cannot be read: {error.strerror}", hint=HINT) from error
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise InfrastructureError(f"the file {file.name} is not the one that was given any more", hint=HINT)
        found[file.name] = content
    return found
