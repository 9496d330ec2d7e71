"""Numbers how a call ended, as the guest says it on the wire. What the host makes of it depends on what it measured
itself; it has them as `runtime.guest.wire.ReplyKind`."""

from __future__ import annotations

OK = 0
EXCEPTION = 1
OUTPUT = 2
DIED = 3
"""With `EXITED` as its report when the process ended by itself and was not killed, as its kernel has it."""
DENIED = 4
SLICE = 5
MEMORY = 6
"""With `FULL` as its report when what other sessions keep leaves too little room for anyone."""
IMPURE = 7
KILLED = 8
READY = 9
REFUSED = 10
TIMEOUT = 11

FULL = b"full"
EXITED = b"exited"
FROM_USER_PROCESS = (OK, EXCEPTION)
"""The only ones that a process with user code in it may claim; all others are said by its supervisor or the host."""
