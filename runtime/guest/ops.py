"""Numbers of host requests to a guest, on the wire.

Plain integers, because `enum` costs a guest 0.9 MB; the host knows them as `runtime.guest.wire.Op`.
"""

from __future__ import annotations

RUN = 1
"""Body: source. Reply: OK, EXCEPTION or another outcome."""
COMPILE = 2
"""Body: source that should not compile. Reply: EXCEPTION, or IMPURE if it compiles. Shared mode only."""
OPEN = 3
"""Requests a process for this session number; READY once it waits for code. A single-session sandbox has session 0 open
from the start, with one process forever: after its end, DIED."""
DROP = 4
"""Forgets the session and kills its process, if any. No reply."""
KILL = 5
"""Kills the session's process; its running call is answered with KILLED."""
EXEC = 6
"""Body: `wire.exec_body`. Reply: output, and JSON {exit_code, stdout_bytes} as the report; or REFUSED with a reason,
and as output the errno, `NO_USER`, or nothing. The next two and STAGE fail likewise."""
READ = 7
"""Body: `wire.read_body`. Reply: OK with at most that many bytes from the offset, fewer only at the end of the file,
and the size as the report; or REFUSED."""
WRITE = 8
"""Body: `wire.write_body`. Reply: OK or REFUSED."""
PING = 9
"""Answered immediately with READY; shows the broker that a restored sandbox lives."""
RESEED = 10
"""Body: 32 bytes. Reseeds random numbers in the supervisor and, before its next call, in every session process;
answered with READY. `runtime.guest.seeds` lists what cannot be reseeded."""
LIST = 11
"""Body: `wire.list_body`. Reply: OK with `frames.ENTRY` records, paths relative to the folder, folders before their
content; or REFUSED, with a reason that starts with `more than` above a limit."""
SEED = 12
"""Body: 32 bytes. Reseeds random numbers of this session alone, reproducibly after equal calls; answered with READY."""
STAGE = 13
"""Body: `wire.stage_body`. A piece for the next WRITE or EXEC; offset 0 discards earlier ones. Reply: OK or REFUSED."""
WARN = 14
"""Sends SIGURG to the session's process: its call's time is over, and anything left running will be ended. No effect
unless its code has a handler. No reply."""

NO_USER = b"user"
