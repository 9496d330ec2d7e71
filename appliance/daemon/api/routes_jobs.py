"""API routes of jobs, their files, validations and artifacts."""

from __future__ import annotations

from appliance.client.messages import JobDetail, StoredFile, SubmitJob, ValidationEnvelope
from appliance.daemon.api import status
from appliance.daemon.api.requests import ApiRoute, get, post
from appliance.daemon.coordination.core import Core
from appliance.records.artifacts import Artifact
from appliance.records.jobs import MAX_JOB_FILE_BYTES, Job

MAX_JOB_BYTES = 8 << 20
"""Maximum size of a submitted job, in bytes: a spec may include tests or sources."""


def job_routes(core: Core) -> list[ApiRoute]:
    return [
        get("/v1/jobs", list[Job], lambda asked: status.jobs_of(core, asked.limit(50)), "Newest first.", ("limit",)),
        get(
            "/v1/jobs/{id}",
            JobDetail,
            lambda asked: status.job_detail(core, asked.path["id"]),
            "A job with its bundle.",
        ),
        get(
            "/v1/validations",
            list[Job],
            lambda asked: core.validations.waiting(asked.limit(50)),
            "Jobs whose check nobody has validated.",
            ("limit",),
        ),
        get(
            "/v1/artifacts",
            list[Artifact],
            lambda asked: core.ledger.artifacts(asked.limit(50)),
            "Newest first.",
            ("limit",),
        ),
        post(
            "/v1/jobs",
            Job,
            lambda asked: status.as_it_stands(core, core.jobs.submit(asked.body(SubmitJob))),
            "Submits a job.",
            SubmitJob,
            MAX_JOB_BYTES,
        ),
        post("/v1/jobs/{id}/cancel", Job, lambda asked: core.jobs.cancel(asked.path["id"]), "Cancels a job."),
        post("/v1/jobs/{id}/resume", Job, lambda asked: core.jobs.resume(asked.path["id"]), "Resumes a parked job."),
        post(
            "/v1/jobs/{id}/retry",
            Job,
            lambda asked: core.jobs.retry(asked.path["id"]),
            "Retries a job with the next seed.",
        ),
        post(
            "/v1/jobs/{id}/validation",
            Job,
            lambda asked: core.validations.record(asked.path["id"], asked.envelope(ValidationEnvelope)),
            "Records a person's statement on its check.",
            ValidationEnvelope,
        ),
        post(
            "/v1/files",
            StoredFile,
            lambda asked: core.jobs.put_file(asked.content),
            "Stores a file for a job.",
            bytes,
            MAX_JOB_FILE_BYTES,
        ),
    ]
