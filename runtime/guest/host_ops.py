"""Does what the host asks beside running code: files read, written and listed, programs started."""

from __future__ import annotations

import os

from runtime.guest import files, kinds, ops, programs
from runtime.guest.frames import fields_of


def answer(op: int, body: bytes) -> tuple[int, bytes, bytes]:
    """Gives kind, content and report for one EXEC, READ, WRITE or LIST. Raises HinderedError, which is not to be
    caught: who cannot watch a program any more ends, and the sandbox with it."""
    fields, content = fields_of(body)
    try:
        if op == ops.READ:
            path, offset, max_bytes = fields
            return kinds.OK, files.read(path, int(offset), int(max_bytes)), b""
        if op == ops.WRITE:
            path, parents = fields
            files.write(path, content, parents=parents == "1")
            return kinds.OK, b"", b""
        if op == ops.LIST:
            path, entries = fields
            return kinds.OK, files.listing(path, int(entries)), b""
        seconds, output_bytes, *argv = fields
        ended = programs.execute(argv, bytes(content), float(seconds), int(output_bytes))
    except (files.FileAccessError, ValueError) as error:
        return kinds.REFUSED, b"", str(error).encode()
    except OSError as error:
        return kinds.REFUSED, b"", os.strerror(error.errno or 0).encode()
    facts = f'{{"exit_code": {ended.exit_code}, "stdout_bytes": {len(ended.stdout)}}}'
    return ended.kind, ended.stdout + ended.stderr, facts.encode()
