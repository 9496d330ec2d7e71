"""Documents about cycles."""

from __future__ import annotations

from appliance.client.messages import CycleDetail
from appliance.client.taskset_outcomes import TasksetOutcome


class CycleDocument(CycleDetail):
    tasksets: tuple[TasksetOutcome, ...]
