"""Chooses a set for a warm start among verified conversations, and says what each filter dropped. Pure.

What always holds: only a `VerifiedTrace` gets in, and each is counted once: kept, or dropped by the first filter that
drops it. The same conversations give the same set. After OpenThoughts (2506.04178, section 3): several verified answers
a question are better than one, few good sources better than many, and the length of answers is a measure of difficulty.
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
    """What is kept."""

    answers: int = Field(default=4, ge=1)
    """Of one question, at most, all different."""
    questions: int = Field(default=0, ge=0)
    """At most, those with the longest answers; 0: all."""
    sources: int = Field(default=0, ge=0)
    """Tasksets, at most: those of whose questions most answers were verified; 0: all."""
    most_characters: int = Field(default=200_000, ge=1)
    """Of what one conversation teaches."""


class WarmSetManifest(FrozenModel):
    """Says where a set comes from, and what became of every conversation."""

    form: str = "assay-warm-start/1"
    source: str
    rules: WarmSetRules
    recorded: int
    """Conversations that there were."""
    dropped: dict[str, int]
    """By filter, in the order in which they were asked."""
    kept: int
    questions: int
    by_taskset: dict[str, int]
    digest: str = ""
    """SHA-256 of the file beside it."""


def before_rules(tries: int, recorded: int, needs_tools: int, tally: TraceTally) -> dict[str, int]:
    """What became of so many tries, `recorded` of which the teacher did not give up and `needs_tools` of which no API
    is asked for, before the rules of a set choose among the kept ones: with those, each is counted once."""
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
    """What is kept, question by question, and how many each filter dropped. `asked` are keys of what evaluations ask:
    nothing that asks the same is kept; `tried` how many questions of each taskset the teacher was asked."""
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
    """Whether it asks what an evaluation asks: the one call by which a set is kept apart."""
    return key_of(one.task) in asked


def taught(one: VerifiedTrace) -> int:
    """Characters that the policy model has to write itself."""
    return sum(map(len, one.calls)) + len(one.last)


def lines(kept: Iterable[VerifiedTrace]) -> bytes:
    """As a stage of SFT reads recorded conversations, which verifies them once more: chat messages, spec, form."""
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
    """Ids of the tasks of those tasksets that the teacher answers best: verified answers for each question that it was
    asked, those without one among them."""
    answers = Counter(one.task.taskset for one in traces)
    order = sorted(answers, key=lambda name: (-answers[name] / tried[name], name))
    best = set(order[:most] if most else order)
    return {one.task.id for one in traces if one.task.taskset in best}


def _hardest(traces: Sequence[VerifiedTrace], most: int) -> set[str]:
    """Ids of the tasks with the longest answers, by their median."""
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
