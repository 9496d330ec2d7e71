"""A report says how the appliance is, and none of the secrets that were planted everywhere are in it."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import stat
import tarfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from forked_commands import run_forked
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from appliance.bug_report.collect import REMOVED, Redactor, cut_lines, known_secrets, last_lines, parts, write
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.errors import AssayError, UsageError
from appliance.records.cycles import Event
from appliance.system.clock import utc_now

TOKEN = "kX9-planted-Token-77"
PLANTED = {
    "bearer": "Authorization: Bearer abcDEF123456789",
    "openai": "sk-proj-abcdefghijklmnop1234",
    "github": "ghp_abcdefghijklmnopqrstuvwx1234",
    "hub": "hf_abcdefghijklmnopqrstuvwx",
    "aws": "AKIAABCDEFGHIJKLMNOP",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "url": "https://ada:correct-horse@example.org/hook",
    "assigned": 'smtp_password = "correct horse battery"',
    "json": '{"api_key": "correct-horse-battery"}',
    "mail": "ada@example.org",
    "pem": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----",
}
BARE = ("abcDEF123456789", "sk-proj-abc", "ghp_abc", "hf_abcdef", "AKIAABC", "eyJhbGci", "correct", "ada@", "b3BlbnNza")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with secrets in its logs, its events and its rollouts."""
    folder = tmp_path / "data"
    with Core(Settings(data=folder)) as core:
        core.ledger.put_event(Event(kind="test", text=f"went by {TOKEN}", created=utc_now()))
        core.ledger.put_event(Event(kind="test", text=PLANTED["url"], created=utc_now()))
    (folder / "engine.key").write_text(f"{TOKEN}\n")
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / "worker.log").write_text("\n".join([*PLANTED.values(), f"x{TOKEN}y", "an ordinary line"]))
    return folder


def report(data: Path, target: Path, *, rollouts: bool = False, **more: object) -> dict[str, str]:
    redactor = Redactor(known_secrets(data, {"ASSAY_TEACHER_KEY": "teachers-own-secret"}), "/srv/ada")
    asked = parts(Settings(data=data), lambda: [{"name": "disk", **more}], lambda: {"x": 1}, rollouts=rollouts)
    write(target, asked, redactor, 0)
    with tarfile.open(target) as archive:
        return {one.name: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]


def test_no_planted_secret_is_in_a_report_and_what_helps_is(data, tmp_path) -> None:
    private = (data / "keys" / "daemon.pem").read_text().splitlines()[1]
    files = report(
        data, tmp_path / "r.tar.gz", rollouts=True, figure=f"{private} and teachers-own-secret", token="anything"
    )
    whole = "\n".join(files.values())
    for secret in (TOKEN, private, "teachers-own-secret", "anything", *BARE):
        assert secret not in whole, secret
    assert REMOVED in whole
    worker = files["assay-bug-report/logs/worker.log"]
    assert "an ordinary line" in worker
    assert json.loads(files["assay-bug-report/versions.json"])["packages"]["pydantic"]
    assert json.loads(files["assay-bug-report/ledger.json"])["schema_revision"]
    assert json.loads(files["assay-bug-report/config.json"])["recipe.agent.max_tokens"]["value"] > 0, "no secret"
    assert "No such file" in files["assay-bug-report/logs/broker.log"]
    assert stat.S_IMODE((tmp_path / "r.tar.gz").stat().st_mode) == 0o600


