"""Sandboxes of their own, held on a host for a driver elsewhere.

What always holds: what a command does to a sandbox happens on a thread of its own and is answered once; a sandbox that
the driver closed ends at once, also while it is still starting or in the middle of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from pydantic import BaseModel

from runtime.cluster import messages as m
from runtime.errors import BadRequestError, BusyError
from runtime.sandbox import Sandbox, SessionPool, SnapshotId

MOST = 256
"""Sandboxes that one driver may have on one host, those included that still wait."""


class Boxes:
    def __init__(self, pool: SessionPool, say: Callable[[BaseModel], None]) -> None:
        self._pool, self._say = pool, say
        self._boxes: dict[int, Sandbox] = {}
        self._lanes: dict[int, ThreadPoolExecutor] = {}
        """One thread for each sandbox, from the wish for it on: one that works or waits holds up no other."""
        self._endings = ThreadPoolExecutor(4, thread_name_prefix="box-endings")

    def __len__(self) -> int:
        return len(self._lanes)

    def open(self, command: m.Box) -> None:
        """Raises BusyError beyond `MOST`."""
        self._new_lane(command.session)

        def opened() -> m.Boxed:
            box = self._pool.sandbox(
                command.limits, snapshot=command.snapshot, caller=command.caller, priority=command.priority
            )
            self._boxes[command.session] = box
            if command.session not in self._lanes:  # closed while it was still starting
                self.end(command.session)
            return m.Boxed(session=command.session, call=command.call, box=box.id, limits=box.limits)

        self._run(command, opened)

    def do(self, command: m.Do) -> None:
        box = self._boxes.get(command.session)
        if box is None or command.session not in self._lanes:
            raise BadRequestError("the sandbox is closed")
        for number in command.into:
            self._new_lane(number)
        self._run(command, partial(self._done, box, command))

    def end(self, number: int) -> None:
        lane = self._lanes.pop(number, None)
        if lane is not None:
            lane.shutdown(wait=False)
        box = self._boxes.pop(number, None)
        if box is not None:
            self._endings.submit(box.close)

    def close(self) -> None:
        for number in [*self._lanes]:
            self.end(number)
        self._endings.shutdown()

    def _new_lane(self, number: int) -> None:
        if len(self._lanes) >= MOST:
            raise BusyError(f"{MOST} sandboxes of one driver are open on this host")
        if number in self._lanes:
            raise BadRequestError("a sandbox with that number is there already")
        self._lanes[number] = ThreadPoolExecutor(1, thread_name_prefix=f"box-{number}")

    def _run(self, command: m.Box | m.Do, job: Callable[[], BaseModel]) -> None:
        def finished(done: Future[BaseModel]) -> None:
            if done.cancelled():
                return
            error = done.exception()
            if error is None:
                self._say(done.result())
                return
            self._say(m.Failed(session=command.session, call=command.call, trouble=m.Trouble.of(error)))
            failed = (command.session,) if isinstance(command, m.Box) else command.into
            for number in failed:
                self.end(number)

        self._lanes[command.session].submit(job).add_done_callback(finished)

    def _done(self, box: Sandbox, command: m.Do) -> BaseModel:
        place = {"session": command.session, "call": command.call}
        if command.what == "run":
            code = command.data.decode("utf-8", "surrogatepass")
            result = box.run(code, seconds=command.seconds, patience=command.patience)
            return m.Called(**place, result=result)
        if command.what == "exec":
            ran = box.exec(command.arguments, stdin=command.data, seconds=command.seconds, patience=command.patience)
            return m.Executed(**place, result=ran)
        did = m.Did(**place)
        if command.what == "write":
            box.write(command.text, command.data)
        elif command.what == "read":
            did = m.Did(**place, data=box.read(command.text, max_bytes=command.number))
        elif command.what == "list":
            did = m.Did(**place, entries=_items(box, command.text))
        elif command.what == "snapshot":
            did = m.Did(**place, text=box.snapshot(durable=command.durable))
        elif command.what == "prepare":
            box.prepare(SnapshotId(command.text), command.number)
        elif command.what == "restore":
            box.restore(SnapshotId(command.text))
            did = m.Did(**place, boxes=(box.id,))
        elif command.what == "measure":
            did = m.Did(**place, usage=box.usage)
        else:
            did = self._forked(box, command)
        return did

    def _forked(self, box: Sandbox, command: m.Do) -> m.Did:
        branches: Sequence[Sandbox] = box.fork(SnapshotId(command.text), len(command.into))
        self._boxes.update(zip(command.into, branches, strict=True))
        return m.Did(session=command.session, call=command.call, boxes=tuple(branch.id for branch in branches))


def _items(box: Sandbox, folder: str) -> tuple[m.Item, ...]:
    return tuple(m.Item(path=entry.path, what=entry.kind, size=entry.size) for entry in box.list(folder))
