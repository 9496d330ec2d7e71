"""The loop of docs/gateway.md as it stands there: the embedded model, the `openai` client, and a real sandbox."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import guest_roots as building

from appliance.gateway.app import GatewayApi
from appliance.gateway.champion import ServedChampion
from appliance.gateway.keeping import SessionKeeper
from appliance.gateway.server import GatewayDoor, GatewayServer, KnownTokens, loopback_socket
from appliance.gateway.sessions import KeptSessions, why_no_task
from appliance.gateway.tokens import new_token
from appliance.inference.engine_loop import EngineLoop
from appliance.inference.engines import make_engine
from appliance.inference.folder import read_model
from appliance.learning.folders import write_by_digest
from appliance.system.clock import utc_now
from appliance.text.redaction import USUAL, Redaction
from verifiers.checker import Checker

PAGE = Path(__file__).parents[3] / "docs" / "gateway.md"
SEEDLING = Path(__file__).parents[2] / "fixtures" / "seedling"
"""The first champion of the demo, before its night."""


def loop_of_the_page() -> str:
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", PAGE.read_text(), re.MULTILINE)
    (found,) = [textwrap.dedent(block) for block in blocks if "tool_calls" in block]
    return found


def run_the_loop(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", loop_of_the_page()]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environ)


def test_the_loop_of_the_page_takes_the_embedded_model_to_a_verdict_and_a_session(
    tmp_path: Path, guest_roots: Path
) -> None:
    digest = write_by_digest(tmp_path / "models", read_model(SEEDLING))
    building.lend(guest_roots, tmp_path / "run")
    _, secret = new_token(tmp_path, "agent", consent=True, now=utc_now())
    kept = KeptSessions(tmp_path)
    sock = loopback_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "OPENAI_", "XDG_"))},
        "ASSAY_DATA": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "no-config"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "OPENAI_API_KEY": secret,
    }
    with (
        Checker() as checker,
        EngineLoop(make_engine("torch", rows=1, slots=256, threads=1)) as loop,
        ServedChampion(loop, tmp_path, lambda: digest) as champion,
    ):
        api = GatewayApi(loop, champion, 192, checker, SessionKeeper(kept, Redaction(USUAL), 30.0, utc_now))
        full = GatewayApi(loop, champion, 8, checker, SessionKeeper(kept, Redaction(USUAL), 30.0, utc_now))
        with GatewayServer(GatewayDoor(api.app, KnownTokens(tmp_path), port), sock):
            done = run_the_loop(environ)
        again = loopback_socket("127.0.0.1", 0)
        port = again.getsockname()[1]
        with GatewayServer(GatewayDoor(full.app, KnownTokens(tmp_path), port), again):
            ended = run_the_loop({**environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "the model's context is 8" in ended.stdout
    (session,) = kept.all()
    assert (done.returncode, done.stdout) == (0, f"\\boxed{{783}} pass {session.id}\n"), done.stderr
    assert [one.role for one in session.said] == ["user", "assistant", "tool", "assistant"]
    assert why_no_task(session) == ""
