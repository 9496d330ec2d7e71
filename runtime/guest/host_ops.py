"""Handles host requests other than running code: file access, listings, and programs."""

from __future__ import annotations

import os

from runtime.guest import files, kinds, ops, programs, users
from runtime.guest.frames import fields_of


class Staged:
    """Data that the host sent ahead for the next WRITE or EXEC, kept in pieces to avoid a second copy."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, offset: int, piece: bytes) -> None:
        if offset == 0:
            self._pieces, self._size = [], 0
        if offset != self._size:
            raise ValueError("a piece is missing")
        self._pieces.append(piece)
        self._size += len(piece)

    def take(self, size: int, last: bytes) -> list[bytes]:
        """Returns and clears the pieces sent ahead, then the last one. Raises ValueError if a piece is missing."""
        pieces, found = [*self._pieces, last], self._size
        self._pieces, self._size = [], 0
        if size and size != found:
            raise ValueError("a piece is missing")
        return pieces if size else [last]


STAGED = Staged()


def answer(op: int, body: bytes) -> tuple[int, bytes, bytes]:
    """Executes one host request (EXEC, READ, WRITE, LIST or STAGE); returns kind, content and report of the reply.

    Raises HinderedError, which must not be caught: a supervisor that cannot watch a program ends, with its sandbox.
    """
    fields, content = fields_of(body)
    try:
        if op == ops.READ:
            path, offset, max_bytes = fields
            data, size = files.read(path, int(offset), int(max_bytes))
            return kinds.OK, data, str(size).encode()
        if op == ops.STAGE:
            (offset,) = fields
            STAGED.add(int(offset), bytes(content))
            return kinds.OK, b"", b""
        if op == ops.WRITE:
            path, parents, staged = fields
            files.write(path, STAGED.take(int(staged), bytes(content)), parents=parents == "1")
            return kinds.OK, b"", b""
        if op == ops.LIST:
            path, entries = fields
            return kinds.OK, files.listing(path, int(entries)), b""
        seconds, output_bytes, staged, user, cwd, variables, *rest = fields
        settings, argv = rest[: int(variables)], rest[int(variables) :]
        stdin = STAGED.take(int(staged), bytes(content))
        start = programs.Start(argv, dict(pair.split("=", 1) for pair in settings), cwd, user)
        ended = programs.execute(start, stdin, float(seconds), int(output_bytes))
    except (files.FileAccessError, ValueError) as error:
        return kinds.REFUSED, b"", str(error).encode()
    except users.UserError as error:
        return kinds.REFUSED, ops.NO_USER, str(error).encode()
    except OSError as error:
        what = error.strerror if error.errno is None or error.strerror else os.strerror(error.errno)
        return kinds.REFUSED, str(error.errno or "").encode(), (what or str(error)).encode()
    facts = f'{{"exit_code": {ended.exit_code}, "stdout_bytes": {len(ended.stdout)}}}'
    return ended.kind, ended.stdout + ended.stderr, facts.encode()
