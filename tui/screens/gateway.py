"""The screen Gateway: kept sessions of the owner's own agent, and the tasks made from them.

Invariants: every word of a session is plain text behind a margin; deletion requires a typed confirmation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from appliance.client import ApiClient, Outcome, Status, explain_check
from appliance.client.gateway import SessionDetail, SessionRow, becomes_task, would_train
from tui.widgets.dialogs import TypedConfirmation
from tui.widgets.signs import VERDICTS, signed
from tui.widgets.table_pane import PAGE, TablePane
from tui.widgets.text import BAD, CARE, DIM, GOOD, STRONG, Row, Table, add_block, add_field, plain, short
from tui.widgets.view import ApiQuestion

SESSION = "gs-"
"""Prefix of session names."""
WHO = {"user": ("person", DIM), "assistant": ("model", STRONG), "tool": ("tool", DIM), "system": ("system", DIM)}


def row(one: SessionRow) -> Row:
    return Row(
        one.id,
        (
            plain(one.id.removeprefix(SESSION)[:8]),
            plain(one.token, limit=10),
            plain(one.updated[5:16].replace("T", " "), DIM),
            verdict(one),
            plain(becomes_task(one, "✓ yes"), DIM if one.no_task else GOOD, limit=30),
        ),
    )


def verdict(one: SessionRow) -> Text:
    return plain("- none", DIM) if one.verdict is None else signed(VERDICTS[Outcome(one.verdict)])


def detail(one: SessionRow, status: Status | None = None, more: SessionDetail | None = None) -> Text:
    text = verdict(one)
    text.append_text(plain(f"  {one.id}\n", DIM, lines=True))
    add_field(text, "becomes a task", becomes_task(one, "yes, before a night"), CARE if one.no_task else GOOD)
    add_field(text, "asked with", f"the token {one.token}")
    add_field(text, "kept until", one.expires[:16].replace("T", " "))
    add_field(text, "newest turn", one.updated[:16].replace("T", " "))
    add_field(text, "length", f"{one.turns} turn{'' if one.turns == 1 else 's'} of the model, {one.tokens} tokens")
    if one.redacted:
        text.append("no word, token or check is kept: a gateway.redact rule matches\n", DIM)
    if more is None:
        return text
    kept = more.session
    add_field(text, "weights", short(kept.version))
    if kept.verdict is not None:
        add_field(text, "reason", kept.verdict.reason)
    if kept.spec is not None:
        summary, *explained = explain_check(kept.spec)
        add_field(text, "checked by", summary)
        for line in explained:
            add_field(text, " ", line, DIM)
    add_field(text, "tools", ", ".join(kept.tools))
    add_field(text, "would train", would_train(kept))
    for said in kept.said:
        who, style = WHO.get(said.role, (said.role, DIM))
        text.append_text(plain(f"\n{who}\n", style, limit=20, lines=True))
        add_block(text, said.text, "│ ")
    return text


class GatewayPane(TablePane):
    TABLE = Table(
        name="sessions",
        columns=(("session", 8), ("token", 10), ("newest", 11), ("verdict", 7), ("becomes a task", 30)),
        empty="No kept session. Make a token with consent: `assay gateway token new NAME --consent`.",
        row=row,
        detail=detail,
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "delete_session", "delete")]
    PAGED = False
    ON_RECORD = frozenset({"delete_session"})
    ACTING = {"x": "delete_session"}  # noqa: RUF012 - declared so by Pane
    SECONDS = 5.0
    KEYS = (*TablePane.KEYS[:3], ("x", "delete the selected session"))

    def page(self, client: ApiClient, status: Status, before: str | None) -> Sequence[SessionRow]:
        return client.sessions(PAGE)

    def detail_question(self, key: str) -> ApiQuestion:
        return ApiQuestion(("session", key), lambda client, _: client.session(key), seconds=5.0)

    def detail(self, record: Any, status: Status, more: Any) -> Text:
        return detail(record, status, more)

    def line(self, status: Status) -> Text:
        if status.gateway is None:
            return plain("")
        return plain(status.gateway.summary, DIM if status.gateway.answers or not status.gateway.enabled else BAD)

    def action_delete_session(self) -> None:
        one = self.selected
        if one is None or self.host.read_only:
            return

        def act(_passphrase: str) -> str:
            self.host.client().delete_session(one.id)
            return f"{one.id} is deleted."

        body = plain(
            "This session's record is deleted permanently. A task made from it stays until you remove its taskset.\n\n",
            lines=True,
        )
        body.append_text(detail(one, more=self._answers.get("detail")))
        self.host.put(TypedConfirmation("Delete this session", one.id, body, act, to="delete it", kind=SESSION))
