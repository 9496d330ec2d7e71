"""Selects a warm-start set from verified conversations and counts what each filter dropped. Pure.

Invariants: only a `VerifiedTrace` is selected, and each counts once: kept, or dropped by the first matching filter.
Deterministic. After OpenThoughts (2506.04178, section 3): several verified answers per question are better than one,
few good sources better than many, and answer length measures difficulty.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from statistics import median

from pydantic import Field

from appliance.worker.sft.traces import TraceTally, VerifiedTrace
from curriculum.registry import key_of
from runtime.model import FrozenModel


class WarmSetRules(FrozenModel):
    """Limits of a warm-start set."""

    answers: int = Field(default=4, ge=1)
    """Maximum distinct answers per question."""
    questions: int = Field(default=0, ge=0)
    """Maximum questions, longest answers first; 0: all."""
    sources: int = Field(default=0, ge=0)
    """Maximum tasksets, highest share of verified answers first; 0: all."""
    most_characters: int = Field(default=200_000, ge=1)
    """Maximum characters trained on per conversation."""


class WarmSetManifest(FrozenModel):
    """Source of a warm-start set, and the outcome of every conversation."""

    form: str = "assay-warm-start/1"
    source: str
    rules: WarmSetRules
    recorded: int
    """Conversations before the filters."""
    dropped: dict[str, int]
    """Dropped conversations by filter, in filter order."""
    kept: int
    questions: int
    by_taskset: dict[str, int]
    digest: str = ""
    """SHA-256 of the file beside the manifest."""


def before_rules(tries: int, recorded: int, needs_tools: int, tally: TraceTally) -> dict[str, int]:
    """Counts teacher attempts that never reached the warm-start set's rules, each once, by reason. Of `tries` attempts,
    `needs_tools` were not sent and the teacher completed `recorded`."""
    return {
        "needs other tools": needs_tools,
        "given up by the teacher": tries - needs_tools - recorded,
        "lost to the infrastructure": tally.lost,
        "failed its check": tally.failed,
        "copies what an evaluation asks": len(tally.asked),
        "holds what an evaluation asks": len(tally.within),
    }


def selected(
    verified: Sequence[VerifiedTrace], rules: WarmSetRules, asked: AbstractSet[str], tried: Mapping[str, int]
) -> tuple[list[VerifiedTrace], dict[str, int]]:
    """Selects conversations for a warm-start set question by question, and counts the drops of each filter. `asked` are
    question keys of evaluations, which are excluded; `tried` counts the questions sent to the teacher per taskset."""
    dropped: Counter[str] = Counter(dict.fromkeys(("asked in an evaluation", "too long", "the same again"), 0))
    fresh: list[VerifiedTrace] = []
    seen: set[tuple[str, tuple[str, ...], str]] = set()
    for one in verified:
        same = (one.task.id, one.calls, one.last)
        if contaminated(one, asked):
            dropped["asked in an evaluation"] += 1
        elif taught(one) > rules.most_characters:
            dropped["too long"] += 1
        elif same in seen:
            dropped["the same again"] += 1
        else:
            seen.add(same)
            fresh.append(one)
    fresh = _kept(fresh, _best_sources(fresh, rules.sources, tried), "of a weaker source", dropped)
    fresh = _kept(fresh, _hardest(fresh, rules.questions), "of an easier question", dropped)
    counted: Counter[str] = Counter()
    kept: list[VerifiedTrace] = []
    for one in sorted(fresh, key=lambda one: (one.task.taskset, one.task.id)):
        counted[one.task.id] += 1
        if counted[one.task.id] <= rules.answers:
            kept.append(one)
    dropped["one answer too many"] = len(fresh) - len(kept)
    return kept, dict(dropped)


def contaminated(one: VerifiedTrace, asked: AbstractSet[str]) -> bool:
    """True if an evaluation asks the conversation's question: the only contamination check of a warm-start set."""
    return key_of(one.task) in asked


def taught(one: VerifiedTrace) -> int:
    """Counts the characters of a conversation that the policy model must write itself."""
    return sum(map(len, one.calls)) + len(one.last)


def lines(kept: Iterable[VerifiedTrace]) -> bytes:
    """Encodes conversations as JSONL that an SFT stage reads and verifies again: chat messages, spec, form."""
    return b"".join(json.dumps(_line(one)).encode() + b"\n" for one in kept)


def _line(one: VerifiedTrace) -> dict[str, object]:
    messages: list[dict[str, object]] = [{"role": said.role, "content": said.text} for said in one.task.messages]
    for number, (code, result) in enumerate(zip(one.calls, one.results, strict=True)):
        function = {"name": "python", "arguments": json.dumps({"code": code})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": result},
        ]
    messages.append({"role": "assistant", "content": one.last})
    return {
        "messages": messages,
        "spec": one.task.spec.model_dump(mode="json"),
        "form": one.task.form.value,
        "source": one.source,
        "task": one.task.id,
    }


def _best_sources(traces: Sequence[VerifiedTrace], most: int, tried: Mapping[str, int]) -> set[str]:
    """Returns the task ids of the best tasksets: those with the most verified answers per question to the teacher."""
    answers = Counter(one.task.taskset for one in traces)
    order = sorted(answers, key=lambda name: (-answers[name] / tried[name], name))
    best = set(order[:most] if most else order)
    return {one.task.id for one in traces if one.task.taskset in best}


def _hardest(traces: Sequence[VerifiedTrace], most: int) -> set[str]:
    """Returns the ids of the hardest tasks: those with the longest median answers."""
    lengths: dict[str, list[int]] = {}
    for one in traces:
        lengths.setdefault(one.task.id, []).append(taught(one))
    order = sorted(lengths, key=lambda name: (-median(lengths[name]), name))
    return set(order[:most] if most else order)


def _kept(
    traces: Sequence[VerifiedTrace], tasks: AbstractSet[str], why: str, dropped: Counter[str]
) -> list[VerifiedTrace]:
    kept = [one for one in traces if one.task.id in tasks]
    dropped[why] = len(traces) - len(kept)
    return kept
