"""A checkpoint is there whole or not at all, and what is broken is never gone on from."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from learning_builders import tiny_model

from appliance.inference.folder import read_model
from appliance.learning.checkpoints import model_files, newest_valid, prune, publish, save, step_folder
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import MANIFEST, read_verified, sweep, verify, write_folder

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FILES: dict[str, bytes | Path] = {
    "model.safetensors": b"w" * 5000,
    "training.safetensors": b"o" * 9000,
    "state.json": b"{}",
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = step_folder(tmp_path, 10)
    save(folder, FILES)
    return folder


def test_what_was_saved_is_what_is_read(saved: Path) -> None:
    assert read_verified(saved) == FILES
    listed = json.loads((saved / MANIFEST).read_text())["files"]
    assert listed["state.json"]["bytes"] == 2
    assert sorted(path.name for path in saved.parent.iterdir()) == ["step-000010"]


def test_equal_content_has_an_equal_digest_and_other_content_another(saved: Path, tmp_path: Path) -> None:
    assert save(tmp_path / "elsewhere", FILES) == verify(saved)
    assert save(tmp_path / "other", {**FILES, "state.json": b"{ }"}) != verify(saved)


def remove(folder: Path) -> None:
    (folder / "state.json").unlink()


def truncate(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 4000)


def lengthen(folder: Path) -> None:
    with (folder / "model.safetensors").open("ab") as out:
        out.write(b"x")


def change_a_bit(folder: Path) -> None:
    content = bytearray((folder / "training.safetensors").read_bytes())
    content[4321] ^= 1
    (folder / "training.safetensors").write_bytes(content)


def add(folder: Path) -> None:
    (folder / "model.py").write_text("import os")


def link(folder: Path) -> None:
    (folder / "state.json").rename(folder.parent / "outside.json")
    (folder / "state.json").symlink_to(folder.parent / "outside.json")


def replace_with_a_pipe(folder: Path) -> None:
    (folder / "state.json").unlink()
    os.mkfifo(folder / "state.json")


def replace_with_a_folder(folder: Path) -> None:
    (folder / "state.json").unlink()
    (folder / "state.json").mkdir()


def lose_the_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def garble_the_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(b"[" * 100_000)


def rewrite_the_manifest(folder: Path) -> None:
    content = json.loads((folder / MANIFEST).read_text())
    content["files"]["../../etc/passwd"] = content["files"].pop("state.json")
    (folder / MANIFEST).write_text(json.dumps(content))


def write_the_manifest_otherwise(folder: Path) -> None:
    (folder / MANIFEST).write_bytes((folder / MANIFEST).read_bytes().replace(b"\n", b"\t", 1))


def link_the_folder(folder: Path) -> None:
    folder.rename(folder.parent / "moved")
    folder.symlink_to(folder.parent / "moved")


DAMAGES = (
    (remove, "lacks state.json"),
    (truncate, "4000 bytes, not 5000"),
    (lengthen, "5001 bytes, not 5000"),
    (change_a_bit, "was changed"),
    (add, "holds 'model.py'"),
    (link, "is a link"),
    (replace_with_a_pipe, "not a regular file"),
    (replace_with_a_folder, "not a regular file"),
    (lose_the_manifest, "never finished"),
    (garble_the_manifest, "not readable JSON"),
    (rewrite_the_manifest, "not of the form"),
    (write_the_manifest_otherwise, "not in canonical form"),
    (link_the_folder, "not a folder"),
)


def test_a_whole_folder_that_is_another_one_than_was_recorded_is_found(saved: Path) -> None:
    digest = verify(saved)
    assert verify(saved, expect=digest) == digest
    save(saved, {**FILES, "state.json": b"{} "})
    verify(saved)
    with pytest.raises(CheckpointError, match="has digest"):
        verify(saved, expect=digest)


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_every_kind_of_damage_is_found_and_passed_over(
    saved: Path, damage: Callable[[Path], None], message: str
) -> None:
    older = step_folder(saved.parent, 9)
    save(older, FILES)
    damage(saved)
    with pytest.raises(CheckpointError, match=message) as caught:
        verify(saved)
    assert caught.value.hint
    newest = newest_valid(saved.parent)
    assert (newest.folder, newest.step) == (older, 9)
    assert list(newest.broken) == [saved]
    assert message in newest.broken[saved]


def test_without_a_whole_checkpoint_there_is_none(saved: Path, tmp_path: Path) -> None:
    change_a_bit(saved)
    newest = newest_valid(saved.parent)
    assert (newest.folder, newest.step, len(newest.broken)) == (None, -1, 1)
    assert newest_valid(tmp_path / "never").folder is None


def test_saving_again_replaces_a_broken_checkpoint_and_leaves_an_equal_one_alone(saved: Path) -> None:
    before = (saved / MANIFEST).stat().st_mtime_ns
    save(saved, FILES)
    assert (saved / MANIFEST).stat().st_mtime_ns == before
    change_a_bit(saved)
    assert save(saved, FILES) == verify(saved)


def test_steps_are_ordered_as_numbers_and_other_names_are_no_checkpoints(tmp_path: Path) -> None:
    for step in (5, 40, 1_000_000, 999_999):
        save(step_folder(tmp_path, step), FILES)
    save(tmp_path / "step-x", FILES)
    assert newest_valid(tmp_path).step == 1_000_000


def test_pruning_keeps_the_newest_whole_ones_and_the_spared(tmp_path: Path) -> None:
    folders = [step_folder(tmp_path, step) for step in range(6)]
    for folder in folders:
        save(folder, FILES)
    change_a_bit(folders[5])
    gone = prune(tmp_path, keep=2, spare=[folders[0]])
    assert gone == [folders[2], folders[1]]
    assert sorted(path.name for path in tmp_path.iterdir()) == [folders[i].name for i in (0, 3, 4, 5)]
    with pytest.raises(ValueError, match="keep must be"):
        prune(tmp_path, keep=0)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", MANIFEST])
def test_a_file_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="invalid file names"):
        save(tmp_path / "step-000001", {name: b""})
    assert list(tmp_path.iterdir()) == []


def test_killed_at_random_moments_no_acknowledged_checkpoint_is_lost_and_no_half_one_is_found(tmp_path: Path) -> None:
    rng, acknowledged, leftovers = Random(5), -1, 0
    for _ in range(24):
        saver = subprocess.Popen(
            [sys.executable, str(HERE / "checkpoint_saver.py"), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert saver.stdout is not None
        try:
            for _ in range(rng.randint(1, 4)):
                acknowledged = int(saver.stdout.readline())
            # Saving takes a few milliseconds: the kill falls anywhere in it.
            with pytest.raises(subprocess.TimeoutExpired):
                saver.wait(rng.uniform(0, 0.02))
        finally:
            saver.send_signal(signal.SIGKILL)
            rest = saver.communicate()[0].split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        newest = newest_valid(tmp_path)
        assert newest.step in (acknowledged, acknowledged + 1)
        assert not newest.broken
        leftovers += len(sweep(tmp_path))
        assert all(path.name.startswith("step-") for path in tmp_path.iterdir())
    assert leftovers > 0, "no kill fell into a save: the test has shown nothing"


WRITE = """
import resource, sys
from pathlib import Path
from appliance.learning.checkpoints import save, step_folder
from appliance.learning.errors import CheckpointError
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save(step_folder(Path(sys.argv[1]), 2), {"model.safetensors": b"w" * 3_000_000, "state.json": b"{}"})
except CheckpointError as error:
    print(f"{error} | {error.hint}")
