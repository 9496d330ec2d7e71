"""`assay curriculum stats`: pass rates by taskset and level, night by night, also as a PNG.

Invariants: the daemon counts one cycle at a time. Nothing relies on colour alone, and pipes and NO_COLOR get none. In a
picture each cell contains its figure; colours run from dark blue to yellow, the ends of cividis (Nuñez et al. 2018),
and get lighter, which every kind of colour vision distinguishes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, prints, show_line, show_progress
from appliance.client.pass_rates import HIGH, LOW, NONE, RateLine, block, lines_of, zone
from appliance.errors import UsageError
from appliance.records.rollouts import Purpose
from appliance.text.printable import printable
from runtime.extra_packages import install_command

if TYPE_CHECKING:
    from appliance.client import ApiClient, PassCount


SECONDS = 120.0


@prints
def stats(
    cycle: Annotated[str | None, typer.Option("--cycle", help="Only this cycle, by its id or a prefix.")] = None,
    family: Annotated[str | None, typer.Option("--family", help="Only this taskset.")] = None,
    purpose: Annotated[Purpose, typer.Option("--purpose", help="Purpose of the rollouts.")] = Purpose.TRAIN,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Number of newest cycles.")] = 14,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Also draw a picture into this file.")
    ] = None,
) -> Output[list[PassCount]]:
    """Show how often the model passes, by taskset and level, night by night.

    Example: assay curriculum stats --png rates.png
    """
    if png is not None:
        require_plots(png)
    api = api_client(timeout_seconds=SECONDS)
    cycles, counts = _counted(api, cycle, limit)
    known = sorted({one.family for one in counts})
    counts = [one for one in counts if one.purpose is purpose and family in (None, one.family)]
    lines = lines_of(counts)
    cycles = [name for name in cycles if any(line.rollouts[name] for line in lines)]
    if png is not None and lines:
        draw(png, cycles, lines)
    if not lines:
        return Output(counts, _nothing(cycle, family, purpose, known))

    def show() -> None:
        _show(cycles, lines)
        if png is not None:
            show_line(f"drawn into {png}")

    return Output(counts, show)


def _counted(api: ApiClient, cycle: str | None, limit: int) -> tuple[list[str], list[PassCount]]:
    """Returns the newest cycles, or the named one, oldest first, with the daemon's pass counts for each."""
    names = [api.cycle(cycle).cycle.id] if cycle is not None else [one.id for one in reversed(api.cycles(limit))]
    counts: list[PassCount] = []
    for place, name in enumerate(names, 1):
        show_progress(f"counting {name}, {place} of {len(names)}")
        counts += api.pass_counts(name)
    show_progress("")
    return names, counts


def _show(cycles: Sequence[str], lines: Sequence[RateLine]) -> None:
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = max(len("taskset, level"), *(len(printable(line.name)) for line in lines))
    history = max(len("nights"), len(cycles))
    states = max(len("sampler"), *(len(line.state) for line in lines))
    head = f"{'taskset, level':<{width}}  {'nights':<{history}}  {'newest':>7}  {'change':>7}  rollouts"
    typer.echo(f"{head}  {'sampler':<{states}}  rate")
    for line in lines:
        rates = [line.rate(cycle) for cycle in cycles]
        known = [rate for rate in rates if rate is not None]
        change = f"{100 * (known[-1] - known[0]):+.1f}" if len(known) > 1 else ""
        drawn = "".join(map(block, rates))
        if coloured and (colour := {"hard": typer.colors.YELLOW, "easy": typer.colors.BLUE}.get(zone(known[-1]))):
            shown = typer.style(f"{drawn:<{history}}", fg=colour)
        else:
            shown = f"{drawn:<{history}}"
        total = sum(line.rollouts.values())
        text = f"{printable(line.name):<{width}}  {shown}  {100 * known[-1]:5.1f} %  {change:>7}  {total:>8}"
        typer.echo(f"{text}  {printable(line.state):<{states}}  {zone(known[-1])}".rstrip())
    first, last = cycles[0], cycles[-1]
    nights = f"{len(cycles)} cycles, {first} to {last}" if len(cycles) > 1 else first
    show_line(f"{nights}; hard is below {100 * LOW:.0f} %, easy above {100 * HIGH:.0f} %; {NONE} not asked")
    if any(line.state for line in lines):
        show_line("sampler: present rating of the level by `recipe.training.difficulty`")


