"""Dr. GRPO (2503.20783): GRPO without its two biases.

The advantage is not divided by the spread of rewards, which favours tasks that are almost always or never solved; the
loss is divided by a constant independent of answer length: rollouts times the maximum tokens of a conversation.
"""

from __future__ import annotations

from appliance.learning.objectives.dapo import losses
from appliance.learning.objectives.objective import Objective, centred

DR_GRPO = Objective(
    clip=(0.20, 0.20), divisor=centred, losses=losses, denominator=lambda tokens, answers, most: answers * most
)
