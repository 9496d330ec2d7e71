"""Processes that decide texts: started, confined, timed and killed.

`service.py` is the interface to callers, `scheduler.py` assigns items and attributes failures, `zygote.py` is the fork
server, and `worker_process.py` is what a forked worker runs. `messages.py` and `progress.py` define how these talk.
Nothing here runs a model's code: that happens in the sandboxes of the broker.
"""
