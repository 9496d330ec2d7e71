"""Judges whether a machine is free for a night, from a snapshot of its use. Pure.

Unknown values (None) never keep a night from running; `unknown` lists them. The load average counts only while no work
of this program runs, because it includes that work.
"""

from __future__ import annotations

from dataclasses import dataclass

from appliance.nights.settings import IdleSettings


@dataclass(frozen=True)
class MachineSnapshot:
    """Use of the machine at one moment; None for values that cannot be read here."""

    gpu_users: tuple[str, ...] | None = None
    """Other programs that compute on a GPU, by name and process; None if no GPU driver answers."""
    load: float | None = None
    """One-minute load average."""
    typed_seconds: float | None = None
    """Seconds since the last input at a terminal or in a session; infinite if nobody is logged in."""
    joules: float | None = None
    """Energy of processors and GPUs since the first snapshot, in joules; only differences are meaningful."""


@dataclass(frozen=True)
class Use:
    """Use of the machine by somebody else."""

    reason: str
    at_once: bool
    """True if running work ends immediately rather than at the end of its step."""


def use_of(seen: MachineSnapshot, rules: IdleSettings, *, working: bool) -> Use | None:
    """Returns the use of the machine by somebody else that holds nights, or None if it is free. `working` is True while
    a night's worker runs."""
    if rules.gpu and seen.gpu_users:
        return Use(f"another program uses a GPU: {', '.join(seen.gpu_users[:3])}", at_once=True)
    if rules.session is not None and seen.typed_seconds is not None and seen.typed_seconds < 60 * rules.session:
        minutes = int(seen.typed_seconds // 60)
        return Use(f"last input at this machine: {minutes} minutes ago", at_once=False)
    if rules.max_load is not None and not working and seen.load is not None and seen.load > rules.max_load:
        return Use(f"the load average is {seen.load:.1f}, above {rules.max_load:g}", at_once=False)
    return None


def unknown(seen: MachineSnapshot, rules: IdleSettings, *, energy: bool) -> tuple[str, ...]:
    """Returns the idle and energy rules that cannot be enforced on this machine, each as a sentence."""
    found = []
    if rules.gpu and seen.gpu_users is None:
        found.append("GPU use: nvidia-smi is missing or does not answer")
    if rules.session is not None and seen.typed_seconds is None:
        found.append("last input: neither logind nor a terminal can be read")
    if rules.max_load is not None and seen.load is None:
        found.append("the load average")
    if energy and seen.joules is None:
        found.append("energy: neither RAPL nor nvidia-smi can be read, so schedule.max_energy has no effect")
    return tuple(found)
