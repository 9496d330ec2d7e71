"""This package makes the embedded default policy model from nothing: a small standard architecture and a tokenizer."""

POSITIONS = 256
"""The most tokens of a conversation with it."""
