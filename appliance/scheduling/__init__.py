"""This package decides which rollout runs on which engine, and when: a pure scheduler, and the pool that asks it."""
