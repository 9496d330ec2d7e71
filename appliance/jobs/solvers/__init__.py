"""Cheap solvers: they go first, and the policy model is asked only for what they leave open."""
