"""What inspect_ai is told where its sandbox cannot do what was asked, breaks, or is asked by many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from inspect_ai.util import (
    OutputLimitExceededError,
    SandboxEnvironmentSpec,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
)
from inspect_ai.util._sandbox.limits import override_max_exec_output_size

from appliance.interop import inspect_ai as provider
from appliance.interop.inspect_ai import AssaySandboxEnvironment as Environment
from appliance.interop.inspect_ai import Pool
from runtime.errors import RefusedError
from runtime.profile import BackendName
from runtime.sandbox import Limits, Sandbox
from runtime.sessions import Sessions

SMALL = Limits(call_seconds=30.0, memory_mib=128, output_bytes=1 << 20, work_mib=4, tmp_mib=4)


@pytest.fixture(scope="module")
def box(pool: Sessions) -> Iterator[Sandbox]:
    with pool.sandbox(SMALL, userland=True) as found:
        yield found


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["no-such-program"], 127, "no-such-program"),
        (["./no/such/program"], 127, "No such file"),
        (["a\0b"], 126, "text without NUL"),
        (["echo", "half \ud800"], 126, "must be text"),
        ([""], 126, "needs a name"),
        ([], 126, "needs a name"),
        (["sh", "-c", "exit 3"], 3, ""),
        (["sh", "-c", "kill -KILL $$"], 137, ""),
        (["printf", "x" * 200_000], 126, "too long"),
    ],
)
async def test_a_command_that_cannot_be_run_is_the_commands_failure(
    box: Sandbox, command: list[str], code: int, said: str
) -> None:
    ran = await Environment(box).exec(command)
    assert (ran.success, ran.returncode) == (False, code)
    assert said in ran.stderr


@pytest.mark.parametrize("path", ["link", "pipe", "there/link/file", "half \ud800", "a\0b", "/proc/x", "/dev/null"])
async def test_what_is_no_plain_file_is_a_file_that_may_not_be_used(box: Sandbox, path: str) -> None:
    made = "rm -rf link pipe there; ln -s /etc/passwd link; mkfifo pipe; mkdir there; ln -s /etc there/link"
    await Environment(box).exec(["sh", "-c", made])
    with pytest.raises(PermissionError):
        await Environment(box).read_file(path)
    with pytest.raises(PermissionError):
        await Environment(box).write_file(path, "x")


async def test_dots_mean_what_they_say_and_lead_nowhere_else(box: Sandbox) -> None:
    environment = Environment(box)
    await environment.write_file("./a/../b/./c", "one")
    assert await environment.read_file("/work//b/c") == "one"
    assert "root:" in await environment.read_file("../../../../etc/passwd")
    with pytest.raises(PermissionError):
        await environment.write_file("../../../../etc/passwd", "x")


async def test_a_full_disk_is_said(box: Sandbox) -> None:
    with pytest.raises(PermissionError, match="No space"):
        await Environment(box).write_file("large", bytes(5 << 20))


async def test_output_beyond_the_limit_comes_with_its_beginning(box: Sandbox) -> None:
    with override_max_exec_output_size(1_000), pytest.raises(OutputLimitExceededError, match="1000 bytes") as caught:
        await Environment(box).exec(["yes"])
    assert caught.value.truncated_output == "y\n" * 500
    with pytest.raises(OutputLimitExceededError, match="1024 KiB"):
        await Environment(box).exec(["yes"])


async def test_a_user_that_cannot_be_had_is_unsupported_where_there_is_only_one(box: Sandbox, pool: Sessions) -> None:
    if pool.settings.backend is BackendName.NSJAIL:
        for user in ("root", "0", "nobody"):
            with pytest.raises(SandboxUserUnsupportedError):
                await Environment(box).exec(["whoami"], user=user)
    else:
        assert (await Environment(box).exec(["whoami"], user="0")).stdout == "root\n"
        assert "no user 'nobody'" in (await Environment(box).exec(["whoami"], user="nobody")).stderr
    assert (await Environment(box).exec(["whoami"], user="guest")).stdout == "guest\n"
    assert (await Environment(box).exec(["whoami"])).stdout == "guest\n"


async def test_many_at_once_take_turns_and_who_gives_up_holds_up_nobody_for_longer_than_his_call(box: Sandbox) -> None:
    environment = Environment(box)
    given_up = asyncio.create_task(environment.exec(["sleep", "0.3"]))
    await asyncio.sleep(0.05)
    given_up.cancel()
    ran = await asyncio.gather(*(environment.exec(["sh", "-c", f"echo {n}"]) for n in range(8)))
    assert [one.stdout for one in ran] == [f"{n}\n" for n in range(8)]


async def test_a_sandbox_that_used_up_a_limit_is_unavailable_and_no_programs_failure(pool: Sessions) -> None:
    with pool.sandbox(SMALL.model_copy(update={"calls": 1}), userland=True) as few:
        assert (await Environment(few).exec(["true"])).success
        with pytest.raises(SandboxUnavailableError, match="calls"):
            await Environment(few).exec(["true"])
        few.run("import os; os._exit(0)")
    with pool.sandbox(SMALL, userland=True) as gone:
        gone.run("import os; os._exit(0)")
        with pytest.raises(SandboxUnavailableError):
            await Environment(gone).exec(["true"])


async def test_a_sample_gets_the_limits_that_it_asks_for_and_none_beyond_the_policy(
    pool: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(pool, "close", lambda: closed.append(True))
    most = Limits(memory_mib=200, cpus=1.0, call_seconds=20.0)
    monkeypatch.setattr(provider, "POOL", Pool(lambda: (pool, most)))
    asked = SandboxEnvironmentSpec.model_validate({"type": "assay", "config": {"memory_mib": 128, "call_seconds": 5}})
    for task in ("one", "other"):
        await Environment.task_init(task, asked.config)
    for config, memory, seconds in ((asked.config, 128, 5), (None, 200, 20)):
        made = await Environment.sample_init("one", config, {})
        limits = made["default"].as_type(Environment)._sandbox.limits
        assert (limits.memory_mib, limits.call_seconds) == (memory, seconds)
        await Environment.sample_cleanup("one", config, made, False)
    for config in (Limits(memory_mib=256), "compose.yaml"):
        with pytest.raises(RefusedError):
            await Environment.sample_init("one", config, {})
    await Environment.task_cleanup("one", None, True)
    assert not closed
    await Environment.task_cleanup("other", None, False)
    assert closed


EVERYDAY = {
    "for i in {1..3}; do echo $i; done": "1\n2\n3\n",
    "echo a b | awk '{print $2}'; seq 5 | tail -1 | tr 5 6": "b\n6\n",
    "mkdir -p t/a; echo x > t/a/f; tar czf t.tgz t; rm -r t; tar xzf t.tgz; cat t/a/f": "x\n",
    "printf 'a\\nb\\n' > f1; printf 'a\\nc\\n' > f2; diff f1 f2 > p; patch -s f1 < p; cmp f1 f2 && echo ok": "ok\n",
    "sed -i s/a/z/ f1; head -1 f1; find . -name 'f?' | sort": "z\n./f1\n./f2\n",
    "cat <<X\nhi $((1 + 2))\nX\nread x <<< 5; echo $x": "hi 3\n5\n",
    "sleep 0.1 & wait; echo done; (exit 4); echo $?": "done\n4\n",
    "nohup sh -c 'echo bg > bg' > /dev/null 2>&1 & wait; cat bg": "bg\n",
    "printf '#!/usr/bin/env python3\nprint(7)' > s; chmod +x s; ./s; stat -c %a s": "7\n755\n",
    "echo $HOME $PWD; cd /tmp && pwd; whoami; groups; hostname": "/work /work\n/tmp\nguest\nguest\nsandbox\n",
    "f=$(mktemp); echo 1 > $f; cat $f; seq 20 | xargs -P4 -n1 echo | wc -l": "1\n20\n",
    'python3 -c \'import subprocess; print(subprocess.check_output(["echo", "in"]))\'': "b'in\\n'\n",
    "python3 -m json.tool <<< '{\"a\": 1}' | head -1; echo é | wc -c": "{\n3\n",
    "python3 -c 'import threading as t; a = t.Thread(target=print, args=(5,)); a.start(); a.join()'": "5\n",
    'python3 -c \'import sqlite3; sqlite3.connect("d").execute("create table t(a)"); print(1)\'': "1\n",
    "ln -s f1 l; readlink l; head -1 l; rm l f?; ls f? 2>/dev/null || echo none": "f1\nz\nnone\n",
    "head -c 4 /dev/urandom | wc -c; cat < /dev/null; echo x | tee y; cat y": "4\nx\nx\n",
    "getent passwd guest | cut -d: -f1; which python3; test -d t && echo ok": "guest\n/usr/bin/python3\nok\n",
}


async def test_what_an_agents_shell_does_every_day_is_as_everywhere(pool: Sessions) -> None:
    with pool.sandbox(SMALL, userland=True) as fresh:
        for line, said in EVERYDAY.items():
            ran = await Environment(fresh).exec(["bash", "--login", "-c", line])
            assert (ran.stdout, ran.stderr) == (said, ""), line
