"""What never ends, or takes all there is."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.canary_specs import QUICK, wrong


def expensive() -> Iterator[Case]:
    yield wrong(
        "kernel-runaway",
        QUICK,
        "theorem target : 2 + 2 = 5 :=\n"
        "  have : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 0 := by decide +kernel\n  sorry",
        "The kernel counts to 10^20; heartbeats do not stop it.",
        42,
    )
    yield wrong(
        "heartbeats-runaway",
        QUICK,
        "set_option maxHeartbeats 0\ntheorem target : 2 + 2 = 5 :=\n"
        "  (rfl : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 5)",
        "The elaborator does.",
        42,
    )
    yield wrong(
        "memory-bomb",
        QUICK,
        "theorem target : 2 + 2 = 5 :=\n"
        "  have : @Nat.rec (fun _ => Nat) 2 (fun _ x => Nat.mul x x) 60 = 0 := by decide +kernel\n  sorry",
        "A number of 2^60 digits: out of memory or out of time, whatever is first.",
        42,
    )
    yield wrong("brackets", QUICK, "theorem target : 2 + 2 = 5 := " + "(" * 250_000, "Brackets.", 42)
    yield wrong(
        "closed-brackets", QUICK, f"theorem target : 2 + 2 = 5 := {'(' * 100_000}rfl{')' * 100_000}", "As many.", 42
    )
    yield wrong("negations", QUICK, f"theorem target : {'¬' * 200_000}False := by decide", "A tower of signs.", 42)
    yield wrong("comments", QUICK, "/-" * 140_000, "Comments in comments.", 42)
    yield wrong("a-long-number", QUICK, f"theorem target : 2 + 2 = {'9' * 250_000} := rfl", "A long number.", 42)
    yield wrong("too-long", QUICK, "-- x\n" * 100_000, "More text than may be.", 42)
    yield wrong(
        "many-theorems",
        QUICK,
        "".join(f"theorem t{n} : {n} + 1 = {n + 1} := by decide\n" for n in range(5_000)),
        "Too many for the time.",
        42,
    )
    long = "b" * 100_000
    yield wrong(
        "output-without-end",
        QUICK,
        f"theorem target : 2 + 2 = 5 := sorry\nnamespace {long}\ndef a := 0\n" + "#check a\n" * 10_000,
        "A gigabyte of names.",
        42,
    )
