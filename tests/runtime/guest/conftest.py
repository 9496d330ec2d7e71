"""Tests of what only a real sandbox may run use the bench of the backends' tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "backends"))
