"""Models of Ollama, LM Studio and the Hugging Face cache are found as those programs lay them out, and imported."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gguf_files import SYSTEM, changed, chat_folder, chat_gguf

from appliance.errors import UsageError
from appliance.learning.folders import verify
from appliance.models.import_model import import_base
from appliance.models.local_models import Stores, find_models, locate, stores
from appliance.readiness.model import UnusableModelError

IMAGE = "application/vnd.ollama.image."
COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_gguf(tmp_path_factory.mktemp("gguf"))


@pytest.fixture
def places(tmp_path: Path) -> Stores:
    found = stores({}, tmp_path)
    return Stores(found.ollama[:1], found.hub, found.lmstudio, tmp_path / "smollm2")


def put_blob(store: Path, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    (store / "blobs").mkdir(parents=True, exist_ok=True)
    (store / "blobs" / f"sha256-{digest}").write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def ollama(
    store: Path, file: Path, name: str = "registry.ollama.ai/library/tiny/latest", **more: bytes
) -> dict[str, Any]:
    """A model as `ollama pull` leaves it; `more` are layers by type. Returns its manifest."""
    layers = {"model": file.read_bytes(), "license": b"as is", "template": b"{{ .Prompt }}", **more}
    listed = [{"mediaType": IMAGE + kind, **put_blob(store, content)} for kind, content in layers.items()]
    manifest = {"schemaVersion": 2, "config": put_blob(store, b"{}"), "layers": listed}
    write_manifest(store, manifest, name)
    return manifest


def write_manifest(store: Path, manifest: Any, name: str = "registry.ollama.ai/library/tiny/latest") -> None:
    (store / "manifests" / name).parent.mkdir(parents=True, exist_ok=True)
    (store / "manifests" / name).write_text(json.dumps(manifest))


def hub(cache: Path, source: Path, repository: str = "org/tiny") -> Path:
    """A model as `hf download` leaves it: a snapshot of links to blobs. Returns the snapshot."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    for one in (snapshot, folder / "blobs", folder / "refs"):
        one.mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text(COMMIT)
    for file in source.iterdir() if source.is_dir() else [source]:
        content = file.read_bytes()
        blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        (snapshot / file.name).symlink_to(Path("../../blobs", blob.name))
    return snapshot


def test_one_model_of_every_store_is_the_same_model(tiny: Path, places: Stores, tmp_path: Path) -> None:
    ollama(places.ollama[0], tiny, params=b"{}", system=b"Be brief.")
    (places.lmstudio[1] / "maker" / "tiny").mkdir(parents=True)
    shutil.copy(tiny, places.lmstudio[1] / "maker" / "tiny" / "tiny.gguf")
    (places.lmstudio[1] / "maker" / "tiny" / "mmproj-tiny.gguf").write_bytes(b"GGUF")
    licence = tmp_path / "text"
    licence.write_bytes(b"as is")
    hub(places.hub, tiny)
    first = import_base("tiny@ollama:tiny", tmp_path, places)
    assert verify(first.folder) == first.digest
    assert (first.folder / "LICENSE").read_bytes() == b"as is"
    assert [one for one in first.dropped if "Ollama" in one] == [
        "Ollama's chat template, which is a program in Go (the model's own template is used)",
        "Ollama's sampling parameters",
        "Ollama's system message",
    ]
    assert repr(SYSTEM.strip()) in first.dropped[-1], "which its own template writes, and ChatML here does not"
    for source in ("hub:org/tiny", "hub:org/tiny@main", f"hub:org/tiny@{COMMIT}", "lmstudio:maker/tiny", str(tiny)):
        again = import_base(source, tmp_path, places, licence)
        assert (again.name, again.known, again.digest) == ("tiny", True, first.digest), source
    assert {one.source for one in find_models(places)} == {
        "ollama:tiny:latest",
        "hub:org/tiny",
        "lmstudio:maker/tiny/tiny.gguf",
    }


def test_a_folder_in_the_hub_s_cache_is_imported_and_what_is_no_model_s_is_named(
    places: Stores, tmp_path: Path
) -> None:
    source = chat_folder(tmp_path / "m")
    for name in ("LICENSE", "README.md", "modeling.py"):
        (source / name).write_text("as is")
    hub(places.hub, source)
    made = import_base("hub:org/tiny", tmp_path, places)
    assert made.dropped[0] == "README.md, modeling.py"
    assert [one.source for one in find_models(places)] == ["hub:org/tiny"]


