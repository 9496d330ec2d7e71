"""Lists the objectives by their name in the recipe. A new one is a module beside this and a row here."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.learning.objectives.dr_grpo import DR_GRPO
from appliance.learning.objectives.grpo import GRPO
from appliance.learning.objectives.gspo import GSPO
from appliance.learning.objectives.objective import Objective

OBJECTIVES: Mapping[str, Objective] = {"grpo": GRPO, "dr_grpo": DR_GRPO, "gspo": GSPO}
