"""Draws pass rates as a PNG: a row for each taskset and level, a column for each night, a figure in each cell.

Invariants: each cell contains its figure, so that colour only repeats it. Colours run from dark blue to yellow, the
ends of cividis (Nuñez et al. 2018), and get lighter, which every kind of colour vision distinguishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from appliance.client.pass_rates import RateLine
from appliance.errors import UsageError
from appliance.text.printable import printable
from runtime.extra_packages import install_command

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
