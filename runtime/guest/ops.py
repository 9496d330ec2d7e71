"""Numbers what the host asks of a guest, on the wire. Plain integers, because `enum` costs a guest 0.9 MB; the host has
them as `runtime.guest.wire.Op`."""

from __future__ import annotations

RUN = 1
"""Body: source. Reply: OK, EXCEPTION or how it failed."""
COMPILE = 2
"""Body: source that should not compile. Reply: EXCEPTION, or IMPURE when it compiles after all. Shared mode only."""
OPEN = 3
"""Asks for a process for this session number; answered with READY once it waits for code. In a sandbox of one session
that one, 0, is open from the start, with one process for ever: once it has ended, DIED."""
DROP = 4
"""Forgets the session, and kills its process if it has one. No reply."""
KILL = 5
"""Kills the process of the session; its call in progress is answered with KILLED."""
EXEC = 6
"""Body: `wire.exec_body`. Reply: output, and JSON {exit_code, stdout_bytes} as the report; or REFUSED, with a reason,
and as its output the number of the system's error, `NO_USER`, or nothing. So for the next two and STAGE."""
READ = 7
"""Body: `wire.read_body`. Reply: OK with at most so many bytes from there on, fewer only at the end of the file, and
its size as the report; or REFUSED."""
WRITE = 8
"""Body: `wire.write_body`. Reply: OK or REFUSED."""
PING = 9
"""Answered with READY at once. How the broker knows that a restored sandbox lives."""
RESEED = 10
"""Body: 32 bytes. Other random numbers from here on, in the supervisor and in every process of a session, before its
next call; answered with READY. What it cannot change is said in `runtime.guest.seeds`."""
LIST = 11
"""Body: `wire.list_body`. Reply: OK with `frames.ENTRY` records, paths relative to the folder, folders before what is
in them; or REFUSED, with a reason that begins with `more than` where it is too much."""
SEED = 12
"""Body: 32 bytes. Other random numbers for this session alone, the same wherever they are asked for after the same
calls; answered with READY."""
STAGE = 13
"""Body: `wire.stage_body`. Keeps a piece of what the next WRITE or EXEC is to have; one from 0 on forgets the others.
Reply: OK or REFUSED."""
WARN = 14
"""Sends SIGURG to the process of the session: the time of its call is over, and what it does not end it ends with. Does
nothing unless its code has a handler. No reply."""

NO_USER = b"user"
