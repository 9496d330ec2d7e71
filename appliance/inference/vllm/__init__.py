"""vLLM engine: samples in a separate process, and proves that it has the trainer's weights.

Open `engine` first, then `supervisor`, which starts, proves and replaces processes. `process` is one process and its
socket, `server` the code that runs inside it, `placement` says where. vLLM itself is never imported here: it has its
own interpreter.
"""
