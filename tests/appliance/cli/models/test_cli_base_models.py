"""`assay model import`, `assay model export` and `assay plan`, as a person types them."""

from __future__ import annotations

import fcntl
import io
import json
import math
import os
import shutil
import struct
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from broken_models import edit, headed, sound, without
from gguf import GGUFReader
from home_commands import assay

from appliance.learning.folders import verify


def licensed(folder: Path) -> Path:
    sound(folder)
    (folder / "LICENSE").write_text("as is")
    (folder / "modeling.py").write_text("raise SystemExit")
    return folder


def test_a_model_is_imported_with_its_licence_planned_for_and_exported(tmp_path: Path) -> None:
    source = licensed(tmp_path / "seedling")
    made = assay(tmp_path, "model", "import", f"small@{source}", "--json")
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    folder = Path(found["folder"])
    assert verify(folder) == found["digest"]
    assert (folder / found["license"]).read_text() == "as is"
    assert not (folder / "modeling.py").exists()
    assert json.loads(assay(tmp_path, "model", "import", f"small@{source}", "--json").stdout) == {
        **found,
        "known": True,
    }

    planned = assay(tmp_path, "plan", "small", "--json")
    assert planned.returncode == 0, planned.stderr
    report = json.loads(planned.stdout)
    assert report["shape"]["parameters"] == 657_024
    assert report["configured"]["fits"]
    assert report["configured"]["needed"] == max(report["configured"]["phases"].values())
    assert "context: maximum tokens" in assay(tmp_path, "plan").stdout, "without a name it is the embedded model"

    out = tmp_path / "out"
    exported = assay(tmp_path, "model", "export", str(folder), str(out))
    assert exported.returncode == 0, exported.stderr
    assert (out / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert (out / "LICENSE").read_text() == "as is"
    again = assay(tmp_path, "model", "export", str(folder), str(out))
    assert (again.returncode, "nothing is overwritten" in again.stderr) == (2, True)


def test_a_model_is_exported_as_a_gguf_file_that_another_reader_knows(tmp_path: Path) -> None:
    source, out = licensed(tmp_path / "seedling"), tmp_path / "seedling.gguf"
    exported = assay(tmp_path, "model", "export", str(source), str(out), "--format", "gguf", "--json")
    assert exported.returncode == 0, exported.stderr
    found = json.loads(exported.stdout)
    assert found["gguf"] == str(out)
    read = GGUFReader(out)
    assert read.fields["general.architecture"].contents() in ("llama", "qwen2", "qwen3")
    assert sum(math.prod(one.shape.tolist()) for one in read.tensors) == 657_024
    again = assay(tmp_path, "model", "export", str(source), str(out), "--format", "gguf")
    assert (again.returncode, "nothing is overwritten" in again.stderr) == (2, True)
    nowhere = assay(tmp_path, "model", "export", str(source), str(tmp_path / "no" / "m.gguf"), "--format", "gguf")
    assert (nowhere.returncode, "no such folder" in nowhere.stderr) == (2, True)
    assert sorted(one.name for one in tmp_path.iterdir() if "gguf" in one.name) == [out.name]


def test_models_of_other_programs_and_registered_ones_are_listed_without_a_daemon(tmp_path: Path) -> None:
    assert "hub:" not in assay(tmp_path, "model", "import").stdout
    assert assay(tmp_path, "model", "ls", "--bases").stdout.startswith("no base models")
    snapshot = tmp_path / ".cache/huggingface/hub/models--org--small/snapshots" / ("ab" * 20)
    snapshot.parent.mkdir(parents=True)
    licensed(snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("ab" * 20)
    assert "assay model import hub:org/small" in assay(tmp_path, "model", "import").stdout
    listed = json.loads(assay(tmp_path, "model", "import", "--json").stdout)
    assert [one["source"] for one in listed if one["source"] != "smollm2"] == ["hub:org/small"]
    made = assay(tmp_path, "model", "import", "hub:org/small")
    assert made.returncode == 0, made.stderr
    assert "left out     dialect.json" not in made.stdout
    assert "left out     modeling.py" in made.stdout
    (listed,) = json.loads(assay(tmp_path, "model", "ls", "--bases", "--json").stdout)
    assert listed == {"name": "small", "folder": str(tmp_path / "data" / "bases" / "small")}
    shown = assay(tmp_path, "model", "ls")
    assert (shown.returncode, "small" in shown.stdout, "daemon is not running" in shown.stdout) == (0, True, True)
    assert assay(tmp_path, "model", "ls", "--json").returncode == 3


def packed(folder: Path, name: str, change: Callable[[tarfile.TarFile], object] = lambda opened: None) -> Path:
    archive = folder / name
    source = licensed(folder / "packed")
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(source, "packed")
        change(opened)
    shutil.rmtree(source)
    return archive


def test_an_archive_is_unpacked_and_only_what_a_model_has(tmp_path: Path) -> None:
    def add_more(opened: tarfile.TarFile) -> None:
        for name in ("../config.json", "packed/deep/er/config.json", "packed/run.sh"):
            opened.addfile(tarfile.TarInfo(name), io.BytesIO())

    made = assay(tmp_path, "model", "import", f"small@{packed(tmp_path, 'model.tar.gz')}", "--json")
    assert made.returncode == 0, made.stderr
    assert not list((tmp_path / "data" / "bases").glob(".unfinished*"))
    strange = assay(tmp_path, "model", "import", f"other@{packed(tmp_path, 'strange.tar.gz', add_more)}")
    assert (strange.returncode, "is there twice" in strange.stderr) == (2, True)
    assert not (tmp_path / "data" / "bases" / "other").exists()


def link(opened: tarfile.TarFile) -> None:
    member = tarfile.TarInfo("packed/LICENSE.md")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/shadow"
    opened.addfile(member)


def test_bad_input_is_a_message_a_hint_and_a_documented_code(tmp_path: Path) -> None:
    source = licensed(tmp_path / "seedling")
    assay(tmp_path, "model", "import", str(source))
    other = licensed(tmp_path / "elsewhere" / "seedling")
    (other / "LICENSE").write_text("another")
    unlicensed, cut = sound(tmp_path / "unlicensed"), licensed(tmp_path / "cut")
    without("tokenizer.json")(cut)
    huge = licensed(tmp_path / "huge")
    headed("model.safetensors", model__embed_tokens__weight=(600, 1_000_000_000))(huge)
    part, deep = licensed(tmp_path / "part"), licensed(tmp_path / "deep")
    os.truncate(part / "model.safetensors", 1_000_000)
    edit("config.json", num_hidden_layers=10**320)(deep)
    unknown = licensed(tmp_path / "unknown")
    edit("config.json", model_type="zorp\x1b")(unknown)
    encodes = licensed(tmp_path / "encodes")
    edit("config.json", model_type="t5")(encodes)
    headless = licensed(tmp_path / "headless")
    edit("config.json", tie_word_embeddings=False)(headless)
    adapter = licensed(tmp_path / "adapter")
    (adapter / "model.safetensors").rename(adapter / "adapter_model.safetensors")
    beside = ("model", "export", str(adapter), str(tmp_path / "out"))
    spoiled = tmp_path / "spoiled"
    spoiled.mkdir()
    (spoiled / "ledger.sqlite3").write_bytes(b"no ledger" * 100)
    (tmp_path / "empty").write_text("")
    (tmp_path / "model.gguf").write_bytes(struct.pack("<4sI", b"GGUF", 3) + bytes(64))
    for arguments, code, message in (
        (("model", "import", str(other)), 2, "base model seedling exists already, with other files"),
        (("model", "import", str(unlicensed)), 2, "no licence text"),
        (("model", "import", str(unlicensed), "--license", str(tmp_path / "empty")), 2, "is not a licence text"),
        (("model", "import", str(unlicensed), "--license", str(tmp_path / "none")), 2, "No such file"),
        (("model", "import", str(cut)), 2, "no tokenizer.json"),
        (("model", "import", str(unknown)), 2, "unsupported model_type ('zorp\\x1b')"),
        (("model", "import", str(encodes)), 2, "model_type t5 is not a causal language model"),
        (
            ("model", "import", f"gguf:{tmp_path / 'model.gguf'}", "--license", str(other / "LICENSE")),
            2,
            "general.architecture is missing",
        ),
        (("model", "import", str(headless)), 2, "weights are missing or do not fit config.json: lm_head.weight"),
        (("model", "import", "Qwen/Qwen3-0.6B"), 2, "nothing is downloaded"),
        (("model", "import", "hub:Qwen/Qwen3-0.6B"), 2, "is not in the Hugging Face cache"),
        (("model", "import", "ollama:../x"), 2, "invalid Ollama model"),
        (("model", "import", f"..@{source}"), 2, "invalid model name"),
        (("model", "import", str(tmp_path / "empty")), 2, "neither a model folder, nor a tar archive"),
        (("model", "import", f"l@{packed(tmp_path, 'link.tgz', link)}"), 2, "is not a regular file"),
        (("model", "export", "champion", str(tmp_path / "out")), 2, "alias champion is not set"),
        (("model", "export", str(source), str(tmp_path / "out"), "--base", str(source)), 2, "has no adapter"),
        (beside, 2, "has an adapter but no model"),
        ((*beside, "--base", "nothing-of-this-name"), 2, "unknown base model nothing-of-this-name"),
        ((*beside, "--base", "seedling"), 5, "has no manifest"),
        (("model", "export", str(part), str(tmp_path / "out")), 5, "is shorter or longer than its header says"),
        (("model", "export", "champion", str(tmp_path / "out"), "--data", str(spoiled)), 5, "cannot be read: file is"),
        (("plan", "--data", str(spoiled)), 5, "cannot be read: file is not a database"),
        (("plan", str(deep)), 0, ""),
        (("plan", "nothing-of-this-name"), 2, "unknown model nothing-of-this-name"),
        (("plan", str(cut)), 2, "no tokenizer.json"),
        (("plan", str(huge)), 1, ""),
    ):
        done = assay(tmp_path, *arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert message in done.stderr, arguments
        assert "Traceback" not in done.stderr
        assert code < 2 or len(done.stderr.splitlines()) == 2, "a message and a hint"
    assert "no way of training fits" in done.stdout
    assert sorted(one.name for one in (tmp_path / "data" / "bases").iterdir()) == ["seedling"]


def test_what_came_with_a_model_is_its_licence_and_a_text_with_nothing_in_it_is_none(tmp_path: Path) -> None:
    source, other = licensed(tmp_path / "m"), tmp_path / "other"
    other.write_text("do what you like")
    named = assay(tmp_path, "model", "import", str(source), "--license", str(other))
    assert (named.returncode, "has its own licence text, LICENSE" in named.stderr) == (2, True)
    assert assay(tmp_path, "model", "import", str(source), "--license", str(source / "LICENSE")).returncode == 0
    (source / "LICENSE").write_text(" \n")
    empty = assay(tmp_path, "model", "import", f"empty@{source}")
    assert (empty.returncode, "no licence text" in empty.stderr) == (2, True)
    (source / "LICENSE").rename(source / "LICENSE.md")
    assert assay(tmp_path, "model", "import", f"told@{source}", "--license", str(other)).returncode == 0
    assert (tmp_path / "data" / "bases" / "told" / "LICENSE").read_text() == "do what you like"


def test_a_text_that_a_link_takes_from_elsewhere_is_not_taken_along(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a key of the owner's")
    source = licensed(tmp_path / "cache" / "snapshots" / "m")
    (source / "NOTICE").symlink_to(tmp_path / "secret")
    for blobs in (False, True):
        if blobs:  # nor through a folder that is called as the cache is
            (tmp_path / "cache" / "blobs").symlink_to(tmp_path)
        done = assay(tmp_path, "model", "import", str(source))
        assert (done.returncode, "outside the folder" in done.stderr) == (2, True)
    (source / "NOTICE").unlink()
    cached = tmp_path / "models--x" / "snapshots" / "1"
    cached.mkdir(parents=True)
    (tmp_path / "models--x" / "blobs").mkdir()
    for number, one in enumerate(source.iterdir()):
        one.rename(tmp_path / "models--x" / "blobs" / str(number))
        (cached / one.name).symlink_to(f"../../blobs/{number}")
    done = assay(tmp_path, "model", "import", f"cached@{cached}", "--json")
    assert done.returncode == 0, done.stderr
    assert not any(one.is_symlink() for one in Path(json.loads(done.stdout)["folder"]).iterdir())


def test_two_imports_at_once_are_one_after_another_and_what_a_killed_one_left_goes(tmp_path: Path) -> None:
    source, bases = licensed(tmp_path / "m"), tmp_path / "data" / "bases"
    (bases / ".unfinished-killed" / "m").mkdir(parents=True)
    handle = os.open(bases, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(assay, tmp_path, "model", "import", str(source), "--json") for _ in range(2)]
        assert not wait(running, timeout=1.0).done, "another import writes"
        os.close(handle)
        done = [one.result() for one in running]
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    assert sorted(json.loads(one.stdout)["known"] for one in done) == [False, True]
    assert [one.name for one in bases.iterdir()] == ["m"]


@pytest.mark.parametrize("command", [("model", "import"), ("model", "export"), ("plan",)])
def test_the_help_has_an_example(tmp_path: Path, command: tuple[str, ...]) -> None:
    assert "Example: assay" in assay(tmp_path, *command, "--help").stdout
