"""Built-in default policy model: a small standard architecture and a tokenizer, created from scratch.

`model` creates and saves the model, `tokenizer` trains the tokenizer. Training it is `appliance.worker.sft`.
"""

POSITIONS = 256
"""Maximum tokens of its conversations."""
