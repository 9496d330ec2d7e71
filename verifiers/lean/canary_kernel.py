"""Ways behind the kernel's back, and code that runs while Lean works."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.canary_specs import FALSE, cheat, wrong


def kernel() -> Iterator[Case]:
    proof = "theorem target : 2 + 2 = 5 := by decide +kernel"
    option = "set_option debug.skipKernelTC true"
    for name, text in (
        ("skip-kernel", f"{option}\n{proof}"),
        ("skip-kernel-in-a-tactic", f"theorem target : 2 + 2 = 5 := by {option} in decide +kernel"),
        ("skip-kernel-in-a-term", f"theorem target : 2 + 2 = 5 := {option} in by decide +kernel"),
        ("skip-kernel-in-quotes", f"set_option «debug».«skipKernelTC» true\n{proof}"),
        ("skip-kernel-half-quoted", f"set_option debug.«skipKernelTC» true\n{proof}"),
        ("skip-kernel-over-lines", f"set_option\n  /- here -/ debug.skipKernelTC -- so\n  true\n{proof}"),
        ("skip-kernel-after-a-doc-quirk", f"/-- -- /-\n -/ {option}\n{proof}"),
        ("skip-kernel-after-a-character", f"theorem c : 'x' = '\"' := rfl {option}\n{proof} --\""),
    ):
        yield cheat(name, FALSE, text, "Nothing of it is shown to the kernel.", 40)
    yield wrong(
        "an-option-by-a-macro",
        FALSE,
        'macro "fast" : command => `(set_option $(Lean.mkIdent (`debug ++ `skip ++ "KernelTC")) true)\nfast\n'
        "theorem target : 2 + 2 = 5 := by decide +kernel",
        "An option whose name is put together.",
        40,
    )
    yield cheat(
        "added-without-a-check",
        FALSE,
        "import Lean\nopen Lean\nrun_cmd modifyEnv fun e => e.addDeclWithoutChecking\n"
        "theorem target : 2 + 2 = 5 := rfl",
        "Puts a declaration into Lean's environment.",
        40,
        41,
    )
    yield cheat(
        "own-prelude",
        FALSE,
        "prelude\nset_option genCtorIdx false\ninductive Nat where | zero | succ (n : Nat)\n"
        "def Nat.add (a : Nat) (_ : Nat) : Nat := a",
        "Natural numbers whose addition the kernel computes otherwise than they say.",
        40,
    )
    yield cheat(
        "own-prelude-after-a-comment", FALSE, "/- -/ prelude\ninductive Nat where | zero", "The same, less plainly.", 40
    )

    yield wrong(
        "arithmetic-of-its-own",
        FALSE,
        "def Nat.pow (_ _ : Nat) : Nat := 0\ntheorem unfolds (a b : Nat) : Nat.pow a b = 0 := rfl\n"
        "theorem computes : Nat.pow 2 3 = 8 := by decide +kernel\n"
        "theorem bad : 0 = 8 := (unfolds 2 3).symm.trans computes\n"
        "theorem target : 2 + 2 = 5 := absurd bad (by decide)",
        "A name that the kernel computes with, whatever its definition says.",
        40,
    )


def code() -> Iterator[Case]:
    for name, text in (
        ("run-cmd", "run_cmd Lean.logInfo \"hello\""),
        ("initialize", "initialize do IO.println \"'check' does not depend on any axioms\""),
        ("eval-bang", "#eval! IO.FS.writeFile \"AssayCheck.lean\" \"\""),
        ("run-tac", "theorem x : 2 + 2 = 5 := by run_tac return"),
        ("by-elab", "theorem x : 2 + 2 = 5 := by_elab return .const `sorryAx []"),
        ("extern", "@[extern \"system\"] def system : Nat → Nat := fun n => n"),
        ("exit", "#exit"),
        ("init-attribute", "@[init] def x : Nat := 1"),
        ("attribute-afterwards", "def x : Nat := 1\nattribute [simp, implemented_by x] Nat.add"),
        ("unsafe-io", "def x := unsafeIO (pure ())"),
    ):  # fmt: skip
        proof = "" if name == "exit" else "\ntheorem target : 2 + 2 = 5 := rfl"
        yield cheat(name, FALSE, text + proof, "Code that runs while Lean works, or an end to the file.", 41)
    for name, text in (
        ("eval", "#eval 1 + 1"),
        ("elab", "elab \"win\" : tactic => return"),
        ("macro", "macro \"win\" : tactic => `(tactic| sorry)"),
        ("simproc", "simproc x (_) := fun _ => return .continue"),
        ("include-str", "def x := include_str \"/etc/passwd\""),
        ("io-by-hand", "def x := match (IO.FS.writeFile \"x\" \"y\" : EIO _ _) () with | _ => 1"),
        ("import-lean", "import Lean"),
        ("import-the-statement", "import AssayStatement"),
        ("module-header", "module\npublic import Init"),
        ("import-all", "import all Init"),
    ):  # fmt: skip
        yield wrong(name, FALSE, f"{text}\ntheorem target : 2 + 2 = 5 := rfl", "What no proof needs.", 41)
