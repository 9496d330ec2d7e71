"""Numbers of call outcomes, as the guest reports them on the wire.

The host combines them with its own measurements and knows them as `runtime.guest.wire.ReplyKind`.
"""

from __future__ import annotations

OK = 0
EXCEPTION = 1
OUTPUT = 2
DIED = 3
"""Report `EXITED` if the process exited by itself instead of being killed, according to its kernel."""
DENIED = 4
SLICE = 5
MEMORY = 6
"""Report `FULL` if state kept by other sessions leaves too little room for anyone."""
IMPURE = 7
KILLED = 8
READY = 9
REFUSED = 10
TIMEOUT = 11

FULL = b"full"
EXITED = b"exited"
FROM_USER_PROCESS = (OK, EXCEPTION)
"""Only kinds that a process with user code may claim; its supervisor or the host reports all others."""
