"""What no honest proof needs is found wherever it is code, and nowhere else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from verifiers.lean.reading import commands
from verifiers.lean.reading.lexer import without_comments, without_room, words
from verifiers.lean.reading.screening import MOST_FINDINGS, computes, parts, screen
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import read_statement
from verifiers.lean.submission import assemble


@table(
    "text",
    [
        "theorem x : p := by aesop\nunsafe def y := 1",
        "theorem x : p := by aesop (add safe foo)\nunsafe def y := 1",
        "@[aesop safe] unsafe def y := 1",
        "theorem x : p := by aesop (add unsafe foo)\naxiom y : q",
        "set_option warn.sorry false",
        "/-- -- /-\n -/ set_option debug.skipKernelTC true",
        "theorem x : p := y /- sorryAx",
        "set_option debug.skipKernelTC true",
        "theorem x : p := by set_option «debug».skipKernelTC true in rfl",
        "set_option\n/- -/debug.skipKernelTC true",
        "set_option $(name) true",
        "set_option",
        "@[simp, implemented_by f] def g := 1",
        '@[local simp, extern "x"] def g := 1',
        "attribute [-instance, csimp] g",
        "@[simp (config := {a := [1, 2]}), extern] def g := 1",
        "private axiom x : False",
        "#exit",
        "run_cmd x",
        "theorem x : p := (by run_tac y)",
        "prelude",
        "def x := Lean.ofReduceBool",
        "def x := open Lean in ofReduceBool a b c",
        's!"{sorryAx _}"',
        's!"{x}{sorryAx _}"',
        's!"{f "axiom x : False"}"',
        's!"{/- }" -/ axiom x : False',
        's!"{x}\\{" axiom x : False',
        'notation "a--b" => 1',
        'notation "\'x" => 1',
        'notation ")\'" => 1',
        "unsafe def x := 1",
        "warn_me set_option warn.sorry false",
    ],
)
def test_a_cheat_is_called_one(text: str) -> None:
    assert any(finding.cheat for finding in screen(text)), screen(text)


@table(
    "text",
    [
        "by native_decide",
        "by decide +native",
        "by decide (config := { native := true })",
        'elab "x" : tactic => y',
        "macro_rules | `(x) => `(y)",
        'syntax "x" : term',
        "#eval 1",
        "@[tactic foo] def x := 1",
        "set_option exotic true",
        "def f : MetaM Unit := x",
        "deriving handler x",
        "def x := eval% y",
        'binder_predicate x " > " y:term => `($x > $y)',
    ],
)
def test_what_is_needless_is_refused_without_accusation(text: str) -> None:
    found = screen(text)
    assert found
    assert not any(finding.cheat for finding in found), found


@table(
    "text",
    [
        "-- sorry axiom set_option debug.skipKernelTC true",
        "/- /- axiom -/ unsafe -/ theorem x : p := q",
        '"axiom native_decide"',
        "theorem axiom' : p := q",
        "theorem my_axiom : p := q",
        "set_option maxHeartbeats 400000 in theorem x : p := q",
        "set_option pp.all true",
        "@[simp, ext] theorem x : p := q",
        "@[local simp] theorem x : p := q",
        "attribute [local instance] Classical.propDecidable",
        'local notation "φ" => f',
        'infixl:65 " ⊕ " => f',
        "opaque x : Nat",
        "theorem x : p := by exact foo.module",
        "#check x",
        "example (s : Finset Nat) : #s = 0 := y",
        "theorem x (h : a ∣ b) : f '' s = t := y",
        "def f := native",
        'notation "x\'" => 1',
        "def f : IO Unit := x",
        "theorem x (IO Environment h_IO : Prop) (h : IO) : IO := h",
        "theorem x («axiom» : Prop) (h : «axiom») : «axiom» := h",
        "theorem x (s : S) : s.syntax = s.macro := s.axiom",
        "theorem x : p := by aesop (add unsafe 50% foo, norm simp bar) (add unsafe [baz (by simp), qux])",
        "@[aesop unsafe 90% apply, simp] theorem x : p := q",
        "@[simp, aesop [safe apply, unsafe 10% cases]] theorem x : p := q",
        "attribute [local aesop unsafe 20% forward] foo",
        "add_aesop_rules unsafe (by simp)",
        "theorem x : p := by aesop? (rule_sets := [A]) (add unsafe foo)",
        "-- it is →--sorryAx is bad\ntheorem x : p →--axiom\n q := y",
        "theorem x : p := by simp]--unsafe, native_decide",
        "/--- the axiom of choice -/ theorem x : p := q",
        "/-- -- unsafe -/ theorem x : p := q",
        "theorem is_unsafe (h_unsafe : p) : p := h_unsafe",
        "set_option warningAsError false",
        "set_option warn.classDefReducibility false",
        "set_option compiler.extract_closed false",
        "set_option genSizeOfSpec false in theorem x : p := q",
        "set_option profiler.threshold 10",
        "set_option maxSynthPendingDepth 5",
        "theorem x : eval % 2 = p.eval%2 := q",
        "set_option Elab.async false",
        "theorem x (extern csimp : p) : p := extern",
        "sorry",
        '-- no axiom is used\ntheorem x : p := by exact f s!"{y}: not an axiom"',
        'def s := "{x}" /- by the axiom of choice -/',
        '@[deprecated "use {x | p x}, no axiom"] theorem a : b := c',
    ],
)
def test_what_honest_proofs_have_is_left_alone(text: str) -> None:
    assert screen(text) == []


@table(
    ("text", "runs"),
    [
        ("theorem x : p := by simp (maxSteps := evil)", True),
        ("theorem x : p := by omega (splitNatSub:=evil)", True),
        ("theorem x : p := by linarith (config := { discharger := evil })", True),
        ("theorem x : p := by simp (maxSteps := 3 + evil)", True),
        ("@[simps (config := evil)] def x := y", True),
        ("attribute [simps (config := evil)] x", True),
        ("#simp (config := evil) => x", True),
        ("def x := y (n := z)\ntermination_by z\ndecreasing_by omega", True),
        ("theorem x : p := by simp (maxSteps := 3) (decide := true)", False),
        ("theorem x : f (α := Nat) = y := by sorry", False),
        ("theorem x : f (α := Nat) = y := sorry", False),
        ("def x : p := by simp", False),
    ],
)
def test_an_option_that_is_computed_is_code(text: str, runs: bool) -> None:
    assert computes(text) is runs


def test_words_of_the_statement_are_not_held_against_anybody() -> None:
    statement = "theorem target (x : MetaM Unit) : x = x := sorry"
    assert screen("theorem target (x : MetaM Unit) : x = x := rfl")
    assert screen("theorem target (x : MetaM Unit) : x = x := rfl", allowed=parts(statement)) == []


def test_an_outright_cheat_stays_one_whatever_the_statement_says() -> None:
    assert screen("axiom x : False", allowed=parts("axiom y : True"))


def test_where_is_said_and_how_many_is_bounded() -> None:
    found = screen("\n  axiom x : p\n" * 100)
    assert len(found) == MOST_FINDINGS
    assert (found[0].line, found[0].column) == (2, 3)


@settings(max_examples=FROM_STRANGERS, deadline=None)
@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    screen(text)


@settings(max_examples=FROM_STRANGERS, deadline=None)
@given(st.lists(st.sampled_from(["@[", "]", "(", "set_option", "attribute", "[", "notation", '"x"', ",", "simp"])))
def test_no_mixture_of_its_own_words_breaks_it(pieces: list[str]) -> None:
    screen(" ".join(pieces))


@pytest.mark.parametrize(
    "piece",
    [
        "@[", "] theorem x ", "lemma x : ", "theorem x (", "«", "attribute [ a ", "/--", '"', "notation ", "#", "| ",
        "theorem x : | a => ", "open (\n", " open A\n", "open A in\n", "mutual ", "public ", "aesop (add ", "end\n",
        "theorem x : let ", "variable (a : b) in ", "namespace A ", "universe u\n", "include x in\n", "@[expose] ",
    ],
)  # fmt: skip
def test_reading_a_hostile_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    spec = LeanSpec(statement="universe u\nopen A\ninclude x in\ntheorem x : p := sorry")
    statement, took = read_statement(spec), []
    for length in (4_000, 32_000):
        text = (piece * length)[:length]
        began = time.process_time()
        every = list(words(text))
        screen(text, every)
        left = without_comments(text, every)
        assemble(spec, statement, commands.as_plain_file(left, without_room(every)), without_room(every))
        took.append(time.process_time() - began)
    assert took[1] < 40 * took[0] + 2.0, took
