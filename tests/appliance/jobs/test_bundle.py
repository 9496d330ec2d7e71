"""A bundle says whether it is whole, to the last bit, and proves its answer again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bundle_kit import KEY, KINDS, QUESTION, SPEC, TRANSCRIPT, VERSIONS, clean, sealed, verify
from forked_commands import ForkedCommand
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.jobs import check, layout
from appliance.jobs.attestation import write_seal
from appliance.jobs.bundle import UNFINISHED, pack, write_bundle
from appliance.jobs.layout import ANSWER, BOUNDS, LARGEST, MANIFEST, BundleError, canonical, sha256
from appliance.jobs.reading import FileState
from appliance.jobs.report import BundleReport
from appliance.learning.folders import sweep
from common import strict_json
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome, Verdict

FILES = sorted([*LARGEST, MANIFEST])


CHECKER = Checker()
"""One for all tests: `check_bundle` starts one for each bundle otherwise, as the command does."""


def check_bundle(folder: Path, *, expect: str | None = None) -> BundleReport:
    return check.check_bundle(folder, expect=expect, seconds=60, checker=CHECKER)


@pytest.fixture(scope="module", autouse=True)
def verdict() -> Iterator[Verdict]:
    global CHECKER
    with Checker() as CHECKER:
        yield CHECKER.check(SPEC, "6", 60)


def written(folder: Path, verdict: Verdict, answer: str = "6") -> str:
    return write_bundle(
        folder,
        answer=answer,
        question=QUESTION,
        spec=SPEC,
        verdict=verdict,
        transcript=TRANSCRIPT,
        versions=VERSIONS,
        solved_by="policy model",
        meaning=None,
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, verdict: Verdict) -> Path:
    folder = tmp_path_factory.mktemp("bundles") / "original"
    written(folder, verdict)
    return folder


@pytest.fixture
def bundle(tmp_path: Path, original: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "bundle"))


def rewritten(folder: Path, changes: dict[str, bytes]) -> None:
    """What a forger does: other contents, and a manifest that agrees with them."""
    for name, data in changes.items():
        (folder / name).write_bytes(data)
    files = [
        {"name": name, "sha256": sha256(data), "bytes": len(data)}
        for name in sorted(LARGEST)
        for data in [(folder / name).read_bytes()]
    ]
    (folder / MANIFEST).write_bytes(canonical({"schema_version": 2, "files": files}))


def states(report: BundleReport) -> dict[str, FileState]:
    return {file.name: file.state for file in report.files}


def test_a_bundle_that_nobody_touched_is_verified_again(original: Path, verdict: Verdict) -> None:
    report = check_bundle(original)
    assert report.ok, report.reasons
    assert report.reasons == ()
    assert set(states(report).values()) == {FileState.INTACT}
    assert report.verdict_then == verdict
    assert report.verdict_now is not None
    assert report.verdict_now.passed
    assert report.answer == "6"


def test_it_names_its_manifest_and_holds_that_against_an_expectation(bundle: Path) -> None:
    digest = sha256((bundle / MANIFEST).read_bytes())
    assert check_bundle(bundle, expect=digest.upper()).ok
    report = check_bundle(bundle, expect="0" * 64)
    assert not report.ok
    assert report.manifest == digest


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_one_flipped_bit_anywhere_is_seen(bundle: Path, name: str, where: float, bit: int) -> None:
    path = bundle / name
    before = path.read_bytes()
    changed = bytearray(before)
    changed[int(where * len(before))] ^= 1 << bit
    path.write_bytes(changed)
    try:
        assert not check_bundle(bundle).ok
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("name", FILES)
def test_every_byte_of_every_file_counts(bundle: Path, name: str) -> None:
    path = bundle / name
    before = path.read_bytes()
    for position in range(len(before)):
        path.write_bytes(before[:position] + bytes([before[position] ^ 1]) + before[position + 1 :])
        assert not check_bundle(bundle).ok
    path.write_bytes(before)
    assert check_bundle(bundle).ok


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage", ["missing", "empty", "longer", "shorter", "link", "broken link", "hard link", "folder", "pipe", "huge"]
)
def test_a_file_that_is_not_itself_any_more_fails(bundle: Path, tmp_path: Path, name: str, damage: str) -> None:
    path = bundle / name
    data = path.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    if damage in ("empty", "longer", "shorter"):
        path.write_bytes({"empty": b"", "longer": data + b"\n", "shorter": data[:-1]}[damage])
    elif damage == "hard link":
        os.link(path, elsewhere)
    elif damage == "huge":
        os.truncate(path, 1 << 40)
    else:
        path.unlink()
        if damage == "link":
            elsewhere.write_bytes(data)
            path.symlink_to(elsewhere)
        elif damage == "broken link":
            path.symlink_to(elsewhere)
        elif damage == "folder":
            path.mkdir()
        elif damage == "pipe":
            os.mkfifo(path)
    report = check_bundle(bundle)
    assert not report.ok
    assert report.verdict_now is None
    assert states(report)[name] is not FileState.INTACT


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "artifact.txt~", "ARTIFACT.TXT", "\x1b[2Jx", "\udcff"])
def test_a_file_that_was_added_fails_and_cannot_steer_a_terminal(bundle: Path, name: str) -> None:
    (bundle / name).write_bytes(b"")
    report = check_bundle(bundle)
    assert not report.ok
    added = [file.name for file in report.files if file.state is FileState.ADDED]
    assert len(added) == 1
    assert added[0].isprintable()
    assert added[0].isascii()


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda value: json.dumps(value, indent=1).encode(),
        lambda value: canonical(value) + b"\n",
        lambda value: canonical({**value, "signed": True}),
        lambda value: canonical({**value, "schema_version": 3}),
        lambda value: canonical({**value, "files": value["files"][::-1]}),
        lambda value: canonical({**value, "files": [*value["files"], value["files"][0]]}),
        lambda value: canonical({**value, "files": value["files"][1:]}),
        lambda value: canonical(
            {**value, "files": [{**value["files"][0], "name": "../artifact.txt"}, *value["files"][1:]]}
        ),
        lambda value: canonical(value).replace(b'{"files"', b'{"schema_version":2,"files"'),
        lambda value: canonical(value).replace(b'"schema_version":2', b'"schema_version":true'),
        lambda value: b"[" * 100_000,
        lambda value: b"\xff\xfe",
        lambda value: b"null\n",
    ],
)
def test_a_manifest_has_one_way_to_be_written(bundle: Path, rewrite: object) -> None:
    path = bundle / MANIFEST
    path.write_bytes(rewrite(json.loads(path.read_bytes())))
    report = check_bundle(bundle)
    assert not report.ok
    found = states(report)
    assert found.pop(MANIFEST) in (FileState.CHANGED, FileState.UNREADABLE)
    assert set(found.values()) == {FileState.UNCHECKED}


FORGERIES = {
    "another answer": {"artifact.txt": b"7"},
    "an answer that is code": {"artifact.txt": b"__import__('os').system('true')"},
    "an answer in no encoding": {"artifact.txt": b"\xff\xfe6"},
    "a vacuous spec": {"spec.json": canonical(SPEC.model_copy(update={"predicate": "x == x"}).model_dump())},
    "a spec of no kind": {"spec.json": canonical({"kind": "trust me"})},
    "a spec with a name twice": {"spec.json": b'{"kind":"answer","kind":"exact","expected":"6"}\n'},
    "a spec that the answer does not fulfil": {
        "spec.json": canonical(SPEC.model_copy(update={"predicate": "7*x + 3 == 52"}).model_dump())
    },
    "a transcript that refers forward": {
        "transcript.json": canonical([{"parent": 0, "role": "user", "text": "", "sampled": False}])
    },
    "a transcript that is no list": {"transcript.json": b"{}\n"},
    "versions that are no object": {"versions.json": b"[]\n"},
    "versions that are not a number": {"versions.json": b'{"assay":NaN}\n'},
    "versions nested without end": {"versions.json": b'{"a":' * 50_000},
}


@pytest.mark.parametrize("changes", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forgery_with_a_manifest_that_agrees_fails_at_the_verifier(bundle: Path, changes: dict[str, bytes]) -> None:
    rewritten(bundle, changes)
    report = check_bundle(bundle)
    assert set(states(report).values()) == {FileState.INTACT}
    assert not report.ok
    assert report.reasons
    assert not report.undecided


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "fail", "score": 0.0},
        {"verifier": "oracle"},
        {"reason": "because I say so"},
        {"evidence": {"value": "6", "submitted": "6", "approved": True}},
        {"score": 0.5},
    ],
)
def test_a_stored_verdict_that_the_verifier_does_not_give_fails(bundle: Path, change: dict[str, object]) -> None:
    stored = json.loads((bundle / "verdict.json").read_bytes())
    rewritten(bundle, {"verdict.json": canonical({**stored, **change})})
    report = check_bundle(bundle)
    assert not report.ok
    assert any("stored" in reason for reason in report.reasons)


def test_a_rewritten_question_is_only_seen_with_the_digest_that_was_noted(bundle: Path) -> None:
    digest = sha256((bundle / MANIFEST).read_bytes())
    rewritten(bundle, {"question.txt": b"another question"})
    assert check_bundle(bundle).ok
    assert not check_bundle(bundle, expect=digest).ok


def test_equal_content_gives_equal_bytes_and_another_answer_another_digest(tmp_path: Path, verdict: Verdict) -> None:
    digests = [written(tmp_path / name, verdict) for name in ("a", "b")]
    assert digests[0] == digests[1]
    assert written(tmp_path / "c", verdict, answer="12/2") != digests[0]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == FILES


def test_only_a_pass_becomes_a_bundle(tmp_path: Path, verdict: Verdict) -> None:
    for outcome in set(Outcome) - {Outcome.PASS}:
        with pytest.raises(BundleError):
            written(tmp_path / "bundle", verdict.model_copy(update={"outcome": outcome}))
    assert list(tmp_path.iterdir()) == []


def test_what_a_bundle_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path, verdict: Verdict) -> None:
    with pytest.raises(BundleError):
        written(tmp_path / "bundle", verdict, answer="\ud800")
    with pytest.raises(BundleError):
        written(tmp_path / "bundle", verdict, answer="6" * (LARGEST["artifact.txt"] + 1))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "files",
    [
        {"../x": b""},
        {"a/b": b""},
        {".hidden": b""},
        {"": b""},
        {"a\n": b""},
        {"x" * 101: b""},
        {f"{n}.csv": b"" for n in range(17)},
        {"large.bin": bytes((8 << 20) + 1)},
        {f"{n}.bin": bytes(7 << 20) for n in range(5)},
    ],
    ids=["up", "deep", "hidden", "nameless", "a line", "long", "many", "large", "large together"],
)
def test_files_that_a_bundle_cannot_hold_are_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    with pytest.raises(BundleError):
        sealed(tmp_path / "bundle", files=files)
    assert list(tmp_path.iterdir()) == []


def test_a_transcript_that_would_fill_the_memory_is_refused_by_both_sides(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(bundle, {"transcript.json": b"[" + b"[]," * 4_100_000 + b"[]]\n"})
    assert any("values" in reason for reason in check_bundle(bundle).reasons)
    monkeypatch.setattr(layout, "TRANSCRIPT_BOUNDS", replace(BOUNDS, values=100))
    message = {"parent": None, "role": "user", "text": "[," * 40, "sampled": False}
    sealed(tmp_path / "text", transcript=[message])
    with pytest.raises(BundleError, match="values"):
        sealed(tmp_path / "new", transcript=[message] * 40)


def test_writing_again_replaces_and_leaves_nothing_beside(tmp_path: Path, verdict: Verdict) -> None:
    folder = tmp_path / "bundle"
    written(folder, verdict, answer="12/2")
    (folder / "notes.txt").write_text("added")
    written(folder, verdict)
    assert check_bundle(folder).answer == "6"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_writer_killed_at_any_write_leaves_the_old_bundle_whole(tmp_path: Path, verdict: Verdict) -> None:
    folder = tmp_path / "bundle"
    digest = written(folder, verdict)
    program = f"""
