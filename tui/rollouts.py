"""The table of rollouts: what the model tried, and what its verifier said."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.text import Text

from appliance.client import RolloutView, Status, ToolCall, ToolStatus
from tui.table import Row, Table
from tui.text import BAD, DIM, GOOD, VERDICTS, add_block, add_field, percent, plain, short, signed

MOST = 40


def row(view: RolloutView) -> Row:
    tiers = [call.tier for call in view.calls if call.tier is not None]
    answer = plain("none", DIM) if view.answer is None else plain(view.answer, limit=10)
    return Row(
        view.id,
        (
            signed(VERDICTS[view.verdict.outcome]),
            plain(view.family, limit=11),
            counted([call.status for call in view.calls]),
            plain(tiers[-1].value if tiers else "-", DIM),
            answer,
            plain(view.purpose.value, DIM),
        ),
    )


def counted(statuses: Sequence[ToolStatus]) -> Text:
    """`3` calls, `3 1✗` when one of them failed."""
    failed = sum(status.failed for status in statuses)
    text = Text(str(len(statuses)))
    if failed:
        text.append(f" {failed}✗", BAD)
    return text


def detail(view: RolloutView, status: Status | None = None) -> Text:
    text = signed(VERDICTS[view.verdict.outcome])
    text.append_text(
        plain(f"  {view.family}, {view.purpose.value}, step {view.step}, sample {view.sample}\n", DIM, lines=True)
    )
    add_field(text, "question", view.question or f"not kept; task {view.task}")
    for number, call in enumerate(view.calls, 1):
        _add_call(text, number, call)
    none = f"none: {view.answers} final answers, ended by {view.ended.value}"
    add_field(text, "answer", none if view.answer is None else view.answer or " ")
    verdict = view.verdict
    by = f"{verdict.verifier} {verdict.version}, score {percent(verdict.score)}"
    add_field(text, "verdict", f"{verdict.reason}  ({by})")
    if verdict.evidence:
        add_field(text, "evidence", json.dumps(verdict.evidence, ensure_ascii=False, sort_keys=True))
    weights = short(view.weights) if len(view.weights) == 64 else view.weights
    add_field(text, "cost", f"{view.turns} turns, {view.tokens} tokens, {view.seconds:.2f} s, weights {weights}")
    add_field(text, "used", _used(view))
    add_field(text, "rollout", view.id)
    return text


def _used(view: RolloutView) -> str:
    """What its session used, as the host measured it."""
    usage = view.usage
    if not usage.calls:
        return ""
    parts = [f"{usage.calls} calls in {usage.seconds:.2f} s", f"{usage.output_bytes:,} bytes printed"]
    if usage.moves:
        parts.append(f"moved {usage.moves} times")
    if usage.cpu_seconds is not None:
        parts.append(f"{usage.cpu_seconds:.2f} s of processor")
    if usage.peak_memory_mib is not None:
        parts.append(f"{usage.peak_memory_mib:.0f} MiB at most")
    return ", ".join(parts)


def _add_call(text: Text, number: int, call: ToolCall) -> None:
    ran = f" in {call.tier.value}, {1000 * call.seconds:.1f} ms" if call.tier is not None else ""
    text.append(f"call {number}  ", DIM)
    text.append(call.status.value, BAD if call.status.failed else GOOD)
    text.append(f"{ran}\n", DIM)
    add_block(text, call.asked, "> ")
    if call.output:
        add_block(text, call.output, "  ")
    if call.error:
        add_block(text, call.error, "  ", BAD)


ROLLOUTS = Table(
    name="rollouts",
    columns=(("verdict", 7), ("family", 11), ("calls", 5), ("tier", 7), ("answer", 10), ("for", 10)),
    side="left",
    empty="No rollout yet.",
    fetch=lambda client: client.rollouts(limit=MOST),
    row=row,
    detail=detail,
)
