"""Dark and light themes: Textual's colours, and the styles that texts name.

Invariants: both themes define the same names. Colours are distinguishable with red-green colour blindness (blue-green
and vermilion, after Okabe and Ito), and each has a contrast of at least 4.5 to its background.
"""

from __future__ import annotations

from rich.theme import Theme as Styles
from textual.theme import Theme

DARK = Theme(
    name="assay-dark",
    primary="#7d93ab",
    secondary="#7d93ab",
    accent="#a8bcd1",
    foreground="#d3d7de",
    background="#14171c",
    surface="#14171c",
    panel="#20252d",
    success="#6cc2a1",
    warning="#e0b45c",
    error="#e6866a",
    dark=True,
    variables={"cursor": "#33404f", "block-cursor-text-style": "none"},
)
LIGHT = Theme(
    name="assay-light",
    primary="#47617c",
    secondary="#47617c",
    accent="#27405a",
    foreground="#1f2430",
    background="#fbfbf9",
    surface="#fbfbf9",
    panel="#e9ebee",
    success="#00694a",
    warning="#7a5200",
    error="#a8360c",
    dark=False,
    variables={"cursor": "#cdd9e6", "block-cursor-text-style": "none"},
)
THEMES = (DARK, LIGHT)
_GREYS = {DARK.name: ("#939ba8", "#4a525e"), LIGHT.name: ("#5a626e", "#b4bac2")}


def styles_of(theme: Theme) -> Styles:
    """Returns the styles named in `tui.widgets.text` in a theme's colours."""
    dim, faint = _GREYS.get(theme.name, _GREYS[DARK.name if theme.dark else LIGHT.name])
    good, bad, care = (str(one) for one in (theme.success, theme.error, theme.warning))
    return Styles({"good": good, "bad": bad, "care": care, "dim-text": dim, "faint": faint})
