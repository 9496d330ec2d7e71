"""`assay model history`: gains and losses of every promotion, by taskset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.models.report import new_folder, write_pictures
from appliance.cli.shell.options import Limit, api_client
from appliance.cli.show.printing import Output, prints, short, show_line, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from appliance.client.nights import PromotionView

BLOCK, WIDTH = "█", 20


@prints
def history(
    limit: Limit = 20,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write history.html and PNGs into that folder.")
    ] = None,
) -> Output[Sequence[PromotionView]]:
    """Show gains and losses of every promotion by taskset, over sealed questions that both models answered.

    Example: assay model history --out history
    """
    found = api_client().promotions(limit)
    return Output(found, lambda: _show(found, out))


def _show(found: list[PromotionView], out: Path | None) -> None:
    if out is not None:
        from appliance.reporting.as_page import history_page
        from appliance.reporting.pictures import history_pictures

        page = out / "history.html"
        new_folder(out, page)
        page.write_text(history_page(found), encoding="utf-8")
        for file in (page, *write_pictures(history_pictures(found), out)):
            show_line(str(file))
        return
    for one in reversed(found):
        met = f", over {one.nights} nights" if one.nights > 1 else ""
        show_line(f"{one.at[:10]}  {short(one.candidate)} after {short(one.champion)}: {one.reason}{met}")
        if one.taken_back:
            show_line(f"  taken back: {one.taken_back}")
        show_table(
            ("  taskset", "items", "gained", "forgot", ""),
            [
                (f"  {f.family}", f.items, f"+{f.gained}", f"-{f.lost}", _bar(f.gained, f.lost, f.items))
                for f in one.families
            ],
            empty="  no question was answered by both",
        )
    if not found:
        show_line("no promotion yet: approve a candidate with `assay model approve candidate`")


def _bar(gained: int, lost: int, items: int) -> str:
    """Draws a taskset's losses to the left of the middle, gains to the right, as text blocks."""
    left, right = (round(WIDTH * count / max(1, items)) for count in (lost, gained))
    return f"{BLOCK * left:>{WIDTH}}|{BLOCK * right}".rstrip()
