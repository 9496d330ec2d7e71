"""Server side of the vLLM engine, running in vLLM's own environment: imports nothing else of this program.

`serve` is the process, `core` drives vLLM, `worker` loads weights inside vLLM's workers, and `wire` is the message
format.
"""
