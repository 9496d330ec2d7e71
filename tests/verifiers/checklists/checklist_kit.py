"""What several tests of checklists use: the lists and the texts of the canaries."""

from __future__ import annotations

from verifiers.checklists.kind import CHECKLIST
from verifiers.registry.canaries import cases_of, specs_of

CASES = cases_of(CHECKLIST)
SPECS = specs_of(CHECKLIST)
PLAIN, REPORT, WATER = SPECS["plain"], SPECS["report"], SPECS["water"]
HONEST_WATER = next(case.submission for case in CASES if case.name == "honest-explanation")
