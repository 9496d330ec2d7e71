"""A seal is about every byte of a bundle, and a second checker, written after the documentation, agrees about each."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundle_kit import KEY, TINY, VERSIONS, ours, sealed, signer, tiny

from appliance.jobs import layout
from appliance.jobs.attestation import SEALED, seal_of, sealed_with, write_seal
from appliance.jobs.bundle import pack, unpack
from appliance.jobs.layout import (
    LARGEST,
    LARGEST_FILE,
    LARGEST_FILES,
    LARGEST_MEANING,
    MANIFEST,
    MEANING,
    MOST_FILES,
    SEAL,
    BundleError,
    sha256,
)
from appliance.jobs.layout import canonical as in_one_form
from appliance.jobs.reading import read_bundle
from policies.attestation import IN_TOTO_TYPE, sign_statement
from policies.envelopes import add_signature, canonical, sign_envelope

NOTHING: dict[str, dict[str, object]] = {
    "verdict.json": {"verdict": {"outcome": "", "verifier": "", "version": ""}},
    "versions.json": {"model": "", "policy": "", "environment": ""},
    "statement.json": {"solvedBy": ""},
}
"""What a seal says of a file that says nothing."""
PLACE = {"environment": {"kernel": "6.8", "digest": "ac" * 32}}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return sealed(tmp_path / "job-1")


@pytest.fixture
def packed(bundle: Path, tmp_path: Path) -> Path:
    return pack(bundle, tmp_path / "job-1.zip")


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_seal_says_who_made_the_bundle_with_which_model_under_which_policy(bundle: Path, packed: Path) -> None:
    for path in (bundle, packed):
        found = seal_of(read_bundle(path), KEY.public)
        assert (found.predicate["model"], found.predicate["policy"]) == ("ab" * 32, "cd" * 32)
        assert found.predicate["verdict"] == {"outcome": "pass", "verifier": "predicate", "version": "1"}
        assert found.predicate["solvedBy"] == "policy model"
        assert set(found.subjects) == {file.name for file in read_bundle(path).files}
        assert sealed_with(seal_of(read_bundle(path))) == KEY.public
        assert tiny(path) == ""


def test_a_changed_byte_anywhere_is_seen_by_both_checkers_in_both_forms_with_a_key_and_without(
    bundle: Path, packed: Path
) -> None:
    """Bytes of every region here; every one of them, and 10,000 of a large bundle: `benchmarks/flips.py`."""
    seen = 0
    for file in [*files_of(bundle), packed]:
        whole = packed if file == packed else bundle
        sound = file.read_bytes()
        with file.open("r+b", buffering=0) as at:
            for place in range(0, len(sound), 17):
                at.seek(place)
                at.write(bytes([sound[place] ^ 1 << random.Random(place).randrange(8)]))
                assert ours(whole, None if seen % 2 else KEY.public), (file.name, place)
                assert tiny(whole), (file.name, place)
                at.seek(place)
                at.write(sound[place : place + 1])
                seen += 1
        assert ours(whole) == tiny(whole) == ""
    assert seen > 500


def test_another_key_another_bundle_and_a_file_more_or_less_are_seen(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="sealed with another key"):
        seal_of(read_bundle(bundle), signer("mallory").public)
    assert "another key" in tiny(bundle, signer("mallory").public)
    other = Path(shutil.copytree(bundle, tmp_path / "other"))
    (other / "artifact.txt").write_text("7")
    with pytest.raises(BundleError, match=r"other bytes: 'artifact\.txt'"):
        seal_of(read_bundle(other), KEY.public)
    for extra in ("extra", "files/extra.csv", "files/.hidden", "files/deep/er"):
        (bundle / extra).parent.mkdir(exist_ok=True)
        (bundle / extra).write_text("x")
        assert ours(bundle), extra
        assert tiny(bundle), extra
        (bundle / extra).unlink()
    (bundle / "files" / "deep").rmdir()
    assert ours(bundle) == tiny(bundle) == ""
    for name in ("spec.json", "files/data.csv", "manifest.json", "seal.json"):
        before = (bundle / name).read_bytes()
        (bundle / name).unlink()
        assert ours(bundle), name
        assert tiny(bundle), name
        (bundle / name).write_bytes(before)
    assert ours(bundle) == tiny(bundle) == ""


def test_whoever_seals_anew_is_named_and_is_not_the_one_whose_key_is_given(bundle: Path) -> None:
    write_seal(bundle, signer("mallory"), made_at="2026-01-02T03:04:05+00:00")
    assert sealed_with(seal_of(read_bundle(bundle))) == signer("mallory").public
    assert ours(bundle)
    assert tiny(bundle)


def test_a_seal_that_names_another_key_than_its_own_is_refused_with_every_key(bundle: Path) -> None:
    found = seal_of(read_bundle(bundle), KEY.public)
    for named in (signer("mallory").public.line, KEY.public.line + " comment", ""):
        envelope = sign_statement(found.subjects, SEALED, {**found.predicate, "key": named}, KEY)
        (bundle / SEAL).write_bytes(envelope)
        for key in (KEY.public, signer("mallory").public, None):
            assert ours(bundle, key), (named, key)
        assert tiny(bundle), named


OTHERWISE: dict[str, Callable[[dict[str, Any]], object]] = {
    "another digest too": lambda statement: statement["subject"][0]["digest"].update(sha512="00"),
    "a field of a file": lambda statement: statement["subject"][0].update(uri="x"),
    "an unknown field of a file": lambda statement: statement["subject"][0].update(zzz="x"),
    "another order": lambda statement: statement["subject"].reverse(),
    "a file twice": lambda statement: statement["subject"].append(statement["subject"][0]),
    "a file more": lambda statement: statement["subject"].append({"name": "zzz", "digest": {"sha256": "00" * 32}}),
    "a file less": lambda statement: statement["subject"].pop(),
    "capital digits": lambda statement: statement["subject"][0]["digest"].update(sha256="AB" * 32),
    "another statement": lambda statement: statement.update(_type="https://in-toto.io/Statement/v0.1"),
    "format 1": lambda statement: statement.update(predicateType="urn:assay:bundle:1"),
    "a field more": lambda statement: statement.update(zzz=1),
    "a field by another name": lambda statement: statement.update(predicate_type=statement.pop("predicateType")),
    "no key": lambda statement: statement["predicate"].pop("key"),
    "a list": lambda statement: statement.update(predicate=[1]),
}


@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_the_checkers_agree_about_what_the_keys_holder_wrote_otherwise(bundle: Path, change: Any) -> None:
    statement = json.loads(base64.b64decode(json.loads((bundle / SEAL).read_bytes())["payload"]))
    (bundle / SEAL).write_bytes(sign_envelope(canonical(statement), IN_TOTO_TYPE, KEY))
    assert ours(bundle) == tiny(bundle) == ""
    change(statement)
    (bundle / SEAL).write_bytes(sign_envelope(canonical(statement), IN_TOTO_TYPE, KEY))
    assert ours(bundle)
    assert ours(bundle, None)
    assert tiny(bundle)


OF_OTHER_FILES: dict[str, dict[str, object]] = {
    "another outcome": {"verdict": {"outcome": "fail", "verifier": "predicate", "version": "1"}},
    "another verifier": {"verdict": {"outcome": "pass", "verifier": "lean", "version": "1"}},
    "more of the verdict": {"verdict": {"outcome": "pass", "verifier": "predicate", "version": "1", "score": "1"}},
    "no verdict": {"verdict": None},
    "another solver": {"solvedBy": "z3"},
    "another model": {"model": "f" * 64},
    "no model": {"model": ""},
    "another policy": {"policy": "e" * 64},
    "another environment": {"environment": "d" * 64},
    "an environment in no text": {"environment": 0},
}


@pytest.mark.parametrize("change", OF_OTHER_FILES.values(), ids=OF_OTHER_FILES.keys())
def test_a_seal_that_says_something_else_than_the_files_is_refused_by_both_checkers(
    bundle: Path, change: dict[str, object]
) -> None:
    found = seal_of(read_bundle(bundle), KEY.public)
    (bundle / SEAL).write_bytes(sign_statement(found.subjects, SEALED, {**found.predicate, **change}, KEY))
    for made in (ours(bundle), ours(bundle, None), tiny(bundle)):
        assert f"the seal contradicts the files: {next(iter(change))}" in made


def test_a_seal_without_an_environment_is_about_files_that_name_none(bundle: Path, tmp_path: Path) -> None:
    for folder, holds in ((bundle, True), (sealed(tmp_path / "job-2", versions={**VERSIONS, **PLACE}), False)):
        found = seal_of(read_bundle(folder), KEY.public)
        less = {name: value for name, value in found.predicate.items() if name != "environment"}
        (folder / SEAL).write_bytes(sign_statement(found.subjects, SEALED, less, KEY))
        assert [not ours(folder), not tiny(folder)] == [holds, holds]


@pytest.mark.parametrize(
    "versions",
    [
        {},
        {**VERSIONS, **PLACE},
        {**VERSIONS, "weights": None},
        {**VERSIONS, "weights": ""},
        {**VERSIONS, "weights": "ab" * 32},
        {**VERSIONS, "weights": {}, "policy": 7, "environment": []},
    ],
)
def test_what_versions_say_of_a_model_or_do_not_say_is_in_the_seal_for_both_checkers(
    tmp_path: Path, versions: dict[str, object]
) -> None:
    folder = sealed(tmp_path / "job-1", versions=versions)
    assert ours(folder) == tiny(folder) == ""


@pytest.mark.parametrize(
    "data", [b"[]\n", b"{}\n", b"7", b'{"outcome":"pass","outcome":"pass"}\n', b"NaN", b"[" * 90_000]
)
@pytest.mark.parametrize("name", ["verdict.json", "versions.json", "statement.json"])
def test_files_that_say_nothing_of_what_the_seal_says_are_refused_by_both_checkers(
    bundle: Path, name: str, data: bytes
) -> None:
    predicate = seal_of(read_bundle(bundle), KEY.public).predicate
    listed = json.loads((bundle / "manifest.json").read_bytes())
    (bundle / name).write_bytes(data)
    for one in listed["files"]:
        content = (bundle / one["name"]).read_bytes()
        one.update(bytes=len(content), sha256=sha256(content))
    (bundle / "manifest.json").write_bytes(in_one_form(listed))
    (bundle / SEAL).unlink()
    subjects = {file.relative_to(bundle).as_posix(): sha256(file.read_bytes()) for file in files_of(bundle)}
    (bundle / SEAL).write_bytes(sign_statement(subjects, SEALED, predicate, KEY))
    assert read_bundle(bundle).intact
    assert ours(bundle)
    assert tiny(bundle)


def limits() -> dict[str, dict[str, bytes]]:
    """What is as large, or as much, as a bundle can hold, by name; with one byte or one file more it is too much."""
    most = {name: {name: b"7" * size} for name, size in LARGEST.items() if name not in NOTHING}
    most |= {name: {name: b'"' + b"7" * (LARGEST[name] - 2) + b'"'} for name in NOTHING}
    most |= {MEANING: {MEANING: b"7" * LARGEST_MEANING}, "files/one": {"files/one": bytes(LARGEST_FILE)}}
    most["many files"] = {f"files/{n:02}": b"x" for n in range(MOST_FILES)}
    most["much"] = {f"files/{n}": bytes(LARGEST_FILE) for n in range(LARGEST_FILES // LARGEST_FILE)}
    return most


@pytest.mark.parametrize(("what", "contents"), limits().items(), ids=limits().keys())
def test_both_checkers_take_a_bundle_up_to_the_same_limits(
    bundle: Path, tmp_path: Path, what: str, contents: dict[str, bytes]
) -> None:
    more = {"many files": {"files/more": b"x"}, "much": {"files/more": b"x"}}
    for extra, holds in (({}, True), (more.get(what) or {what: contents.get(what, b"") + b" "}, False)):
        data = {**dict(read_bundle(bundle).contents), **contents, **extra}
        for name in (SEAL, MANIFEST, "files/data.csv"):
            data.pop(name, None)
        predicate = {**seal_of(read_bundle(bundle), KEY.public).predicate, **NOTHING.get(what, {})}
        listed = [{"bytes": len(one), "name": name, "sha256": sha256(one)} for name, one in sorted(data.items())]
        data[MANIFEST] = in_one_form({"files": listed, "schema_version": 2})
        data[SEAL] = sign_statement({name: sha256(one) for name, one in data.items()}, SEALED, predicate, KEY)
        folder, file = tmp_path / f"{holds}", tmp_path / f"{holds}.zip"
        for name, one in data.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(one)
        file.write_bytes(b"".join(layout.encode(data)))
        for path in (folder, file):
            assert [not ours(path), not tiny(path)] == [holds, holds], (ours(path), tiny(path))


def test_what_is_no_file_and_no_folder_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert ours(path)
        assert tiny(path)


def test_a_seal_to_which_somebody_added_a_signature_is_refused(bundle: Path) -> None:
    (bundle / SEAL).write_bytes(add_signature((bundle / SEAL).read_bytes(), signer("mallory")))
    assert ours(bundle)
    assert ours(bundle, None)
    assert tiny(bundle)


def test_a_folder_and_its_one_file_are_the_same_bundle_both_ways(bundle: Path, packed: Path, tmp_path: Path) -> None:
    back = unpack(packed, tmp_path / "back")
    assert [(file.relative_to(back), file.read_bytes()) for file in files_of(back)] == [
        (file.relative_to(bundle), file.read_bytes()) for file in files_of(bundle)
    ]
    assert pack(back, tmp_path / "again.zip").read_bytes() == packed.read_bytes()
    with pytest.raises(BundleError, match="already exists"):
        pack(bundle, packed)
    with pytest.raises(BundleError, match="already exists"):
        unpack(packed, back)


def test_any_program_opens_the_file(packed: Path, bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed) as known:
        assert known.testzip() is None
        known.extractall(tmp_path / "by-zipfile")
    assert ours(tmp_path / "by-zipfile") == ""
    assert {stat.S_IMODE(path.stat().st_mode) for path in (packed, bundle / "artifact.txt")} == {0o644}


def member(name: bytes, data: bytes, *, method: int = 0, claimed: int | None = None, flags: int = 0) -> bytes:
    size = len(data) if claimed is None else claimed
    return struct.pack(
        "<4s5H3I2H", b"PK\3\4", 20, flags, method, 0, 33, zlib.crc32(data), len(data), size, len(name), 0
    ) + (name + data)


def hostile(sound: bytes) -> dict[str, bytes]:
    contents, wrong = layout.decode(sound)
    assert wrong == ""
    first = next(iter(contents))
    other = {name: data for name, data in contents.items() if name != first}
    bomb = zlib.compress(bytes(8 << 20))[2:-4]
    local_end = sound.index(b"PK\1\2")
    end = sound.index(b"PK\5\6")
    return {
        "cut at the front": sound[1:],
        "cut at the end": sound[:-1],
        "cut in the middle": sound[: len(sound) // 2],
        "no directory": sound[:local_end],
        "only its directory": sound[local_end:],
        "bytes behind it": sound + b"\n",
        "bytes before it": b"#!/bin/sh\n" + sound,
        "a comment": sound[:-2] + b"\2\0hi",
        "another archive behind it": sound + sound,
        "a member twice": member(first.encode(), b"7") + sound,
        "a member twice in the directory": sound[:end] + sound[local_end : local_end + 46 + len(first)] + sound[end:],
        "a member too few": b"".join(layout.encode(other)),
        "a member too many": b"".join(layout.encode({**contents, "files/more.csv": b"x"})),
        "a name that leads outside": b"".join(layout.encode({**contents, "../x": b"x"})),
        "a name that leads outside of files": b"".join(layout.encode({**contents, "files/../x": b"x"})),
        "a name from the root": b"".join(layout.encode({**contents, "/etc/x": b"x"})),
        "many members": b"".join(layout.encode({**contents, **{f"files/{n:02}": b"x" for n in range(17)}})),
        "a folder": b"".join(layout.encode({**contents, "files/": b""})),
        "a link": sound.replace(struct.pack("<I", 0o100644 << 16), struct.pack("<I", 0o120777 << 16), 1),
        "a bomb": member(b"artifact.txt", bomb, method=8, claimed=1 << 32 - 1) + sound[local_end:],
        "a size that is not there": member(b"artifact.txt", b"6", claimed=1 << 31) + sound[local_end:],
        "a secret": member(b"artifact.txt", b"6", flags=1) + sound[local_end:],
        "nothing": b"",
        "only an end": sound[end:],
        "no archive": b"hello",
    }


def test_a_hostile_archive_is_refused_by_both_checkers_and_writes_nothing(packed: Path, tmp_path: Path) -> None:
    for what, data in hostile(packed.read_bytes()).items():
        file = tmp_path / "hostile.zip"
        file.write_bytes(data)
        assert ours(file), what
        assert tiny(file), what
        with pytest.raises(BundleError):
            unpack(file, tmp_path / "out")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["hostile.zip", "job-1", "job-1.zip"], what


def test_a_bundle_of_the_first_format_is_refused_with_a_clear_sentence(bundle: Path) -> None:
    manifest = bundle / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"schema_version":2', b'"schema_version":1'))
    assert "format 1 predates any release" in ours(bundle)
    assert tiny(bundle)


def test_a_seal_needs_a_whole_bundle(bundle: Path) -> None:
    (bundle / SEAL).unlink()
    (bundle / "question.txt").write_text("another")
    with pytest.raises(BundleError, match=r"question\.txt"):
        write_seal(bundle, KEY, made_at="2026-01-02T03:04:05+00:00")


def test_the_second_checker_needs_nothing_of_ours() -> None:
    assert "assay" not in {line.split()[1].split(".")[0] for line in TINY.read_text().splitlines() if "import" in line}
    assert not any(line.startswith(("import appliance", "from appliance")) for line in TINY.read_text().splitlines())
