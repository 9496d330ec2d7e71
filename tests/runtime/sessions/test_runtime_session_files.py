"""Files that a session begins with: there in every sandbox that it gets, changed by nobody else, gone with it."""

from __future__ import annotations

import pytest

from runtime.errors import BadRequestError, LimitError
from runtime.sandbox import CallStatus, Session, Tier
from runtime.sessions import Sessions

FILES = {"data.csv": b"a,b\n1,2\n", "big.bin": bytes(range(256)) * 8_192, "empty": b""}
LOOK = "import os, hashlib\nfor n in sorted(os.listdir('.')): print(n, len(open(n, 'rb').read()))"
SEEN = "big.bin 2097152\ndata.csv 8\nempty 0\n"


def says(session: Session, code: str) -> str:
    result = session.run(code)
    assert result.status is CallStatus.OK, result
    return result.output


def test_code_opens_the_files_by_name_and_what_it_changes_is_its_own(pool: Sessions) -> None:
    with pool.open(files=FILES) as session, pool.open(files=FILES) as other:
        assert session.tier is Tier.SANDBOX
        assert says(session, LOOK) == SEEN
        assert says(session, "open('data.csv', 'w').write('x')\nos.remove('empty')") == ""
        [branch] = session.fork(1)
        assert says(branch, "print(open('data.csv').read(), os.path.exists('empty'))") == "x False\n"
        assert says(other, LOOK) == SEEN
        assert FILES["data.csv"] == b"a,b\n1,2\n"
        branch.close()


def test_a_sandbox_that_was_lost_is_followed_by_one_with_the_same_files(pool: Sessions) -> None:
    with pool.open(files=FILES) as session:
        says(session, "open('data.csv', 'w').write('x')")
        ended = session.run("while True: pass", seconds=0.3)
        assert ended.status is CallStatus.TIMEOUT
        assert ended.error.endswith("with no names and only the files that it began with")
        assert says(session, LOOK) == SEEN


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", "..", "/etc/passwd", "a\0b"])
def test_a_name_that_is_none_is_refused_before_anything_starts(pool: Sessions, name: str) -> None:
    with pytest.raises(BadRequestError):
        pool.open(files={name: b"x"})


def test_files_that_leave_no_room_are_refused_before_anything_starts(pool: Sessions) -> None:
    with pytest.raises(LimitError, match="do not fit into"):
        pool.open(files={"a": bytes(2 << 20), "b": bytes(2 << 20)})


def test_files_that_fill_work_almost_to_its_end_are_all_there(pool: Sessions) -> None:
    most = (pool.limits.work_mib << 20) - 8_192
    with pool.open(files={"most": bytes(most)}) as session:
        assert says(session, LOOK) == f"most {most}\n"