def test_what_notices_are_sent_with_is_in_no_report(data, tmp_path) -> None:
    (tmp_path / "hook").write_text("swordfish-of-the-hook\n")
    (tmp_path / "mail").write_text("swordfish-of-the-mail\n")
    topic = "https://ntfy.example.org/nights-4711"
    config = tmp_path / "assay" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        f'[report]\nwebhook = "https://hooks.example.org/T00/B11"\nwebhook_token = "{tmp_path / "hook"}"\n'
        f'ntfy = "{topic}"\nntfy_token = "topic"\n'
        f'[report.email]\nhost = "localhost"\nsender = "a@example.org"\nto = ["b@example.org"]\nuser = "a"\n'
        f'password = "{tmp_path / "mail"}"\n'
    )
    (tmp_path / "topic").write_text("swordfish-of-the-topic\n")
    sent = "swordfish-of-the-hook swordfish-of-the-mail swordfish-of-the-topic https://hooks.example.org/T00/B11"
    (data / "logs" / "worker.log").write_text(f"sent to {topic} {sent}\n")
    made = run_forked(
        ("bug-report", "--data", str(data), "--out", str(tmp_path / "r.tar.gz")),
        {
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "CREDENTIALS_DIRECTORY": str(tmp_path),
            "XDG_CONFIG_HOME": str(tmp_path),
        },
    )
    assert made.returncode == 0, made.stderr
    with tarfile.open(tmp_path / "r.tar.gz") as archive:
        whole = b"\n".join(archive.extractfile(one).read() for one in archive)  # type: ignore[union-attr]
    assert b"sent to" in whole
    for secret in (b"swordfish", b"nights-4711", b"hooks.example.org"):
        assert secret not in whole, secret
    shown = Redactor([]).value({"report.ntfy": {"value": topic, "origin": "file"}})
    assert topic not in json.dumps(shown)


def test_rollouts_are_in_it_only_when_asked_for_and_nothing_is_written_over(data, tmp_path) -> None:
    files = report(data, tmp_path / "r.tar.gz")
    assert "assay-bug-report/rollouts.jsonl" not in files
    before = (tmp_path / "r.tar.gz").read_bytes()
    with pytest.raises(UsageError):
        report(data, tmp_path / "r.tar.gz")
    assert (tmp_path / "r.tar.gz").read_bytes() == before


def test_a_report_in_which_a_secret_is_left_is_not_written(tmp_path) -> None:
    class Forgetful(Redactor):
        def text(self, text: str) -> str:
            return text

    with pytest.raises(AssayError, match="would contain a secret"):
        write(tmp_path / "r.tar.gz", {"a.txt": lambda: f"so {TOKEN}"}, Forgetful([TOKEN]), 0)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_had_is_said_in_its_place(tmp_path) -> None:
    def broken() -> object:
        raise OSError(5, "Input/output error")

    write(tmp_path / "r.tar.gz", {"a.json": broken, "b.txt": lambda: "there"}, Redactor([]), 0)
    with tarfile.open(tmp_path / "r.tar.gz") as archive:
        assert b"Input/output error" in archive.extractfile("assay-bug-report/a.json").read()  # type: ignore[union-attr]
        assert archive.extractfile("assay-bug-report/b.txt").read() == b"there"  # type: ignore[union-attr]


@settings(max_examples=FROM_STRANGERS)
@given(
    st.text(st.characters(exclude_characters="[]"), min_size=6, max_size=40), st.text(max_size=60), st.text(max_size=60)
)
def test_a_known_secret_is_never_left_whatever_stands_around_it(secret: str, before: str, after: str) -> None:
    cleaned = Redactor([secret]).text(f"{before}{secret}{after}")
    assert secret not in cleaned or secret in REMOVED
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    assert encoded not in Redactor([secret]).text(f"{before} {encoded} {after}")


