"""Games whose rules nobody is told, in the manner of ARC-AGI-3."""
