"""What a killed process left of an engine goes; what a living one has stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from appliance.inference.vllm.transfers.folders import make_folder, remove_folder

HOLD = """
import sys
from pathlib import Path
from appliance.inference.vllm.transfers.folders import make_folder
print(make_folder("weights-", Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def aged(folder: Path) -> Path:
    (folder / "model.safetensors").write_bytes(b"weights")
    os.utime(folder, (0, 0))
    return folder


def test_a_folder_goes_with_the_next_one_after_its_process_was_killed_and_not_before(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = aged(Path(other.stdout.readline().strip()))
        ours = aged(make_folder("weights-", tmp_path))
        remove_folder(make_folder("weights-", tmp_path))
        assert theirs.is_dir()
        assert ours.is_dir()
        other.send_signal(signal.SIGKILL)
        other.wait()
    remove_folder(make_folder("weights-", tmp_path))
    assert list(tmp_path.iterdir()) == [ours]
    remove_folder(ours)
    remove_folder(ours)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_its_owners_alone_and_one_just_made_is_nobodys_to_remove(tmp_path: Path) -> None:
    made = make_folder("weights-", tmp_path)
    assert made.stat().st_mode & 0o777 == 0o700
    fresh = tmp_path / "weights-fresh"
    fresh.mkdir()
    (tmp_path / "weights-link").symlink_to(tmp_path)
    remove_folder(make_folder("weights-", tmp_path))
    assert fresh.is_dir()
    assert (tmp_path / "weights-link").is_symlink()
