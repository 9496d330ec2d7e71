"""The bench with the nsjail backend, whose boxes are smaller."""

from __future__ import annotations

from box_kit import PROFILE as LARGER
from box_kit import Bench

from runtime.backends.nsjail import NsJail
from runtime.settings import BrokerSettings

PROFILE = LARGER.model_copy(update={"memory_mib": 96, "process_memory_mib": 256, "pids": 32})


class Jails(Bench):
    def __init__(self, settings: BrokerSettings) -> None:
        super().__init__(settings, NsJail, PROFILE)
