"""Proofs and cheats that are known, and what has to be said of them. Every one can be run with Lean's own library.

The cheats are those that are known from checkers that were fooled, and the ways past this one that were thought of.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.spec import LeanSpec

FALSE = LeanSpec(statement="theorem target : 2 + 2 = 5 := sorry\n", seconds=20)
TRUE = LeanSpec(statement="theorem target : 2 + 2 = 4 := sorry\n", seconds=20)
FORALL = LeanSpec(statement="theorem target (n : Nat) : n + 0 = n ∧ 0 + n = n := sorry\n", seconds=20)
LOGIC = LeanSpec(statement="theorem target (p q : Prop) : p ∧ q → q ∧ p := by\n  sorry\n", seconds=20)
UNIVERSES = LeanSpec(statement="universe u\ntheorem target (α : Type u) (a : α) : a = a := sorry\n", seconds=20)
EXISTS = LeanSpec(statement="theorem target : ∃ x : Nat, x * x = 49\n", seconds=20)
CHOICE = LeanSpec(statement="theorem target (p : Nat → Prop) (h : ∃ x, p x) : ∃ x, p x := sorry\n", seconds=20)
SPACES = LeanSpec(statement="namespace Assay.Here\ntheorem target : 1 + 1 = 2 := sorry\nend Assay.Here\n", seconds=20)
DEFINED = LeanSpec(
    statement="/-- Twice a number. -/\ndef twice (n : Nat) : Nat := n + n\n\nvariable (n : Nat)\n\n"
    "theorem target : twice n = n + n := sorry\n",
    seconds=20,
)
DEFINED_FALSE = LeanSpec(
    statement="def twice (n : Nat) : Nat := n + n\n\ntheorem target : twice 1 = 3 := sorry\n", seconds=20
)
QUICK = LeanSpec(statement="theorem target : 2 + 2 = 5 := sorry\n", seconds=1, memory_mib=1024)


def cases() -> Iterator[Case]:
    yield from _honest()
    yield from _axioms()
    yield from _statements()
    yield from _names()
    yield from _kernel()
    yield from _code()
    yield from _disguises()
    yield from _blame()
    yield from _expensive()


def _case(
    name: str, spec: LeanSpec, submission: str, why: str, *rows: int, honest: bool = False, suspected: bool = False
) -> Case:
    return Case(name=name, spec=spec, submission=submission, honest=honest, rows=rows, suspected=suspected, why=why)


def _good(name: str, spec: LeanSpec, submission: str, why: str) -> Case:
    return _case(name, spec, submission, why, honest=True)


def _cheat(name: str, spec: LeanSpec, submission: str, why: str, *rows: int) -> Case:
    return _case(name, spec, submission, why, *rows, suspected=True)


def _wrong(name: str, spec: LeanSpec, submission: str, why: str, *rows: int) -> Case:
    return _case(name, spec, submission, why, *rows)


def _honest() -> Iterator[Case]:
    yield _good("by-computation", TRUE, "theorem target : 2 + 2 = 4 := rfl", "The shortest proof.")
    yield _good("by-decide", TRUE, "theorem target : 2 + 2 = 4 := by decide", "A proof by a tactic.")
    yield _good(
        "by-induction",
        FORALL,
        "theorem zero_add' (n : Nat) : 0 + n = n := by\n  induction n with\n  | zero => rfl\n"
        "  | succ n ih => exact congrArg Nat.succ ih\n"
        "theorem target (n : Nat) : n + 0 = n ∧ 0 + n = n := ⟨rfl, zero_add' n⟩",
        "With a lemma of its own.",
    )
    yield _good(
        "by-cases",
        LOGIC,
        "theorem target (p q : Prop) : p ∧ q → q ∧ p := by\n  intro h\n  cases h with\n  | intro l r => exact ⟨r, l⟩",
        "Structured tactics.",
    )
    yield _good("by-witness", EXISTS, "theorem target : ∃ x : Nat, x * x = 49 := ⟨7, by decide⟩", "An existence.")
    yield _good(
        "every-universe",
        UNIVERSES,
        "universe u\ntheorem target (α : Type u) (a : α) : a = a := rfl",
        "The statement's header, said again.",
    )
    yield _good(
        "every-universe-under-another-name",
        UNIVERSES,
        "theorem target.{v} (β : Type v) (b : β) : b = b := Eq.refl b",
        "Names of bound variables and universes mean nothing.",
    )
    yield _good(
        "more-general",
        TRUE,
        "theorem general (n : Nat) : n = n := rfl\ntheorem target : 2 + 2 = 4 := general 4",
        "What is proved is equal by computation.",
    )
    yield _good(
        "as-a-definition",
        TRUE,
        "def target : 2 + 2 = 4 := rfl",
        "A definition whose type is the statement is as much a proof as a theorem.",
    )
    yield _good(
        "with-the-standard-axioms",
        CHOICE,
        "theorem target (p : Nat → Prop) (h : ∃ x, p x) : ∃ x, p x :=\n"
        "  let i : Nonempty (Subtype p) := h.rec (fun w k => ⟨⟨w, k⟩⟩)\n"
        "  ⟨(Classical.choice i).val, (Classical.choice i).property⟩",
        "Choice is one of the three axioms of ordinary mathematics.",
    )
    yield _good(
        "the-full-name",
        SPACES,
        "theorem Assay.Here.target : 1 + 1 = 2 := rfl",
        "One way to write a name in a namespace.",
    )
    yield _good(
        "the-namespace-again",
        SPACES,
        "namespace Assay.Here\ntheorem target : 1 + 1 = 2 := rfl\nend Assay.Here",
        "Another way.",
    )
    yield _good("root-name", SPACES, "theorem _root_.Assay.Here.target : 1 + 1 = 2 := rfl", "And a third.")
    yield _good(
        "a-definition-of-the-statement",
        DEFINED,
        "theorem target : twice n = n + n := rfl",
        "Definitions and variables of the statement are there.",
    )
    yield _good(
        "the-whole-file-again",
        DEFINED,
        "/-- Twice a number. -/\ndef twice (n : Nat) : Nat := n + n\nvariable (n : Nat)\n"
        "theorem target : twice n = n + n := by rfl",
        "People fill in the file that they were given.",
    )
    yield _good(
        "forbidden-words-in-comments",
        TRUE,
        "/- no sorry, no axiom, no native_decide,\n   /- set_option debug.skipKernelTC true -/ #eval -/\n"
        "-- unsafe implemented_by initialize run_cmd\n"
        "/-- Not `sorry`, and no `axiom`. -/\ntheorem target : 2 + 2 = 4 := rfl -- sorry",
        "Words in comments are no code.",
    )
    yield _good(
        "names-like-forbidden-words",
        TRUE,
        "theorem axiomatic : 2 + 2 = 4 := rfl\ntheorem sorry' : 2 + 2 = 4 := axiomatic\n"
        "theorem my_macro : 2 + 2 = 4 := sorry'\ntheorem «elab it» : 2 + 2 = 4 := my_macro\n"
        "theorem target : 2 + 2 = 4 := «elab it»",
        "Parts of words are no words.",
    )
    yield _good(
        "more-heartbeats",
        TRUE,
        "set_option maxHeartbeats 0 in\nset_option maxRecDepth 1000000 in\ntheorem target : 2 + 2 = 4 := by decide",
        "People ask for more time out of habit; they get what the spec allows.",
    )
    yield _good(
        "sorry-beside-it",
        TRUE,
        "theorem unused : 2 + 2 = 5 := sorry\ntheorem target : 2 + 2 = 4 := rfl",
        "What the theorem does not use does not matter.",
    )
    yield _good(
        "questions-to-lean",
        TRUE,
        "theorem target : 2 + 2 = 4 := rfl\n#print axioms target\n#check target",
        "Asking is not cheating.",
    )
    yield _good(
        "own-types",
        TRUE,
        "inductive Colour where\n  | red\n  | green\nprivate theorem hidden : 2 + 2 = 4 := rfl\n"
        "@[simp] theorem shown : 2 + 2 = 4 := hidden\nopaque secret : Nat\n"
        "theorem target : 2 + 2 = 4 := shown",
        "Types, private lemmas, attributes and opaque constants of its own.",
    )


def _axioms() -> Iterator[Case]:
    yield _wrong("sorry", FALSE, "theorem target : 2 + 2 = 5 := sorry", "Leaves the proof open.", 37)
    yield _wrong("sorry-in-a-tactic", FALSE, "theorem target : 2 + 2 = 5 := by\n  sorry", "The same.", 37)
    yield _wrong("admit", FALSE, "theorem target : 2 + 2 = 5 := by admit", "Another word for it.", 37)
    yield _wrong(
        "sorry-in-a-lemma",
        FALSE,
        "theorem lemma1 : 2 + 2 = 5 := sorry\ntheorem target : 2 + 2 = 5 := lemma1",
        "The theorem itself says nothing of sorry.",
        37,
    )
    yield _wrong(
        "sorry-in-a-definition",
        FALSE,
        "def lemma1 : 2 + 2 = 5 := sorry\ntheorem target : 2 + 2 = 5 := lemma1",
        "The same in a definition.",
        37,
    )
    yield _wrong(
        "sorry-in-an-instance",
        FALSE,
        "instance : Decidable (2 + 2 = 5) := sorry\ntheorem target : 2 + 2 = 5 := by decide",
        "A decision procedure that is left open.",
        37,
    )
    yield _cheat(
        "silenced-sorry",
        FALSE,
        "set_option warn.sorry false\ntheorem target : 2 + 2 = 5 := sorry",
        "Lean says nothing of it.",
        37,
    )
    yield _cheat(
        "sorry-axiom-by-name", FALSE, "theorem target : 2 + 2 = 5 := sorryAx _ true", "Called by its own name.", 37
    )
    yield _cheat(
        "own-axiom", FALSE, "axiom helper : 2 + 2 = 5\ntheorem target : 2 + 2 = 5 := helper", "Assumes it.", 37
    )
    yield _cheat("the-axiom-itself", FALSE, "axiom target : 2 + 2 = 5", "No theorem at all.", 37, 43)
    yield _cheat(
        "axiom-after-a-modifier",
        FALSE,
        "private axiom helper : False\ntheorem target : 2 + 2 = 5 := helper.elim",
        "A hidden axiom.",
        37,
    )
    yield _cheat(
        "axiom-in-mutual",
        FALSE,
        "mutual\naxiom a : False\naxiom b : False\nend\ntheorem target : 2 + 2 = 5 := a.elim",
        "In a block.",
        37,
    )
    yield _cheat(
        "axiom-named-like-a-good-one",
        FALSE,
        "axiom «propext, Quot.sound» : 2 + 2 = 5\ntheorem target : 2 + 2 = 5 := «propext, Quot.sound»",
        "Its name reads like a list of good axioms.",
        37,
    )
    yield _cheat(
        "axiom-in-a-namespace",
        FALSE,
        "namespace Classical\naxiom choice' : 2 + 2 = 5\nend Classical\n"
        "theorem target : 2 + 2 = 5 := Classical.choice'",
        "In the namespace of a good one.",
        37,
    )
    yield _wrong("native-decide", FALSE, "theorem target : 2 + 2 = 5 := by native_decide", "Trusts compiled code.", 37)
    yield _wrong(
        "decide-native",
        FALSE,
        "theorem target : 2 + 2 = 5 := by decide +native",
        "The same by an option.",
        37,
    )
    yield _cheat(
        "compiled-code-by-hand",
        FALSE,
        "def c : Bool := true\n"
        "theorem target : 2 + 2 = 5 := absurd (Lean.ofReduceBool c false rfl) (fun h => nomatch h)",
        "The axiom behind native_decide.",
        37,
    )
    yield _cheat(
        "implemented-by",
        FALSE,
        "def real : Bool := true\n@[implemented_by real] def fake : Bool := false\n"
        "theorem target : 2 + 2 = 5 := by native_decide",
        "What runs is not what is written.",
        37,
    )
    yield _cheat(
        "unsafe-opaque",
        FALSE,
        "unsafe def bad : 2 + 2 = 5 := bad\ntheorem target : 2 + 2 = 5 := bad",
        "Unsafe definitions prove anything.",
        37,
    )
    yield _wrong(
        "endless-proof",
        FALSE,
        "theorem target : 2 + 2 = 5 := target",
        "A proof that uses itself.",
        37,
    )
    yield _wrong(
        "partial-proof", FALSE, "partial def target : 2 + 2 = 5 := target", "The same, said to be partial.", 37
    )


def _statements() -> Iterator[Case]:
    yield _cheat(
        "evil-instance",
        FALSE,
        "instance evil : Add Nat where\n  add _ _ := 5\ntheorem target : 2 + 2 = 5 := rfl",
        "Another addition.",
        38,
    )
    yield _cheat(
        "evil-local-instance",
        FALSE,
        "local instance evil : Add Nat := ⟨fun _ _ => 5⟩\ntheorem target : 2 + 2 = 5 := rfl",
        "Another addition, for this file alone.",
        38,
    )
    yield _wrong(
        "evil-heterogeneous-instance",
        FALSE,
        "instance evil : HAdd Nat Nat Nat := ⟨fun _ _ => 5⟩\ntheorem target : 2 + 2 = 5 := rfl",
        "The same behind the sign.",
        38,
    )
    yield _cheat(
        "evil-numerals",
        FALSE,
        "@[default_instance 2000] instance evil (n : Nat) : OfNat Unit n := ⟨()⟩\n"
        "instance : Add Unit := ⟨fun _ _ => ()⟩\ntheorem target : 2 + 2 = 5 := rfl",
        "Numerals of another type.",
        38,
    )
    yield _wrong(
        "evil-prop",
        LeanSpec(statement="theorem target : False := sorry\n", seconds=20),
        "namespace Mine\ninductive False : Prop where\n  | yes\nend Mine\nopen Mine in\n"
        "theorem target : Mine.False := .yes",
        "Another False.",
        38,
        39,
    )
    yield _wrong(
        "shadowed-false",
        LeanSpec(statement="theorem target : False := sorry\n", seconds=20),
        "namespace Mine\nabbrev False : Prop := True\ntheorem _root_.target : False := True.intro\nend Mine",
        "False, inside a namespace where it is something else.",
        38,
        39,
    )
    yield _wrong(
        "notation-for-equality",
        FALSE,
        'local infix:50 " = " => fun (_ _ : Nat) => True\ntheorem target : 2 + 2 = 5 := True.intro',
        "Another equality.",
        39,
    )
    yield _wrong(
        "notation-for-a-number",
        FALSE,
        'local notation "5" => 4\ntheorem target : 2 + 2 = 5 := rfl',
        "Another five.",
        39,
    )
    yield _wrong(
        "macro-for-a-number",
        FALSE,
        "macro_rules | `(5) => `(4)\ntheorem target : 2 + 2 = 5 := rfl",
        "The same by code.",
        39,
    )
    yield _wrong(
        "notation-for-the-check",
        FALSE,
        'notation "type_of%" x => True\nnotation "@" x => True.intro\ntheorem target : True := True.intro',
        "Notation that would change what the check says.",
        39,
    )
    yield _wrong(
        "syntax-for-the-check",
        FALSE,
        'syntax "theorem" ident ":" term ":=" term : command\n'
        "macro_rules | `(theorem $n : $t := $p) => `(theorem $n : True := True.intro)\n"
        "theorem target : True := True.intro",
        "The same, a command deeper.",
        39,
    )
    yield _wrong(
        "open-hiding",
        DEFINED_FALSE,
        "namespace Other\ndef twice (_ : Nat) : Nat := 3\nend Other\nopen Other hiding nothing\n"
        "theorem target : Other.twice 1 = 3 := rfl",
        "Another definition of the same last name.",
        39,
    )
    yield _wrong(
        "the-definition-again",
        DEFINED_FALSE,
        "def twice (_ : Nat) : Nat := 3\ntheorem target : twice 1 = 3 := rfl",
        "A definition of its own in the place of the statement's.",
        39,
        43,
    )
    yield _wrong(
        "the-definition-in-a-scope",
        DEFINED_FALSE,
        "namespace Inner\ndef twice (_ : Nat) : Nat := 3\ntheorem _root_.target : twice 1 = 3 := rfl\nend Inner",
        "The nearer name is taken.",
        39,
    )
    yield _wrong(
        "a-variable-too-many",
        FALSE,
        "variable (h : 2 + 2 = 5)\ninclude h\ntheorem target : 2 + 2 = 5 := h",
        "A hypothesis from outside the theorem.",
        38,
    )
    yield _wrong(
        "an-instance-argument",
        LeanSpec(statement="theorem target (p : Prop) : p := sorry\n", seconds=20),
        "class Fact (p : Prop) : Prop where\n  out : p\ntheorem target (p : Prop) [h : Fact p] : p := h.out",
        "A hypothesis that is found without being named.",
        38,
    )
    yield _wrong(
        "an-optional-argument",
        FALSE,
        "theorem target (h : 2 + 2 = 5 := by assumption) : 2 + 2 = 5 := h",
        "A hypothesis with a default.",
        38,
    )
    yield _wrong(
        "auto-bound",
        LeanSpec(statement="theorem target (n : Nat) : n = 0 := sorry\n", seconds=20),
        "theorem target {Nat : Type} [h : OfNat Nat 0] (n : Nat) (k : n = 0) : n = 0 := k",
        "Nat as a name of its own.",
        38,
    )
    yield _wrong(
        "one-universe",
        UNIVERSES,
        "theorem target (α : Type) (a : α) : a = a := rfl",
        "Only for one universe.",
        43,
    )
    yield _wrong("propositions-only", UNIVERSES, "theorem target (α : Prop) (a : α) : a = a := rfl", "Less still.", 43)


def _names() -> Iterator[Case]:
    yield _wrong("weaker-theorem", FALSE, "theorem target : True := True.intro", "Another theorem.", 43)
    yield _wrong("weaker-instance", FORALL, "theorem target : 1 + 0 = 1 ∧ 0 + 1 = 1 := ⟨rfl, rfl⟩", "One case.", 43)
    yield _wrong("other-namespace", FALSE, "theorem Other.target : True := True.intro", "Another name.", 43)
    yield _wrong("private-name", TRUE, "private theorem target : 2 + 2 = 4 := rfl", "A name nobody else sees.", 43)
    yield _wrong("nothing", TRUE, "", "No proof.", 43)
    yield _wrong("only-a-comment", TRUE, "/- theorem target : 2 + 2 = 4 := rfl -/", "A proof in a comment.", 43)
    yield _wrong("an-example", TRUE, "example : 2 + 2 = 4 := rfl", "A proof without a name.", 43)
    yield _wrong("unclosed-comment", TRUE, "theorem target : 2 + 2 = 4 := rfl\n/-", "A text that does not end.", 43)
    yield _wrong(
        "left-namespace",
        SPACES,
        "end Assay.Here\ntheorem target : 1 + 1 = 2 := rfl\nnamespace Assay.Here",
        "Leaves the namespace that it is put in.",
        43,
    )
    yield _wrong("quoted-name", TRUE, "theorem «target » : 2 + 2 = 4 := rfl", "A name that looks the same.", 43)
    yield _wrong("unicode-name", TRUE, "theorem tаrget : 2 + 2 = 4 := rfl", "With a Cyrillic letter.", 43)
    yield _wrong(
        "the-statement-by-name",
        FALSE,
        "theorem target : 2 + 2 = 5 := target.assay_0000000000000000",
        "Guesses the secret name of the trusted statement, whose proof is open.",
        43,
    )
    yield _wrong("prose", TRUE, "The proof is by computation: 2 + 2 = 4. Q.E.D.", "No Lean.", 43)
    yield _wrong("a-theorem-with-an-error", TRUE, "theorem target : 2 + 2 = 4 := by rfl; done done", "Errors.", 43)
    yield _wrong(
        "errors-elsewhere",
        TRUE,
        "theorem target : 2 + 2 = 4 := rfl\ntheorem x : 1 = 2 := rfl",
        "An error beside it.",
        43,
    )


def _kernel() -> Iterator[Case]:
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
        yield _cheat(name, FALSE, text, "Nothing of it is shown to the kernel.", 40)
    yield _wrong(
        "an-option-by-a-macro",
        FALSE,
        'macro "fast" : command => `(set_option $(Lean.mkIdent (`debug ++ `skip ++ "KernelTC")) true)\nfast\n'
        "theorem target : 2 + 2 = 5 := by decide +kernel",
        "An option whose name is put together.",
        40,
    )
    yield _cheat(
        "added-without-a-check",
        FALSE,
        "import Lean\nopen Lean\nrun_cmd modifyEnv fun e => e.addDeclWithoutChecking\n"
        "theorem target : 2 + 2 = 5 := rfl",
        "Puts a declaration into Lean's environment.",
        40,
        41,
    )
    yield _cheat(
        "own-prelude",
        FALSE,
        "prelude\nset_option genCtorIdx false\ninductive Nat where | zero | succ (n : Nat)\n"
        "def Nat.add (a : Nat) (_ : Nat) : Nat := a",
        "Natural numbers whose addition the kernel computes otherwise than they say.",
        40,
    )
    yield _cheat(
        "own-prelude-after-a-comment", FALSE, "/- -/ prelude\ninductive Nat where | zero", "The same, less plainly.", 40
    )

    yield _wrong(
        "arithmetic-of-its-own",
        FALSE,
        "def Nat.pow (_ _ : Nat) : Nat := 0\ntheorem unfolds (a b : Nat) : Nat.pow a b = 0 := rfl\n"
        "theorem computes : Nat.pow 2 3 = 8 := by decide +kernel\n"
        "theorem bad : 0 = 8 := (unfolds 2 3).symm.trans computes\n"
        "theorem target : 2 + 2 = 5 := absurd bad (by decide)",
        "A name that the kernel computes with, whatever its definition says.",
        40,
    )


def _code() -> Iterator[Case]:
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
        yield _cheat(name, FALSE, text + proof, "Code that runs while Lean works, or an end to the file.", 41)
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
        yield _wrong(name, FALSE, f"{text}\ntheorem target : 2 + 2 = 5 := rfl", "What no proof needs.", 41)


def _disguises() -> Iterator[Case]:
    yield _cheat(
        "forged-message",
        FALSE,
        "theorem target : 2 + 2 = 5 := sorry\n#print \"'target' does not depend on any axioms\"\n#exit\n",
        "Prints what a checker would look for, and ends the file before the checker's own line.",
        12,
        37,
    )
    yield _wrong(
        "forged-message-alone",
        FALSE,
        "theorem target : 2 + 2 = 5 := sorry\n#print \"'target' does not depend on any axioms\"",
        "The first half of it.",
        12,
        37,
    )
    yield _cheat(
        "code-behind-a-symbol",
        FALSE,
        'local notation "|--" x => x\ndef y := |-- 1 set_option debug.skipKernelTC true',
        "A symbol that swallows what looks like the start of a comment.",
        39,
        40,
    )
    yield _cheat(
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
        yield _cheat(name, FALSE, f"{text}\n{proof}", "What looks like a string, or a number, is code.", 40)
    yield _cheat(
        "keyword-behind-a-letter",
        FALSE,
        'local notation "∀x" => Nat\nset_option pp.all true\ndef y := ∀xset_option debug.skipKernelTC true',
        "A symbol that swallows the first letters of a keyword.",
        39,
        40,
    )


def _blame() -> Iterator[Case]:
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
        yield _wrong(name, FALSE, text, why, 12)


def _expensive() -> Iterator[Case]:
    yield _wrong(
        "kernel-runaway",
        QUICK,
        "theorem target : 2 + 2 = 5 :=\n"
        "  have : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 0 := by decide +kernel\n  sorry",
        "The kernel counts to 10^20; heartbeats do not stop it.",
        42,
    )
    yield _wrong(
        "heartbeats-runaway",
        QUICK,
        "set_option maxHeartbeats 0\ntheorem target : 2 + 2 = 5 :=\n"
        "  (rfl : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 5)",
        "The elaborator does.",
        42,
    )
    yield _wrong(
        "memory-bomb",
        QUICK,
        "theorem target : 2 + 2 = 5 :=\n"
        "  have : @Nat.rec (fun _ => Nat) 2 (fun _ x => Nat.mul x x) 60 = 0 := by decide +kernel\n  sorry",
        "A number of 2^60 digits: out of memory or out of time, whatever is first.",
        42,
    )
    yield _wrong("brackets", QUICK, "theorem target : 2 + 2 = 5 := " + "(" * 250_000, "Brackets.", 42)
    yield _wrong(
        "closed-brackets", QUICK, f"theorem target : 2 + 2 = 5 := {'(' * 100_000}rfl{')' * 100_000}", "As many.", 42
    )
    yield _wrong("negations", QUICK, f"theorem target : {'¬' * 200_000}False := by decide", "A tower of signs.", 42)
    yield _wrong("comments", QUICK, "/-" * 140_000, "Comments in comments.", 42)
    yield _wrong("a-long-number", QUICK, f"theorem target : 2 + 2 = {'9' * 250_000} := rfl", "A long number.", 42)
    yield _wrong("too-long", QUICK, "-- x\n" * 100_000, "More text than may be.", 42)
    yield _wrong(
        "many-theorems",
        QUICK,
        "".join(f"theorem t{n} : {n} + 1 = {n + 1} := by decide\n" for n in range(5_000)),
        "Too many for the time.",
        42,
    )
