"""The tables of the screen, in the order of the tab key."""

from __future__ import annotations

from tui.jobs import JOBS
from tui.models import MODELS
from tui.rollouts import ROLLOUTS
from tui.table import Table

TABLES: tuple[Table, ...] = (ROLLOUTS, MODELS, JOBS)
