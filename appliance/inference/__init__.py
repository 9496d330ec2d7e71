"""Token ids in, token ids and log-probabilities out: the engine seam and its implementations."""
