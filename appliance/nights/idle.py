"""Whether a machine is free for a night: a judgement of what was seen of it. Pure.

What cannot be known on a machine (None) keeps nothing from running, and is said by `unknown`. The load average is asked
about only while nothing of ours works, for it counts our own work too.
"""

from __future__ import annotations

from dataclasses import dataclass

from appliance.nights.settings import IdleSettings


@dataclass(frozen=True)
class MachineSnapshot:
    """What was seen of the machine at one moment; None is what cannot be seen here."""

    gpu_users: tuple[str, ...] | None = None
    """Programs of others that compute on a GPU, by name and process; None without a GPU whose driver can be asked."""
    load: float | None = None
    """Load average of one minute."""
    typed_seconds: float | None = None
    """Since somebody last typed at a terminal or moved something in a session; infinite when nobody is logged in."""
    joules: float | None = None
    """Taken by processors and GPUs since the first look; only differences mean anything."""


@dataclass(frozen=True)
class Use:
    """Says that somebody uses the machine."""

    reason: str
    at_once: bool
    """Whether what runs ends now, and not only at the end of its step."""


def use_of(seen: MachineSnapshot, rules: IdleSettings, *, working: bool) -> Use | None:
    """Who uses the machine, in a sentence; None when it is free. `working`: whether a night's worker runs."""
    if rules.gpu and seen.gpu_users:
        return Use(f"another program computes on a GPU: {', '.join(seen.gpu_users[:3])}", at_once=True)
    if rules.session is not None and seen.typed_seconds is not None and seen.typed_seconds < 60 * rules.session:
        minutes = int(seen.typed_seconds // 60)
        return Use(f"somebody typed at this machine {minutes} minutes ago", at_once=False)
    if rules.max_load is not None and not working and seen.load is not None and seen.load > rules.max_load:
        return Use(f"the load average is {seen.load:.1f}, above {rules.max_load:g}", at_once=False)
    return None


def unknown(seen: MachineSnapshot, rules: IdleSettings, *, energy: bool) -> tuple[str, ...]:
    """The rules that cannot be kept on this machine, each in a sentence."""
    found = []
    if rules.gpu and seen.gpu_users is None:
        found.append("who uses a GPU: nvidia-smi is not there or does not answer")
    if rules.session is not None and seen.typed_seconds is None:
        found.append("when somebody last typed: neither logind nor a terminal can be asked")
    if rules.max_load is not None and seen.load is None:
        found.append("the load average")
    if energy and seen.joules is None:
        found.append("energy: neither RAPL nor nvidia-smi can be read, so schedule.max_energy does not hold")
    return tuple(found)
