"""What was given up is gone for good, in every process that follows; what cannot be given up whole is an error."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_kit import run

from appliance.daemon.contract import BrokenError
from appliance.daemon.processes.privileges import require_own_folder, user_account
from appliance.settings.config_layers import ConfigError

ROOT = Path(__file__).parents[4]
NOBODY = pwd.getpwnam("nobody")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")

FACTS = (
    "import json, os, pathlib\n"
    "status = dict(line.split(':', 1) for line in pathlib.Path('/proc/self/status').read_text().splitlines())\n"
    "names = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Uid', 'Gid', 'Groups')\n"
    "facts = {name: status[name].split() for name in names} | {'HOME': os.environ.get('HOME')}\n"
    "print(json.dumps(facts), flush=True)\n"
)
NOTHING = {name: ["0" * 16] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} | {"NoNewPrivs": ["1"]}


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def given_up(name: str | None, then: str) -> subprocess.CompletedProcess[str]:
    return python(
        "import json, pathlib\n"  # now: another user may not be allowed to read the library
        "from appliance.daemon.processes.privileges import user_account, drop_privileges\n"
        f"drop_privileges(user_account({name!r}))\n{FACTS}{then}"
    )


@needs_root
def test_nothing_is_left_and_no_program_that_is_started_gets_anything_back() -> None:
    ran = given_up(None, f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {FACTS!r}], check=True)\n")
    own, child = map(json.loads, ran.stdout.splitlines())
    for facts in (own, child):
        assert facts.items() >= NOTHING.items()
        assert facts["Uid"] == ["0"] * 4


@needs_root
@pytest.mark.parametrize(
    "attempt",
    [
        "os.setuid(1)",
        "os.chroot('/')",
        "os.nice(-1)",
        "os.chown('/proc/self/exe', 1, 1)",
        "os.kill(1, 0) or os.mknod('/tmp/assay-null', 0o20666, os.makedev(1, 3))",
        "__import__('ctypes').CDLL(None, use_errno=True).unshare(0x20000) and os.setuid(1)",
    ],
)
def test_what_takes_a_capability_is_denied(attempt: str) -> None:
    ran = given_up(None, f"try:\n    {attempt}\nexcept PermissionError:\n    print('denied')\n")
    assert ran.stdout.splitlines()[-1] == "denied", ran.stdout + ran.stderr


@needs_root
def test_another_user_keeps_none_of_root_s_groups_and_cannot_go_back() -> None:
    ran = given_up("nobody", "try:\n    os.setuid(0)\nexcept PermissionError:\n    print('denied')\n")
    facts = json.loads(ran.stdout.splitlines()[0])
    assert facts.items() >= NOTHING.items()
    assert facts["Uid"] == [str(NOBODY.pw_uid)] * 4
    assert facts["Gid"] == [str(NOBODY.pw_gid)] * 4
    assert set(facts["Groups"]) == {str(NOBODY.pw_gid)}
    assert facts["HOME"] == NOBODY.pw_dir
    assert ran.stdout.splitlines()[1] == "denied"


def test_a_process_with_a_second_thread_is_refused() -> None:
    ran = python(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "from appliance.daemon.processes.privileges import user_account, drop_privileges\n"
        "drop_privileges(user_account(None))\n"
    )
    assert "only be dropped by a single thread" in ran.stderr


def test_a_user_that_does_not_exist_is_said_with_how_to_make_one() -> None:
    with pytest.raises(ConfigError, match=r"service\.user = 'no such user'") as refused:
        user_account("no such user")
    assert "useradd" in refused.value.hint


def test_without_a_name_it_is_whoever_it_is() -> None:
    assert user_account(None).pw_uid == os.geteuid()


@needs_root
def test_only_root_can_become_somebody_else() -> None:
    ran = python(
        "import os\nfrom appliance.daemon.processes.privileges import user_account\n"
        "os.setuid(65534)\nuser_account('daemon')\n"
    )
    assert "only root can become another user" in ran.stderr


@needs_root
def test_a_folder_that_is_not_there_yet_becomes_the_user_s(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    require_own_folder(data, NOBODY)
    assert (data.stat().st_uid, data.parent.stat().st_uid) == (NOBODY.pw_uid, 0)
    assert data.stat().st_mode & 0o077 == 0


@needs_root
@pytest.mark.parametrize("place", [".", "ledger.sqlite3", "run/lock"])
def test_what_belongs_to_somebody_else_is_named_with_the_cure(tmp_path: Path, place: str) -> None:
    (tmp_path / "run").mkdir()
    for name in ("ledger.sqlite3", "run/lock"):
        (tmp_path / name).touch()
    require_own_folder(tmp_path, pwd.getpwuid(0))
    os.chown(tmp_path / place, NOBODY.pw_uid, -1)
    with pytest.raises(BrokenError, match="belongs to nobody") as refused:
        require_own_folder(tmp_path, pwd.getpwuid(0))
    assert str(tmp_path / place) in str(refused.value)
    assert "service.user" in refused.value.hint
    os.chown(tmp_path / place, 0, -1)
    with pytest.raises(BrokenError, match="belongs to root") as refused:
        require_own_folder(tmp_path, NOBODY)
    assert f"chown -R nobody: {tmp_path}" in refused.value.hint


@needs_root
@pytest.mark.parametrize("command", ["serve", "demo"])
def test_root_on_the_folder_of_another_user_is_told_so_and_changes_nothing(data: Path, command: str) -> None:
    data.mkdir()
    os.chown(data, NOBODY.pw_uid, NOBODY.pw_gid)
    ran = run(data, command)
    assert (ran.returncode, "Traceback" in ran.stderr) == (5, False)
    assert "belongs to nobody" in ran.stderr
    assert "service.user" in ran.stderr
    assert list(data.iterdir()) == []


def test_a_configured_user_that_does_not_exist_keeps_the_daemon_from_starting(assay) -> None:
    refused = assay("serve", ASSAY_SERVICE__USER="nosuchuser")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "useradd" in refused.stderr
