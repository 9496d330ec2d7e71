"""The engine vLLM: a process of its own that samples, and what proves that it holds the trainer's weights."""
