"""The help page: every key, and the commands that can be typed after `:`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from appliance.client import ApiClient, ApiError
from tui.widgets.text import DIM, STRONG
from tui.widgets.view import Pane, View

KEYS = (
    ("?", "this page"),
    ("/", "filter what the screen shows; an empty filter shows everything"),
    (":", "type a command; tab completes it, escape leaves"),
    ("ctrl+p", "search screens and commands by name"),
    ("escape", "leave a dialog, a filter, a line"),
    ("R", "read everything again now"),
    ("T", "light or dark"),
    ("q", "quit; the daemon keeps running"),
)
ACTS = (
    ("a", "approve the candidate: enters service if the policy then permits it"),
    ("r", "reject the candidate"),
    ("b", "roll back to the previous champion"),
    ("s", "submit a job: a question and the check of its answer"),
)


def help_text(views: Sequence[View], current: View, pane: Pane, *, read_only: bool) -> Text:
    text = Text()
    own = [one for one in pane.KEYS if not read_only or one[0] not in pane.ACTING]
    _block(text, "screens", [(view.key, f"{view.title}: {view.about}") for view in views])
    _block(text, f"on the screen {current.title}", [*own, *([("/", pane.FILTER)] if pane.FILTER else [])])
    _block(text, "everywhere", KEYS)
    if read_only:
        text.append("Opened read-only: approving, submitting and cancelling are disabled.\n\n", DIM)
    else:
        _block(text, "what a person can do", ACTS)
    text.append("Everything here is also a command: assay --help.", DIM)
    return text


def _block(text: Text, title: str, keys: Sequence[tuple[str, str]]) -> None:
    if keys:
        text.append(f"{title}\n", DIM)
        for key, what in keys:
            text.append(f"{key:>12}  ", STRONG)
            text.append(f"{what}\n")
        text.append("\n")


class ReadOnlyClient(ApiClient):
    """Client of the daemon that raises ApiError for every request but GET, before it is sent."""

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        if method != "GET":
            raise ApiError("the screen was opened read-only", hint="open it without --read-only")
        return super().request(method, path, query, body, headers)
