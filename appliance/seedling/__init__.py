"""The embedded default policy model: a small standard architecture and its own tokenizer, made from nothing."""
