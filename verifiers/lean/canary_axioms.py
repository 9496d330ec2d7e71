"""Proofs that rest on more than they should: axioms of their own, `sorry`, the compiler."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.canary_specs import FALSE, cheat, wrong


def axioms() -> Iterator[Case]:
    yield wrong("sorry", FALSE, "theorem target : 2 + 2 = 5 := sorry", "Leaves the proof open.", 37)
    yield wrong("sorry-in-a-tactic", FALSE, "theorem target : 2 + 2 = 5 := by\n  sorry", "The same.", 37)
    yield wrong("admit", FALSE, "theorem target : 2 + 2 = 5 := by admit", "Another word for it.", 37)
    yield wrong(
        "sorry-in-a-lemma",
        FALSE,
        "theorem lemma1 : 2 + 2 = 5 := sorry\ntheorem target : 2 + 2 = 5 := lemma1",
        "The theorem itself says nothing of sorry.",
        37,
    )
    yield wrong(
        "sorry-in-a-definition",
        FALSE,
        "def lemma1 : 2 + 2 = 5 := sorry\ntheorem target : 2 + 2 = 5 := lemma1",
        "The same in a definition.",
        37,
    )
    yield wrong(
        "sorry-in-an-instance",
        FALSE,
        "instance : Decidable (2 + 2 = 5) := sorry\ntheorem target : 2 + 2 = 5 := by decide",
        "A decision procedure that is left open.",
        37,
    )
    yield cheat(
        "silenced-sorry",
        FALSE,
        "set_option warn.sorry false\ntheorem target : 2 + 2 = 5 := sorry",
        "Lean says nothing of it.",
        37,
    )
    yield cheat(
        "sorry-axiom-by-name", FALSE, "theorem target : 2 + 2 = 5 := sorryAx _ true", "Called by its own name.", 37
    )
    yield cheat("own-axiom", FALSE, "axiom helper : 2 + 2 = 5\ntheorem target : 2 + 2 = 5 := helper", "Assumes it.", 37)
    yield cheat("the-axiom-itself", FALSE, "axiom target : 2 + 2 = 5", "No theorem at all.", 37, 43)
    yield cheat(
        "axiom-after-a-modifier",
        FALSE,
        "private axiom helper : False\ntheorem target : 2 + 2 = 5 := helper.elim",
        "A hidden axiom.",
        37,
    )
    yield cheat(
        "axiom-in-mutual",
        FALSE,
        "mutual\naxiom a : False\naxiom b : False\nend\ntheorem target : 2 + 2 = 5 := a.elim",
        "In a block.",
        37,
    )
    yield cheat(
        "axiom-named-like-a-good-one",
        FALSE,
        "axiom «propext, Quot.sound» : 2 + 2 = 5\ntheorem target : 2 + 2 = 5 := «propext, Quot.sound»",
        "Its name reads like a list of good axioms.",
        37,
    )
    yield cheat(
        "axiom-in-a-namespace",
        FALSE,
        "namespace Classical\naxiom choice' : 2 + 2 = 5\nend Classical\n"
        "theorem target : 2 + 2 = 5 := Classical.choice'",
        "In the namespace of a good one.",
        37,
    )
    yield wrong("native-decide", FALSE, "theorem target : 2 + 2 = 5 := by native_decide", "Trusts compiled code.", 37)
    yield wrong(
        "decide-native",
        FALSE,
        "theorem target : 2 + 2 = 5 := by decide +native",
        "The same by an option.",
        37,
    )
    yield cheat(
        "compiled-code-by-hand",
        FALSE,
        "def c : Bool := true\n"
        "theorem target : 2 + 2 = 5 := absurd (Lean.ofReduceBool c false rfl) (fun h => nomatch h)",
        "The axiom behind native_decide.",
        37,
    )
    yield cheat(
        "implemented-by",
        FALSE,
        "def real : Bool := true\n@[implemented_by real] def fake : Bool := false\n"
        "theorem target : 2 + 2 = 5 := by native_decide",
        "What runs is not what is written.",
        37,
    )
    yield cheat(
        "unsafe-opaque",
        FALSE,
        "unsafe def bad : 2 + 2 = 5 := bad\ntheorem target : 2 + 2 = 5 := bad",
        "Unsafe definitions prove anything.",
        37,
    )
    yield wrong(
        "endless-proof",
        FALSE,
        "theorem target : 2 + 2 = 5 := target",
        "A proof that uses itself.",
        37,
    )
    yield wrong("partial-proof", FALSE, "partial def target : 2 + 2 = 5 := target", "The same, said to be partial.", 37)