def test_the_folders_are_those_that_the_programs_own_variables_name(tmp_path: Path) -> None:
    found = stores({"OLLAMA_MODELS": "/o", "HF_HOME": "/h", "XDG_CACHE_HOME": "/c"}, tmp_path)
    assert (found.ollama[0], found.hub, found.lmstudio[1]) == (Path("/o"), Path("/h/hub"), Path("/c/lm-studio/models"))
    assert stores({"HF_HUB_CACHE": "/u", "HF_HOME": "/h"}, tmp_path).hub == Path("/u")
    assert stores({}, tmp_path).hub == tmp_path / ".cache/huggingface/hub"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("ollama:tiny", "tiny"),
        ("ollama:me/tiny:v1", "tiny-v1"),
        ("ollama:hf.co/me/tiny:v1", "tiny-v1"),
        ("mine@ollama:tiny", "mine"),
        ("mine@hub:org/tiny@main", "mine"),
    ],
)
def test_a_source_names_its_model(source: str, name: str, tiny: Path, places: Stores) -> None:
    ollama(places.ollama[0], tiny)
    for other in ("registry.ollama.ai/me/tiny/v1", "hf.co/me/tiny/v1"):
        ollama(places.ollama[0], tiny, other)
    hub(places.hub, tiny)
    assert locate(source, places).name == name


@pytest.mark.parametrize(
    "source",
    [
        *("ollama:../../etc/passwd", "ollama:a/../b", "ollama:a:..", "ollama:", "ollama:-x", "ollama:a/b/c/d"),
        *("hub:../x", "hub:a", "hub:a/b@../../x", "hub:a/..", "hub:", "hub:a/b@"),
        *("lmstudio:../..", "lmstudio:a/b/../c.gguf", "lmstudio:a/b/c/d.gguf", "lmstudio:a"),
        *("ollama:none", "hub:no/one", "lmstudio:no/one", "smollm2", "a b@gguf:x", "gguf:x\x00.gguf"),
    ],
)
def test_a_name_that_is_a_path_or_not_there_is_refused(source: str, places: Stores, tmp_path: Path) -> None:
    with pytest.raises((UsageError, UnusableModelError)) as caught:
        import_base(source, tmp_path, places)
    assert caught.value.hint


Break = Callable[[Path, dict[str, Any]], object]


def layer(number: int, **changes: Any) -> Break:
    def change(store: Path, manifest: dict[str, Any]) -> None:
        manifest["layers"][number] |= changes
        write_manifest(store, manifest)

    return change


def on_blob(change: Callable[[Path], object]) -> Break:
    return lambda store, manifest: change(store / "blobs" / manifest["layers"][0]["digest"].replace(":", "-"))


def elsewhere(blob: Path) -> None:
    outside = blob.parents[2] / "outside"
    blob.rename(outside)
    blob.symlink_to(outside)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (layer(2, mediaType=f"{IMAGE}adapter"), "layer of type 'application/vnd.ollama.image.adapter'"),
        (layer(2, mediaType=f"{IMAGE}projector"), r"image\.projector', which cannot be imported"),
        (layer(2, mediaType=f"{IMAGE}tensor"), r"image\.tensor'"),
        (layer(0, mediaType=f"{IMAGE}params"), "0 weight files instead of one"),
        (layer(0, digest="sha256:../../../../etc/passwd"), "invalid layer"),
        (layer(0, digest=5), "invalid layer"),
        (layer(0, size=5), "half downloaded"),
        (on_blob(Path.unlink), "half downloaded"),
        (on_blob(lambda blob: os.truncate(blob, 100)), "half downloaded"),
        (on_blob(lambda blob: blob.write_bytes(bytes(blob.stat().st_size))), "does not have its digest"),
        (on_blob(elsewhere), "is a link to"),
        (lambda store, manifest: write_manifest(store, ["layers"]), "not an Ollama manifest"),
        (lambda store, manifest: write_manifest(store, {"layers": [[]]}), "not an Ollama manifest"),
        (lambda store, manifest: write_manifest(store, {"layers": manifest["layers"] * 40}), "more than 64 layers"),
        (lambda store, manifest: write_manifest(store, {"layers": manifest["layers"] * 2}), "2 weight files"),
    ],
)
def test_a_damaged_or_hostile_store_of_ollama_is_one_message(
    change: Break, message: str, tiny: Path, places: Stores
) -> None:
    change(places.ollama[0], ollama(places.ollama[0], tiny))
    with pytest.raises(UsageError, match=message) as caught:
        locate("ollama:tiny", places)
    assert caught.value.hint


