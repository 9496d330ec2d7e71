"""This package makes the embedded default policy model from nothing: a small standard architecture and a tokenizer."""
