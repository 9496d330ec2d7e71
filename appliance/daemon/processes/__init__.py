"""Child processes of the daemon and their supervision, and the daemon's own privileges and socket.

Open `startup.py` (broker, then dropping root) and `worker_process.py` (one worker) first. `broker_guard.py` is a
program of its own, standard library only; `fork_server.py` forks workers, `gateway_process.py` runs the gateway,
`wake_thread.py` is the thread that all loops of the daemon use.
"""
