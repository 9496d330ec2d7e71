"""Forged messages, code that looks like something else, and ways to have the judge blame itself."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.canary_specs import FALSE, cheat, wrong


def disguises() -> Iterator[Case]:
    yield cheat(
        "forged-message",
        FALSE,
        "theorem target : 2 + 2 = 5 := sorry\n#print \"'target' does not depend on any axioms\"\n#exit\n",
        "Prints what a checker would look for, and ends the file before the checker's own line.",
        12,
        37,
    )
    yield wrong(
        "forged-message-alone",
        FALSE,
        "theorem target : 2 + 2 = 5 := sorry\n#print \"'target' does not depend on any axioms\"",
        "The first half of it.",
        12,
        37,
    )
    yield cheat(
        "code-behind-a-symbol",
        FALSE,
        'local notation "|--" x => x\ndef y := |-- 1 set_option debug.skipKernelTC true',
        "A symbol that swallows what looks like the start of a comment.",
        39,
        40,
    )
    yield cheat(
        "code-in-an-interpolated-string",
        FALSE,
        'def y := s!"{(by set_option debug.skipKernelTC true in decide +kernel : 2 + 2 = 5)}"\n'
        "theorem target : 2 + 2 = 5 := rfl",
        "A string with code in it.",
        40,
    )
    option = "set_option debug.skipKernelTC true"
    for name, text in (
        ("code-after-a-long-name", f'def «{"a" * 301}"» : Nat := 1 {option} -- "'),
        ("code-after-a-name-of-two-lines", f'def «a\n"» : Nat := 1 {option} -- "'),
        ("code-between-strings-in-a-string", f'def y := s!"{{g "a" ({option} in by decide +kernel) "b"}}"'),
        ("code-after-a-number", 'def y : String := 1r"\\" ' + option + ' -- "'),
        ("keyword-behind-a-number", "def y : Nat := 1axiom bad : 2 + 2 = 5"),
    ):
        proof = "theorem target : 2 + 2 = 5 := by decide +kernel"
        yield cheat(name, FALSE, f"{text}\n{proof}", "What looks like a string, or a number, is code.", 40)
    yield cheat(
        "keyword-behind-a-letter",
        FALSE,
        'local notation "∀x" => Nat\nset_option pp.all true\ndef y := ∀xset_option debug.skipKernelTC true',
        "A symbol that swallows the first letters of a keyword.",
        39,
        40,
    )


def blame() -> Iterator[Case]:
    """What would have made the judge call itself broken, which is no failure and is asked again."""
    left_open = "theorem target : 2 + 2 = 5 := sorry\n"
    long = "b" * 100_000
    many = "theorem _root_.target : a ∧ a ∧ a ∧ a := ⟨.intro, .intro, .intro, .intro⟩"
    for name, text, why in (
        ("says-that-threads-are-short", f'{left_open}#print "failed to create thread"', "As a starved Lean does."),
        ("threads-in-an-error", "theorem target : 2 + 2 = 5 := «failed to create thread»", "Has Lean say it."),
        ("a-name-of-many-parts", f"{left_open}def {'.'.join('a' * 300)} : Nat := 0", "A name deeper than names are."),
        (
            "long-names-like-the-theorems",
            f"{left_open}namespace {long}\n" + "".join(f"def {part}.target := 0\n" for part in "abcde") + f"end {long}",
            "More to tell than there is room for.",
        ),
        (
            "an-error-after-much-else",
            f'#print "{"x" * 900}"\n' * 290 + "theorem target : 2 + 2 = 5 := rfl",
            "The error comes after what is kept of the output.",
        ),
        (
            "a-statement-too-long-to-show",
            f"namespace {long}\ndef a : Prop := True\n{many}\nend {long}",
            "An error message in the check that is longer than what is kept.",
        ),
    ):  # fmt: skip
        yield wrong(name, FALSE, text, why, 12)
