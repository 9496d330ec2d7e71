"""Registry of objectives by their name in the recipe. A new one is a module beside this and a row here."""

from __future__ import annotations

from appliance.learning.objectives.cispo import CISPO
from appliance.learning.objectives.dapo import DAPO
from appliance.learning.objectives.dppo import DPPO
from appliance.learning.objectives.dr_grpo import DR_GRPO
from appliance.learning.objectives.grpo import GRPO
from appliance.learning.objectives.gspo import GSPO
from appliance.learning.objectives.max_rl import MAX_RL
from appliance.learning.objectives.objective import Objective
from appliance.learning.objectives.reinforce import REINFORCE
from common.plugins.table import OpenTable

_BUILT_IN = {
    "grpo": GRPO,
    "dapo": DAPO,
    "dr_grpo": DR_GRPO,
    "gspo": GSPO,
    "cispo": CISPO,
    "dppo": DPPO,
    "max_rl": MAX_RL,
    "reinforce": REINFORCE,
}
OBJECTIVES: OpenTable[Objective] = OpenTable("objectives", _BUILT_IN, by_reference=True)
