"""Inference: engines that sample. Token ids go in; token ids and log-probabilities come out.

Open `engine` first: it defines the interface. `torch` is the built-in engine, `vllm` runs vLLM in a server process,
`http` talks to an API on this machine. Text, tools and tasks are unknown here; `appliance.rendering` turns text into
tokens.
"""