"""


def write_too_much(parent: Path, mode: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(parent), mode],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_limit_leaves_the_old_state_and_says_what_to_do(tmp_path: Path) -> None:
    digest = save(step_folder(tmp_path, 1), FILES)
    output = write_too_much(tmp_path, "limit")
    assert "no room to write model.safetensors" in output
    assert "free space" in output
    assert verify(step_folder(tmp_path, newest_valid(tmp_path).step)) == digest
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root; the file limit above is tested for everybody")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"this machine does not let us mount: {mounted.stderr.decode().strip()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_leaves_the_old_state_and_says_what_to_do(small_disk: Path) -> None:
    digest = save(step_folder(small_disk, 1), FILES)
    output = write_too_much(small_disk, "full")
    assert "No space left on device" in output
    assert "what was saved before is untouched" in output
    assert verify(step_folder(small_disk, newest_valid(small_disk).step)) == digest
    assert [path.name for path in small_disk.iterdir()] == ["step-000001"]


def test_a_write_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"the first"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "out", {"model.safetensors": pieces()})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot save below") as caught:
        save(tmp_path / "file" / "step-000001", FILES)
    assert "may write to" in caught.value.hint


def model_folder(folder: Path) -> Path:
    tiny_model().save_pretrained(folder)
    for name in ("tokenizer.json", "dialect.json"):
        (folder / name).write_text("{}")
    (folder / "modeling.py").write_text("raise SystemExit")
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    return folder


def test_a_published_model_loads_and_brings_no_code_along(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    source = model_folder(tmp_path / "source")
    digest = publish(source, tmp_path / "models")
    folder = tmp_path / "models" / digest
    assert verify(folder) == digest
    names = {path.name for path in folder.iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "dialect.json", MANIFEST}
    assert not names & {"modeling.py", "pytorch_model.bin"}
    loaded = AutoModelForCausalLM.from_pretrained(folder)
    for a, b in zip(tiny_model().parameters(), loaded.parameters(), strict=True):
        assert torch.equal(a, b)


def test_publishing_twice_changes_nothing_and_repairs_what_was_broken(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    digest = publish(source, tmp_path / "models")
    folder = tmp_path / "models" / digest
    before = (folder / MANIFEST).stat().st_mtime_ns
    assert publish(source, tmp_path / "models") == digest
    assert (folder / MANIFEST).stat().st_mtime_ns == before
    (folder / "config.json").write_text("{}")
    assert publish(source, tmp_path / "models") == digest == verify(folder)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [digest]


def test_a_checkpoint_is_published_without_its_optimizer_and_a_broken_one_not_at_all(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    step = step_folder(tmp_path, 1)
    weights = (source / "model.safetensors").read_bytes()
    save(step, {**FILES, "model.safetensors": weights}, companions=read_model(source))
    digest = publish(step, tmp_path / "models")
    assert "training.safetensors" not in {path.name for path in (tmp_path / "models" / digest).iterdir()}
    assert digest == publish(source, tmp_path / "models")
    change_a_bit(step)
    with pytest.raises(CheckpointError, match="was changed"):
        publish(step, tmp_path / "models")


def test_a_model_in_a_cache_of_links_can_be_published(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    cache = tmp_path / "cache"
    cache.mkdir()
    for path in source.iterdir():
        (cache / path.name).symlink_to(path)
    assert publish(cache, tmp_path / "models") == publish(source, tmp_path / "models")


def test_an_incomplete_or_missing_model_folder_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"lacks tokenizer\.json, model\.safetensors"):
        model_files(tmp_path)
    with pytest.raises(CheckpointError, match="not a model folder") as caught:
        publish(tmp_path / "nowhere", tmp_path / "models")
    assert caught.value.hint


def test_a_file_written_in_pieces_is_the_one_that_safetensors_writes() -> None:
    import safetensors.torch
    import torch

    from appliance.learning.trained_weights import TensorFile

    tensors = {"b": torch.arange(6.0).view(2, 3), "a": torch.arange(3), "half": torch.ones(5, dtype=torch.bfloat16)}
    tensors |= {"none": torch.zeros(0, 4), "bytes": torch.arange(7, dtype=torch.uint8), "one": torch.tensor(2.5)}
    for some, metadata in ((tensors, {"format": "pt"}), (tensors, None), ({"x": torch.ones(3)}, {"format": "pt"})):
        assert b"".join(map(bytes, TensorFile(some, metadata))) == safetensors.torch.save(some, metadata=metadata)
