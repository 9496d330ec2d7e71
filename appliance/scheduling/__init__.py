"""This package decides which rollout runs on which engine, and when. It is pure: no engine, no clock, no thread."""
