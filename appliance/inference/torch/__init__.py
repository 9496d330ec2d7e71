"""Built-in torch engine: batched decoding in this process, on the CPU or one GPU.

Open `engine` first. `slots`, `blocks` and `rows` store the KV cache and the batch, `fused` and `generic` are decoders,
`probe` verifies a decoder against the model's own forward pass, and `core` runs the engine in a process of its own.
"""
