"""The terminal program in a browser: who may ask the server, and what a real Chromium then shows."""

from __future__ import annotations

import asyncio
import base64
import http.client
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import tui_records as made
from aiohttp import ClientSession

if TYPE_CHECKING:
    from conftest import Appliance

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 120.0


@pytest.fixture
def address(appliance: Appliance) -> Iterator[str]:
    """Of a server that shows the night of `tui_records`."""
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    command = [sys.executable, "-m", "tui", "--web", "--socket", str(appliance.socket)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert server.stdout is not None
    yield server.stdout.readline().split()[-1]
    server.terminate()
    assert server.wait(timeout=120) == 0


def asked(address: str, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer


def test_only_who_has_the_token_is_answered_and_only_under_its_own_name(address: str) -> None:
    parts = urlsplit(address)
    own, page = f"{parts.scheme}://{parts.netloc}", parts.path
    assert parts.hostname == "127.0.0.1"
    assert asked(address, "/").status == 403
    for method, target in (("OPTIONS", "*"), ("CONNECT", "evil.example:80"), ("GET", "/%ED%A0%80/")):
        assert asked(address, target, method).status == 403
    assert asked(address, "/ws").status == 403
    assert asked(address, "/static/js/textual.js").status == 403
    assert asked(address, f"{page[:-2]}/").status == 403
    assert asked(address, page, host=f"evil.example:{parts.port}").status == 403
    assert asked(address, page, origin="http://evil.example").status == 403
    whole = asked(address, page)
    assert whole.status == 200
    policy = str(whole.headers["content-security-policy"])
    assert "default-src 'self'" in policy
    (scripts,) = (part for part in policy.split("; ") if part.startswith("script-src"))
    assert "unsafe-inline" not in scripts
    assert scripts.count("'sha256-") == 2
    assert "sha256" not in str(asked(address, f"{page}static/js/textual.js").headers["content-security-policy"])
    assert whole.headers["set-cookie"] is None, "a browser sends a cookie to every port of this address"
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    upgrade["sec-websocket-key"] = "MDEyMzQ1Njc4OWFiY2RlZg=="
    assert asked(address, f"{page}ws", **upgrade).status == 403
    assert asked(address, f"{page}ws", origin="http://evil.example", **upgrade).status == 403
    assert asked(address, "/ws", origin=own, **upgrade).status == 403
    with urlopen(address) as answer:
        shown = answer.read().decode()
    assert "https://" not in shown, "the page would load something from elsewhere"
    assert f"ws://{parts.netloc}{page}ws" in shown


def test_what_takes_seconds_is_said_first(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "appliance.cli.main", "tui", "--web", "--demo-data"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as made:
        assert made.stderr is not None
        assert made.stderr.readline() == b"preparing made-up nights, some seconds ...\n"
        made.send_signal(signal.SIGINT)
        made.wait(timeout=120)


class Chromium:
    """One page of a headless browser, over the DevTools protocol."""

    def __init__(self, line: Any) -> None:
        self._line = line
        self._number = 0
        self.drawn = b""
        """What the program wrote, as the page got it."""

    async def do(self, method: str, **given: Any) -> dict[str, Any]:
        self._number += 1
        await self._line.send_json({"id": self._number, "method": method, "params": given})
        while True:
            answer = await self._line.receive_json(timeout=SECONDS)
            if answer.get("method") == "Network.webSocketFrameReceived":
                frame = answer["params"]["response"]
                self.drawn += base64.b64decode(frame["payloadData"]) if frame["opcode"] == 2 else b""
            if answer.get("id") == self._number:
                return dict(answer["result"])

    async def value(self, script: str) -> Any:
        return (await self.do("Runtime.evaluate", expression=script))["result"].get("value")

    async def until(self, script: str) -> None:
        for _ in range(int(SECONDS / 0.2)):
            if await self.value(script):
                return
            await asyncio.sleep(0.2)
        pytest.fail(f"it never came to hold: {script}")

    async def until_drawn(self, words: str) -> None:
        """The terminal of the page is a canvas: what it draws is looked for on its line."""
        for _ in range(int(SECONDS / 0.2)):
            await self.value("1")
            if words.encode() in self.drawn:
                return
            await asyncio.sleep(0.2)
        pytest.fail(f"{words!r} never came, of {len(self.drawn)} bytes")


@pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is here: `apt-get install chromium` has one, and so has ./install.sh --test"
)
async def test_a_real_browser_shows_the_screens_and_its_keys_reach_them(address: str, tmp_path: Path) -> None:
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command = [str(CHROMIUM), *options, "--remote-debugging-port=0", f"--user-data-dir={tmp_path}", "about:blank"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        said = tmp_path / "DevToolsActivePort"
        for _ in range(int(SECONDS / 0.1)):
            if said.exists() and said.read_text().count("\n") == 1:
                break
            await asyncio.sleep(0.1)
        port = said.read_text().splitlines()[0]
        async with ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as line:
                page = Chromium(line)
                await page.do("Network.enable")
                await page.do("Page.navigate", url=address)
                await page.until("document.body.classList.contains('-first-byte')")
                await page.until_drawn("training")
                assert await page.value("location.search") == ""
                await page.value("document.querySelector('.xterm-helper-textarea').focus()")
                page.drawn = b""
                await page.do("Input.dispatchKeyEvent", type="keyDown", text="4", key="4", code="Digit4")
                await page.until_drawn("taskset")
    finally:
        browser.terminate()
        browser.wait(timeout=120)