import os, signal
from pathlib import Path
import appliance.jobs.bundle as bundle
from tests_spec import SPEC, VERDICT
calls = 0
real = os.fsync
def fsync(descriptor):
    global calls
    calls += 1
    real(descriptor)
    if calls == int(os.environ["KILL_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
bundle.write_bundle(Path({str(folder)!r}), answer="12/2", question="q", spec=SPEC, verdict=VERDICT, transcript=[],
                    versions={{}},
                    solved_by="policy model", meaning=None)
"""
    (tmp_path / "tests_spec.py").write_text(
        "from verifiers.registry.spec import SPEC as A\nfrom verifiers.contract.verdict import Verdict\n"
        f"SPEC = A.validate_json({SPEC.model_dump_json()!r})\n"
        f"VERDICT = Verdict.model_validate_json({verdict.model_dump_json()!r})\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}"}
    for kill_at in (1, 4, 7, 8):
        assert ForkedCommand((), {**environment, "KILL_AT": str(kill_at)}, program=program).wait(120) == -9
        assert sha256((folder / MANIFEST).read_bytes()) == digest
        assert [path.name.startswith(UNFINISHED) for path in tmp_path.iterdir() if path.is_dir()].count(True) == 1
        assert len(sweep(tmp_path)) == 1
    assert check_bundle(folder, expect=digest).ok


@pytest.mark.parametrize("what", list(KINDS)[1:])
def test_a_bundle_of_any_kind_is_verified_again_to_the_last_word(tmp_path: Path, what: str) -> None:
    spec, answer = KINDS[what]
    then = CHECKER.check(spec, answer, 120)
    assert then.passed, then
    folder = tmp_path / "bundle"
    write_bundle(
        folder,
        answer=answer,
        question=QUESTION,
        spec=spec,
        verdict=then,
        transcript=TRANSCRIPT,
        versions=VERSIONS,
        solved_by="policy model",
        meaning=None,
    )
    report = check_bundle(folder)
    assert report.ok, report.reasons
    rewritten(folder, {ANSWER: b"0"})
    assert not check_bundle(folder).ok


def test_the_command_says_what_it_found_and_ends_with_its_exit_code(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = sha256((bundle / MANIFEST).read_bytes())
    assert verify(bundle, json_out=False) == 0
    shown = capsys.readouterr().out
    assert digest in shown
    assert "verified" in shown
    assert verify(bundle, json_out=True, expect=digest) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    assert verify(bundle, json_out=False, expect="0" * 64) == 1
    assert verify(bundle, json_out=False, expect="not a digest") == 2
    assert verify(tmp_path / "nowhere", json_out=False) == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert verify(tmp_path / "other", json_out=False) == 2
    assert "is not a bundle" in capsys.readouterr().err
    assert verify(bundle / "artifact.txt", json_out=True) == 2
    out = capsys.readouterr()
    assert "Traceback" not in out.err
    assert json.loads(out.out[out.out.index("{") :])["hint"]
    rewritten(bundle, {"artifact.txt": b"[red]7[/red]\x1b[2J"})
    assert verify(bundle, json_out=False) == 1
    assert "\x1b[2J" not in capsys.readouterr().out


def test_an_answer_in_one_file_is_verified_where_nobody_knows_the_daemon(bundle: Path, tmp_path: Path) -> None:
    write_seal(bundle, KEY, made_at="2026-01-02T03:04:05+00:00")
    code, report = clean(tmp_path, pack(bundle, tmp_path / "job-1.zip"))
    assert (code, report["ok"], report["form"]) == (0, True, "file"), report["reasons"]
    assert report["verdict_now"]["isolation"]
    assert report["seal"]["known"] is True
    assert report["mark"] == "verified, not validated"
    assert [one["what"].split(":")[0] for one in report["not_checked"]] == [
        "the transcript",
        "the solver, the model with its lineage, the tools, the environment and the policy",
    ]


def test_a_machine_that_cannot_run_the_verifier_says_so_and_not_that_the_bundle_is_bad(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python3")
    assert verify(bundle, json_out=False) == 5
    assert "could not decide it again" in capsys.readouterr().out


def test_strict_json_takes_no_liberties() -> None:
    assert strict_json.read(b"[" * 99 + b"0" + b"]" * 99, BOUNDS)
    deep = b"[" * 100 + b"0" + b"]" * 100
    for data in (deep, b'{"a":1,"a":2}', b"NaN", b"Infinity", b"[" * 100_000, b"\xff", b"{'a':1}", b"1 2", b""):
        with pytest.raises(ValueError):  # noqa: PT011 - any of its kinds
            strict_json.read(data, BOUNDS)
    with pytest.raises(ValueError):  # noqa: PT011 - any of its kinds
        canonical(float("nan"))


def test_checking_imports_neither_torch_nor_sympy() -> None:
    program = "import sys, appliance.cli.jobs.verify; sys.exit(bool({'torch', 'sympy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
