"""What messages decide about a subject over time, and what holds at a date, by one rule for generator and oracle.

Invariants: a day has at most one act of a subject and matter, so a day names it. An act that a message up to the date
says to ignore counts as never written; of the others the last one holds, and one that goes back restores what these
left at the end of a day.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, NamedTuple

Kind = Literal["set", "talk", "cancel", "restore", "retract"]
"""`talk` are proposals and rumours, which decide nothing."""


class Act(NamedTuple):
    day: str
    """ISO date."""
    kind: Kind
    value: str = ""
    back: str = ""
    """Day that a `restore` goes back to, or whose act a `retract` takes back."""


def standing(acts: Sequence[Act], until: str = "9") -> list[Act]:
    """Returns the acts up to the end of a day, oldest first, without those that one of them takes back."""
    acts = sorted(act for act in acts if act.day <= until)
    ignored = {act.back for act in acts if act.kind == "retract"}
    return [act for act in acts if act.kind not in ("talk", "retract") and act.day not in ignored]


def held(acts: Sequence[Act], until: str = "9") -> str:
    """Returns the value in force at the end of a day; empty if none is."""
    values: list[tuple[str, str]] = []
    for act in standing(acts, until):
        if act.kind == "restore":
            before = [value for day, value in values if day <= act.back]
            values.append((act.day, before[-1] if before else ""))
        else:
            values.append((act.day, act.value))
    return values[-1][1] if values else ""


def decided(acts: Sequence[Act], until: str = "9") -> set[str]:
    """Returns the different values that were decided on up to the end of a day."""
    return {act.value for act in standing(acts, until) if act.kind == "set"}


_KINDS: tuple[Kind, ...] = (
    *("set", "set", "set", "set", "set", "talk", "talk", "talk", "talk", "cancel", "cancel"),
    *("restore", "restore", "restore", "retract", "retract", "retract"),
)


def drawn_acts(days: Sequence[str], value: Callable[[], str], rng: Random, *, never: bool = False) -> list[Act]:
    """Draws a history with one act on each of these days, oldest first; with `never`, nothing in it stays decided.
    `value` gives values that differ from each other."""
    acts: list[Act] = []
    for at, day in enumerate(days):
        mine = [act for act in standing(acts) if act.day > days[max(0, at - 12)]]
        earlier = [act.day for act in acts if act.kind != "talk" and held(acts, act.day) not in ("", held(acts))]
        kind = rng.choice(_KINDS)
        if never:
            kind = "retract" if mine else rng.choice(("talk", "talk", "set"))
            if at == len(days) - 1 and not mine:
                kind = "talk"
        elif (
            not acts
            or (kind == "cancel" and not held(acts))
            or (kind == "restore" and not earlier)
            or (kind == "retract" and not mine)
        ):
            kind = "set"
        if kind in ("set", "talk"):
            acts.append(Act(day, kind, value()))
        elif kind == "cancel":
            acts.append(Act(day, kind))
        else:
            back = rng.choice(earlier if kind == "restore" else [act.day for act in mine][-3:])
            acts.append(Act(day, kind, back=back))
    return acts
