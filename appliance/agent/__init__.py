"""This package is the policy model at work: turns, tool calls and the message graph of a rollout."""
