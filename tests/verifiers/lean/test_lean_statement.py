"""A spec's Lean text, read: its theorem, what stands before it, and the files that are made of it."""

from __future__ import annotations

import pytest

from verifiers.contract.errors import SpecError
from verifiers.lean import commands
from verifiers.lean.lexer import code
from verifiers.lean.screening import ScreeningFinding
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import LeanStatement, read_statement
from verifiers.lean.submission import LeanSource, assemble


def read(text: str) -> LeanStatement:
    return read_statement(LeanSpec(statement=text))


def assembled(statement: str, submission: str, **spec: object) -> LeanSource | ScreeningFinding:
    found = LeanSpec.model_validate({"statement": statement} | spec)
    return assemble(found, read_statement(found), submission, code(submission))


def text_of(source: LeanSource | ScreeningFinding) -> str:
    assert isinstance(source, LeanSource)
    return source.text


def test_the_last_theorem_is_the_statement() -> None:
    found = read("theorem a : True := trivial\ntheorem b (n : Nat) : n = n := sorry")
    assert found.full_name == "b"
    assert found.says == ("(", "n", ":", "Nat", ")", ":", "n", "=", "n")


def test_namespaces_belong_to_its_name() -> None:
    assert read("namespace A.B\nsection\nsection S\nend S\ntheorem x : p := sorry\nend\nend A.B").full_name == "A.B.x"
    assert read("namespace A\nend A\nnamespace C\ntheorem x.y : p := sorry").full_name == "C.x.y"
    assert read("namespace A\ntheorem _root_.x : p := sorry").full_name == "x"
    assert read("namespace A.B.C\nend B.C\ntheorem x : p := sorry").full_name == "A.x"


def test_the_trusted_name_is_secret() -> None:
    [(module, text)] = read("theorem x.{u} (a : Type u) : a = a := sorry").files("mark")
    assert module == "AssayStatement"
    assert text.strip() == "theorem mark.{u} (a : Type u) : a = a := sorry"


@pytest.mark.parametrize(("name", "marked"), [("A.x", "A.m"), ("«a.b».«c d»", "«a.b».m"), ("_root_.B.x", "_root_.B.m")])
def test_the_trusted_name_has_the_namespaces_of_its_own(name: str, marked: str) -> None:
    found = read(f"namespace N\ntheorem {name} : p := sorry")
    [(_, text)] = found.files("m")
    assert f"theorem {marked} : p" in text
    full = marked.removeprefix("_root_.") if name.startswith("_root_") else f"N.{marked}"
    assert f"type_of% @{full} := @{found.full_name}\n" in found.check_file("m")
    assert f"type_of% @{full}) : True" in found.rest_file("m")


def test_a_statement_without_a_proof_gets_an_open_one() -> None:
    [(_, text)] = read("theorem x (a : p := by q) : a = a -- so\nend A").files("m")
    assert "theorem m (a : p := by q) : a = a := sorry" in text


@pytest.mark.parametrize(
    "proof", [":= sorry", ":= by\n  sorry", "\n  | 0 => rfl\n  | n + 1 => sorry", ":= by sorry -- := sorry"]
)
def test_a_proof_that_is_there_is_left(proof: str) -> None:
    assert read(f"theorem x : ∀ n : Nat, n = n {proof}").proved


def test_definitions_are_a_file_of_their_own() -> None:
    found = read("import A\nopen A\n\ndef f := 1\n\nvariable (n : Nat)\n\n@[simp]\ntheorem x : f = n := sorry\n")
    (first, definitions), (second, statement) = found.files("m")
    assert (first, second) == ("AssayDefinitions", "AssayStatement")
    assert "def f" in definitions
    assert "def f" not in statement
    assert statement.startswith("import A\nimport AssayDefinitions\n")
    assert "open A" in statement
    assert "variable (n : Nat)" in statement
    assert "@[simp]\ntheorem m" in statement


def test_a_command_that_only_holds_for_a_definition_stays_with_it() -> None:
    context, declares = commands.context("open A in\ndef f := 1\nset_option b true in\ntheorem y : p := q\nopen C\n")
    assert declares
    assert context == "open C\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no theorem"),
        ("def x := 1", "no theorem"),
        ("-- theorem x : p := sorry", "no theorem"),
        ("private theorem x : p := sorry", "private"),
        ("theorem x := sorry", "no type"),
        ("axiom a : False\ntheorem x : p := sorry", "axioms"),
        ("prelude\ntheorem x : p := sorry", "prelude"),
        ("module\ntheorem x : p := sorry", "module"),
        ("theorem x : p |--q := sorry", "two ways"),
    ],
)
def test_a_statement_that_nothing_can_be_made_of_is_refused(text: str, what: str) -> None:
    with pytest.raises(SpecError, match=what) as raised:
        read(text)
    assert raised.value.hint


def test_the_header_comes_before_the_submission() -> None:
    text = text_of(assembled("import A\nopen A\ntheorem x : p := sorry", "theorem x : p := q"))
    assert text == "import A\nopen A\ntheorem x : p := q"


def test_a_header_that_is_repeated_is_left_away_whatever_its_spaces() -> None:
    source = assembled(
        "import A\nopen A -- so\ndef f := 1\ntheorem x : p := sorry",
        "import A\n\n/- mine -/ open A\ndef  f :=\n 1\n\ntheorem x : p := q",
    )
    text = text_of(source)
    assert text.startswith("import A\nimport AssayDefinitions\nopen A")
    assert "def" not in text
    assert text.endswith("theorem x : p := q")
    assert isinstance(source, LeanSource)
    assert text.splitlines()[7 - source.line_shift - 1] == "theorem x : p := q"


def test_imports_are_the_statements_and_what_is_below_them() -> None:
    statement = "import Mathlib\ntheorem x : p := sorry"
    assert text_of(assembled(statement, "import Mathlib.Data.Nat.Basic\ntheorem x : p := q")).startswith(
        "import Mathlib\nimport Mathlib.Data.Nat.Basic\n"
    )
    for other in ("Lean", "MathlibX", "AssayStatement", "AssayDefinitions", "Batteries"):
        found = assembled(statement, f"import {other}\ntheorem x : p := q")
        assert isinstance(found, ScreeningFinding)
        assert not found.cheat
    assert text_of(assembled(statement, "import Batteries.Data\n", imports=("Batteries",)))


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("0", "200000"),
        ("100", "100"),
        ("900000", "200000"),
        ("0xFFFFFF", "200000"),
        ("1_0", "1_0"),
        ("9" * 50, "200000"),
    ],
)
def test_heartbeats_are_at_most_what_the_spec_allows(asked: str, given: str) -> None:
    text = text_of(assembled("theorem x : p := sorry", f"set_option maxHeartbeats {asked} in theorem x : p := q"))
    assert f"set_option maxHeartbeats {given} in" in text


def test_a_full_name_at_the_root_is_the_same_theorem() -> None:
    statement = "namespace A\ntheorem x : p := sorry\nend A"
    assert "namespace" not in text_of(assembled(statement, "theorem A.x : p := q"))
    assert "namespace A" in text_of(assembled(statement, "theorem x : p := q"))
