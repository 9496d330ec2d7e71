"""What the host has the supervisor do beside running code: files read, written and listed, programs started."""

from __future__ import annotations

import json
import os
from typing import Any

from runtime.guest import files, programs
from runtime.guest.wire import Kind, Op, Request


def answer(request: Request) -> tuple[Kind, bytes, bytes]:
    """Kind, content and report for one EXEC, READ, WRITE or LIST."""
    body = memoryview(request.body)
    end = request.body.find(b"\n")
    line, content = (body[:end], body[end + 1 :]) if end >= 0 else (body, body[:0])
    asked: dict[str, Any] = json.loads(bytes(line))
    try:
        if request.op == Op.READ:
            return Kind.OK, files.read(asked["path"], asked.get("offset", 0), asked["max_bytes"]), b""
        if request.op == Op.WRITE:
            files.write(asked["path"], content, parents=asked.get("parents", False))
            return Kind.OK, b"", b""
        if request.op == Op.LIST:
            return Kind.OK, files.listing(asked["path"], asked["entries"]), b""
        ended = programs.execute(asked["argv"], bytes(content), asked["seconds"], asked["output_bytes"])
    except (files.RefusedError, ValueError) as error:
        return Kind.REFUSED, b"", str(error).encode()
    except OSError as error:
        return Kind.REFUSED, b"", os.strerror(error.errno or 0).encode()
    facts = {"exit_code": ended.exit_code, "stdout_bytes": len(ended.stdout)}
    return ended.kind, ended.stdout + ended.stderr, json.dumps(facts).encode()
