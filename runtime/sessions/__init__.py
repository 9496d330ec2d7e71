"""What a rollout holds: sessions, the tiers they move between, and the pool that they come from."""