def _nothing(cycle: str | None, family: str | None, purpose: Purpose, known: Sequence[str]) -> str:
    if family is not None and known and family not in known:
        return f"no rollout of taskset {family}; known: {', '.join(known)}"
    if cycle or family or purpose is not Purpose.TRAIN:
        return "no such rollout: list rollouts with `assay rollouts ls`"
    return "no night yet: start one with `assay cycle start`, or try tasks yourself with `assay curriculum try NAME`"


CELL, ROW, MARGIN, TEXT = 46, 20, 16, 12
"""Sizes in pixels; the last one is the font size."""
LOWEST, HIGHEST = (0, 32, 81), (253, 231, 80)
PAPER, INK, UNASKED = (255, 255, 255), (20, 20, 20), (235, 235, 235)
LONGEST = 48
"""Maximum characters of a name."""


def require_plots(file: Path) -> None:
    """Raises UsageError if a PNG cannot be drawn here, or the file name is unsuitable."""
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise UsageError("Pillow, which draws, is not installed", install_command("plots")) from error
    if file.suffix.lower() != ".png":
        raise UsageError(f"{file}: not a PNG name", "end it with .png")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"no such folder: {file.absolute().parent}", "create it, or name another file")


def draw(file: Path, cycles: Sequence[str], lines: Sequence[RateLine]) -> None:
    """Draws pass rates by taskset, level and cycle as a PNG file. Raises OSError."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(TEXT)
    names = [printable(line.name, limit=LONGEST) for line in lines]
    left = MARGIN * 2 + int(max(font.getlength(name) for name in names))
    top = MARGIN + 3 * ROW
    size = left + CELL * len(cycles) + MARGIN, top + ROW * len(lines) + 2 * ROW
    picture = Image.new("RGB", (max(size[0], 420), size[1]), PAPER)
    paint = ImageDraw.Draw(picture)
    paint.text((MARGIN, MARGIN), "Pass rate by taskset and level, in percent", fill=INK, font=font)
    for column in range(len(cycles)):
        paint.text((left + column * CELL + CELL // 2, top - ROW), str(column + 1), fill=INK, font=font, anchor="ma")
    for row, (line, name) in enumerate(zip(lines, names, strict=True)):
        y = top + row * ROW
        paint.text((MARGIN, y + 3), name, fill=INK, font=font)
        for column, cycle in enumerate(cycles):
            x, rate = left + column * CELL, line.rate(cycle)
            paint.rectangle((x + 1, y + 1, x + CELL - 2, y + ROW - 2), fill=UNASKED if rate is None else shade(rate))
            if rate is not None:
                ink = PAPER if rate < 0.5 else INK
                centre = (x + CELL // 2, y + ROW // 2)
                paint.text(centre, f"{100 * rate:.0f}", fill=ink, font=font, anchor="mm")
    named = f"1 = {cycles[0]}" + (f", {len(cycles)} = {cycles[-1]}" if len(cycles) > 1 else "")
    paint.text((MARGIN, top + ROW * len(lines) + ROW // 2), named, fill=INK, font=font)
    picture.save(file, format="PNG")


def shade(rate: float) -> tuple[int, int, int]:
    """Returns the colour of a pass rate, from dark blue for 0 to yellow for 1."""
    red, green, blue = (round(low + rate * (high - low)) for low, high in zip(LOWEST, HIGHEST, strict=True))
    return red, green, blue