@table(
    "shape",
    [
        "AWS_SECRET_ACCESS_KEY=VALUE",
        "SECRET_KEY = 'VALUE'",
        "export DB_PASS=VALUE",
        "private_key=VALUE",
        "signing-key: VALUE",
        "pwd=VALUE",
        r"{\"password\": \"VALUE\"}",
        r'"{\\\"token\\\": \\\"VALUE\\\"}"',
        r'password="a\"VALUE"',
        'password="VALUE',
        "tokenValue=VALUE",
        "password := VALUE",
        "token: |\n  VALUE",
        "password%3DVALUE",
        "password=" + "x" * 4_100 + "VALUE",
        "--password VALUE",
        "--teacher-api-key=VALUE",
        "(b'x-api-key', b'VALUE')",
        "<password>VALUE</password>",
        "machine h login u password VALUE",
        "Authorization: Token VALUE",
        "authorization: Digest username=x, response=VALUE",
        "Cookie: a=1; sid=VALUE; b=2",
        "https://ada:pa@VALUE@host/x",
        "https://VALUE-0123456789@host/x",
        "https://h/x?y=1&sig=VALUE&z=2",
        "https://hooks.slack.com/services/T000/B000/VALUE",
        "sk_live_VALUE0123456789",
        "AIzaVALUE0123456789012345678901",
        "npm_VALUE0123456789012345",
        "glrt-VALUE0123456789",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVALUE\n-----END PGP PRIVATE KEY BLOCK-----",
        "said\nQUJD\r\nVALUE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_taken_out_in_every_shape_that_programs_write(shape: str) -> None:
    planted = shape.replace("VALUE", "SeKr3tVALUE99x")
    assert "SeKr3t" not in Redactor([]).text(f"before {planted}\nafter")
    assert Redactor([]).text(f"before {planted}\nafter").startswith("before ")


def test_a_known_secret_is_taken_out_of_an_address_too() -> None:
    secret = "kX9+planted/Token=77"
    for form in ("kX9%2Bplanted%2FToken%3D77", base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")):
        assert form not in Redactor([secret]).text(f"https://example.org/x?y={form}&z=1")


@pytest.mark.parametrize(
    "text", ["A\n" * 100_000, "-" * 200_000, "token" + "\\" * 200_000, "a@" * 100_000, "a://" * 50_000]
)
def test_a_hostile_text_is_looked_at_in_a_time_that_grows_with_its_length(text: str) -> None:
    begun = time.process_time()
    Redactor([]).text(f"{text}-----END PRIVATE KEY-----")
    assert time.process_time() - begun < 15


def test_a_row_that_somebody_edited_into_nonsense_ends_no_report(data, tmp_path) -> None:
    with closing(sqlite3.connect(data / "ledger.sqlite3")) as ledger:
        ledger.execute("UPDATE events SET payload = '{broken' WHERE sequence = (SELECT max(sequence) FROM events)")
        ledger.commit()
    assert "this row is not valid JSON" in report(data, tmp_path / "report.tar.gz")["assay-bug-report/events.jsonl"]


def test_digests_and_ordinary_sentences_stay_as_they_are() -> None:
    text = f"the candidate {'ab' * 32} passed; 12 tokens a second; key bindings; the password policy holds"
    assert Redactor([]).text(text) == text
    text = "max_tokens=512 tokenizer: seedling pass=12 PWD=/srv/x; the token is refused; http://127.0.0.1:8210/v1?y=1"
    assert Redactor([]).text(text) == text
    assert Redactor([], "/srv/ada").text("/srv/ada/data") == "~/data"


def test_of_a_long_log_the_end_is_taken_and_long_lines_are_cut(tmp_path) -> None:
    (tmp_path / "log").write_text("".join(f"{number} {'x' * 3000}\n" for number in range(2000)))
    lines = cut_lines(last_lines(tmp_path / "log")).splitlines()
    assert lines[0].split()[1].startswith("x")
    assert lines[-1].startswith("1999 ")
    assert max(map(len, lines)) <= 2000


def test_a_secret_that_a_cut_goes_through_is_in_no_report(data, tmp_path) -> None:
    far, key = "y" * 1990, "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\n" * 3
    log = data / "logs" / "worker.log"
    log.write_text(f"{key}-----END PRIVATE KEY-----\n{far} {TOKEN}\n{far} bearer sk-{'a' * 40}\n")
    files = report(data, tmp_path / "report.tar.gz")
    said = files["assay-bug-report/logs/worker.log"]
    assert TOKEN[:4] not in said
    assert "sk-a" not in said
    assert "QUJD" not in said
    log.write_text(f"{TOKEN * 30_000}\nan ordinary line\n")
    again = report(data, tmp_path / "again.tar.gz")["assay-bug-report/logs/worker.log"]
    assert again == "an ordinary line\n"


def test_no_mark_in_a_text_of_the_ledger_breaks_a_report(data, tmp_path) -> None:
    with Core(Settings(data=data)) as core:
        core.ledger.put_event(Event(kind="test", text="a\u2028b\x85c\x1cd\re\x0bf", created=utc_now()))
    assert "a\\u2028b" in report(data, tmp_path / "report.tar.gz")["assay-bug-report/events.jsonl"]


def test_rules_of_redaction_are_in_no_report_for_they_say_what_must_not_be_kept(data) -> None:
    config = json.loads(Settings(data=data, gateway={"redact": ["project falcon", "hunter2"]}).render_json())
    assert Redactor(()).value(config)["gateway.redact"]["value"] == [REMOVED, REMOVED]