def test_a_pipe_in_place_of_a_file_of_a_store_does_not_block(places: Stores) -> None:
    for path in (
        places.ollama[0] / "manifests/registry.ollama.ai/library/tiny/latest",
        places.hub / "models--org--tiny/refs/main",
    ):
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
    assert find_models(places) == []
    with pytest.raises(UsageError, match="is not in the Hugging Face cache"):
        locate("hub:org/tiny", places)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE])
def test_an_archive_whose_headers_would_fill_the_memory_is_refused(kind: bytes, places: Stores, tmp_path: Path) -> None:
    member = tarfile.TarInfo("config.json")
    member.type, member.size = kind, 2 << 20
    (tmp_path / "a.tar").write_bytes(tarfile.TarInfo("README").tobuf() + member.tobuf() + bytes(3 << 20))
    with pytest.raises(UnusableModelError, match="a sparse file, or a header of more than 1 MiB"):
        import_base(f"a@{tmp_path / 'a.tar'}", tmp_path, places)


def half(snapshot: Path) -> None:
    blob = (snapshot / "model.safetensors").resolve()
    blob.rename(blob.with_name(blob.name + ".incomplete"))


def unlisted(snapshot: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))


def stolen(snapshot: Path) -> None:
    (snapshot.parents[2] / "secret").write_text("a key of the owner's")
    (snapshot / "NOTICE").symlink_to(snapshot.parents[2] / "secret")


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (half, "model.safetensors of org/tiny is only half downloaded", "hf download org/tiny"),
        (unlisted, "it has no model-00001-of-00002.safetensors, which .*index.json names", "hf download org/tiny"),
        (stolen, "is a link to .*secret, outside", ""),
        (lambda snapshot: (snapshot.parents[1] / "refs/main").write_text("../../../etc"), "is not in the Hug", ""),
        (lambda snapshot: (snapshot.parents[1] / "refs/main").unlink(), "revision main is not in", "hf download"),
    ],
)
def test_a_half_downloaded_or_hostile_cache_is_one_message(
    change: Callable[[Path], object], message: str, hint: str, places: Stores, tmp_path: Path
) -> None:
    change(hub(places.hub, chat_folder(tmp_path / "m")))
    with pytest.raises((UsageError, UnusableModelError), match=message) as caught:
        import_base("hub:org/tiny", tmp_path, places)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% include '/etc/passwd' %}", "chat template failed"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "chat template failed: access to attribute '__class__'"),
        ("{{ load_module('x').render(messages) }}", "chat template failed: 'load_module' is undefined"),
        ("{% for m in messages %}", "chat template cannot be read"),
    ],
)
def test_a_template_that_needs_code_is_refused(
    template: str, message: str, tiny: Path, places: Stores, tmp_path: Path
) -> None:
    file = changed(tiny, tmp_path / "t.gguf", {"tokenizer.chat_template": template})
    (tmp_path / "LICENSE").write_text("as is")
    with pytest.raises(UnusableModelError, match=message):
        import_base(f"gguf:{file}", tmp_path, places)
    assert list((tmp_path / "bases").iterdir()) == []


def test_a_licence_that_is_only_named_is_not_enough_and_is_told(tiny: Path, places: Stores, tmp_path: Path) -> None:
    (tmp_path / "apart").mkdir()
    file = changed(tiny, tmp_path / "apart" / "t.gguf", {"general.license": "apache-2.0"})
    with pytest.raises(UnusableModelError, match=r"no licence text: .* names the licence 'apache-2.0'") as caught:
        import_base(f"gguf:{file}", tmp_path, places)
    assert "--license FILE" in caught.value.hint
    (tmp_path / "apart" / "LICENSE").write_text("as is")
    made = import_base(f"gguf:{file}", tmp_path, places)
    assert (made.folder / "LICENSE").read_text() == "as is"


def test_one_of_several_files_has_to_be_named(tiny: Path, places: Stores) -> None:
    folder = places.lmstudio[0] / "maker" / "tiny"
    folder.mkdir(parents=True)
    for name in ("a.gguf", "b.gguf"):
        shutil.copy(tiny, folder / name)
    with pytest.raises(UsageError, match=r"has 2 GGUF files instead of one: a\.gguf, b\.gguf"):
        locate("lmstudio:maker/tiny", places)
    assert locate("lmstudio:maker/tiny/b.gguf", places).name == "b"
    snapshot = hub(places.hub, tiny)
    (snapshot / "other.gguf").symlink_to((snapshot / "tiny.gguf").readlink())
    with pytest.raises(UsageError, match="has 2 GGUF files instead of one"):
        locate("hub:org/tiny", places)
    assert {one.source for one in find_models(places)} >= {
        f"gguf:{snapshot / name}" for name in ("other.gguf", "tiny.gguf")
    }
