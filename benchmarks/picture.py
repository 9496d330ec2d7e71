"""Draws docs/tui.svg: the screen Learning of `assay tui --demo-data`, on a terminal of 140 columns and 40 lines.

python -m benchmarks.picture docs/tui.svg
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.cli.demo.appliance import demo_appliance
from tui.app import AssayApp
from tui.widgets.panels import PlainText

SIZE = (140, 40)
SECONDS = 120.0


async def picture(socket: Path, first: str) -> str:
    """The screen of that name as SVG, once everything that it asked for has come."""
    async with AssayApp(socket, seconds=0.2, first=first).run_test(size=SIZE) as pilot:
        app = pilot.app
        assert isinstance(app, AssayApp)
        for _ in range(int(SECONDS / 0.2)):
            await pilot.pause(0.2)
            texts = [one.text.plain for one in app.screen.query(PlainText)]
            if app.pane.is_mounted and any("success" in text for text in texts) and "reading …" not in "".join(texts):
                break
        else:
            raise SystemExit("the screen never had all that it asks for")
        await pilot.pause(1.0)
        return app.export_screenshot(title="assay", simplify=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("file", type=Path)
    asked.add_argument("--screen", default="learning")
    given = asked.parse_args()
    with demo_appliance(now=datetime.now(UTC)) as made:
        given.file.write_text(asyncio.run(picture(made.socket, given.screen)), encoding="utf-8")


if __name__ == "__main__":
    main()
