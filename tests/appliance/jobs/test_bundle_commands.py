"""`assay bundle` and the options of `assay verify`, as a person types them."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from bundle_kit import KEY, SPEC, VERDICT, sealed, signer, verify
from printed_json import check_printed
from typer.testing import CliRunner

from appliance.cli.jobs.watch import show_job
from appliance.cli.main import app
from appliance.client.messages import JobDetail
from appliance.jobs.layout import BundleError
from appliance.records.jobs import Artifact, Job, JobState

RUN = CliRunner()


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return sealed(tmp_path / "job-1")


def test_a_bundle_goes_into_one_file_beside_the_person_and_out_again(bundle: Path) -> None:
    packed = RUN.invoke(app, ["bundle", "pack", str(bundle)])
    assert (packed.exit_code, packed.stdout) == (0, "job-1.zip\n")
    unpacked = RUN.invoke(app, ["bundle", "unpack", "job-1.zip"])
    assert (unpacked.exit_code, unpacked.stdout) == (0, "job-1\n")
    assert RUN.invoke(app, ["bundle", "pack", "job-1", "--out", "again.zip"]).exit_code == 0
    assert Path("again.zip").read_bytes() == Path("job-1.zip").read_bytes()


def test_a_job_s_bundle_is_verified_by_the_job_s_id(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "artifacts").mkdir(parents=True)
    bundle.rename(tmp_path / "data" / "artifacts" / "job-1f0c52b7d2aa")
    by_id = RUN.invoke(app, ["verify", "job-1f0c52b7d2aa", "--data", str(tmp_path / "data")])
    assert by_id.exit_code != 2, by_id.output
    assert by_id.stdout == RUN.invoke(app, ["verify", str(tmp_path / "data" / "artifacts" / "job-1f0c52b7d2aa")]).stdout
    unknown = RUN.invoke(app, ["verify", "job-000000000000", "--data", str(tmp_path / "data")])
    assert unknown.exit_code == 2


def test_the_command_that_checks_an_answer_again_does_not_take_another_bundle_in_its_folder(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of another job holds, too, and is sealed with the same key."""
    job = Job(id="job-1", question="q", spec=SPEC, state=JobState.SOLVED, artifact="job-1", created="", updated="")
    artifact = Artifact(
        id="job-1",
        job="job-1",
        folder="artifacts/job-1",
        manifest=hashlib.sha256((bundle / "manifest.json").read_bytes()).hexdigest(),
        answer="6",
        weights="",
        verdict=VERDICT,
        created="",
    )
    show_job(JobDetail(job=job, artifact=artifact, bundle=str(bundle)))
    (command,) = re.findall(r"assay (verify .* --digest [0-9a-f]{64})", " ".join(capsys.readouterr().out.split()))
    not_expected = "the manifest does not have the expected digest"
    assert not_expected not in RUN.invoke(app, command.split()).stdout
    bundle.rename(tmp_path / "aside")
    sealed(bundle, files={})
    assert not_expected in RUN.invoke(app, command.split()).stdout


def test_of_a_file_with_a_changed_name_the_fault_is_said_and_nothing_that_follows_from_it(bundle: Path) -> None:
    RUN.invoke(app, ["bundle", "pack", str(bundle)])
    packed = Path("job-1.zip")
    packed.write_bytes(packed.read_bytes().replace(b"artifact.txt", b"artifact.tXt", 1))
    lines = RUN.invoke(app, ["verify", "job-1.zip"]).stdout.splitlines()
    assert lines[1] == "the archive: unknown member name: 'artifact.tXt'"
    assert not [line for line in lines if line.startswith("missing")]
    packed.write_bytes(packed.read_bytes().replace(b"artifact.tXt", b"artifact.txt", 1)[:-1])
    assert RUN.invoke(app, ["verify", "job-1.zip"]).stdout.splitlines()[1].startswith("the archive: ")


def test_what_was_written_is_said_as_json(bundle: Path) -> None:
    for arguments in (("bundle", "pack", str(bundle), "--json"), ("bundle", "unpack", "job-1.zip", "--json")):
        ran = RUN.invoke(app, arguments)
        check_printed(arguments, ran.stdout)
        assert json.loads(ran.stdout)["file"] in ("job-1.zip", "job-1")


def test_a_word_that_lies_beside_the_folder_is_not_forgotten(bundle: Path) -> None:
    bundle.with_name("job-1.meaning.json").write_bytes(b"{}")
    packed = RUN.invoke(app, ["bundle", "pack", str(bundle)])
    assert (packed.exit_code, packed.stdout) == (0, "job-1.zip\n")
    assert packed.stderr.startswith("a later signature is not included")
    assert "job-1.meaning.json" in packed.stderr


def test_what_cannot_be_packed_or_unpacked_is_said_with_what_to_do(bundle: Path) -> None:
    (bundle / "artifact.txt").write_text("7")
    Path("no.zip").write_bytes(b"hello")
    for arguments in (["pack", str(bundle)], ["pack", "nowhere"], ["unpack", "no.zip"], ["unpack", str(bundle)]):
        ended = RUN.invoke(app, ["bundle", *arguments])
        assert isinstance(ended.exception, BundleError), arguments
        assert (ended.exception.exit_code, bool(ended.exception.hint)) == (2, True)
    assert [path.name for path in Path().iterdir()] == ["no.zip"]


def test_a_seal_of_another_key_a_key_that_is_none_and_a_word_that_is_none_have_their_exit_codes(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mallory.pub").write_text(signer("mallory").public.line + "\n")
    Path("trainer.pub").write_text(KEY.public.line + " a comment\n")
    assert verify(bundle, json_out=False, key=Path("mallory.pub")) == 1
    assert "sealed with another key" in capsys.readouterr().out
    for options in ({"key": Path("nowhere.pub")}, {"key": bundle / "artifact.txt"}, {"people": [Path("nowhere.pub")]}):
        assert verify(bundle, json_out=False, **options) == 2
        assert "invalid public key" in capsys.readouterr().err
    (bundle.parent / "job-1.meaning.json").mkdir()
    (bundle / "question.txt").write_text("another")
    assert verify(bundle, json_out=False, key=Path("trainer.pub"), html=Path("page.html")) == 1
    out = capsys.readouterr().out
    assert "changed question.txt" in out
    assert "not checked here:\n  the answer: the faults of the bundle come first" in out
    assert out.startswith("not verified\nchanged question.txt\n")
    assert '<h1 class="bad">not verified</h1>' in Path("page.html").read_text()
    assert verify(bundle, json_out=False, html=bundle) == 2
