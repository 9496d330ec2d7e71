"""A spec's Lean text, read: its theorem, what stands before it, and the files that are made of it."""

from __future__ import annotations

import pytest
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.lean.reading.lexer import code
from verifiers.lean.reading.screening import ScreeningFinding
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
    text = read("theorem x.{u} (a : Type u) : a = a := sorry").trusted_file("mark")
    assert text == "theorem mark.{u} (a : Type u) : a = a := sorry\n"


@pytest.mark.parametrize(("name", "marked"), [("A.x", "A.m"), ("«a.b».«c d»", "«a.b».m"), ("_root_.B.x", "_root_.B.m")])
def test_the_trusted_name_has_the_namespaces_of_its_own(name: str, marked: str) -> None:
    found = read(f"namespace N\ntheorem {name} : p := sorry")
    assert f"theorem {marked} : p" in found.trusted_file("m")
    full = marked.removeprefix("_root_.") if name.startswith("_root_") else f"N.{marked}"
    assert f"type_of% @{full} := @{found.full_name}\n" in found.check_file("m")
    assert f"type_of% @{full}) : True" in found.rest_file("m")


@table(
    ("text", "trusted"),
    [
        ("theorem x (a : p := by q) : a = a -- so\nend A", "theorem m (a : p := by q) : a = a := sorry\n"),
        ("theorem x : p :=\n-- here\n", "theorem m : p := sorry\n"),
        ("theorem x : p := by\n", "theorem m : p := by sorry\n"),
        ("theorem x : let a := 2; a = b", "theorem m : let a := 2; a = b := sorry\n"),
        ("theorem x : a || b", "theorem m : a || b := sorry\n"),
        ("theorem x : |a| = b\n", "theorem m : |a| = b := sorry\n"),
        ("theorem x : |a| = b := by\n  sorry", "theorem m : |a| = b := by\n  sorry\n"),
        (
            "theorem x : ∀ n, n = n\n  | 0 => rfl\n  | n + 1 => sorry",
            "theorem m : ∀ n, n = n\n  | 0 => rfl\n  | n + 1 => sorry\n",
        ),
        ("theorem x : p := by sorry -- := sorry", "theorem m : p := by sorry\n"),
    ],
)
def test_a_proof_that_is_missing_is_left_open_and_one_that_is_there_is_left(text: str, trusted: str) -> None:
    assert read(text).trusted_file("m") == trusted


def test_the_statement_is_compiled_as_it_is_written_up_to_its_end() -> None:
    text = "import A\n\n/-- f -/\nprivate def f := 1\n\nopen A in\n/-- d -/\n@[simp] theorem x : f = 1 := sorry\n"
    found = read("\ufeff" + text.replace("\n", "\r\n") + "\n#check x\n")
    written = (
        text.replace("private", "").replace("@[simp] theorem x", " theorem m").replace("import A\n", "import A\n\n")
    )
    assert found.trusted_file("m") == written


def test_what_a_statement_declares_is_a_file_of_its_own() -> None:
    found = read(
        "import A\nopen A\n\ndef f := 1\nlocal instance : B := 2\nattribute [local simp] f\n/-- d -/\n@[simp]\n"
        "theorem x : f = n := sorry\n"
    )
    assert found.definitions_file() == (
        "import A\n\nopen A\n\ndef f := 1\n instance : B := 2\nattribute [local simp] f\n"
    )
    assert said(found) == ["open A", "attribute [local simp] f"]
    assert not read("open A\nvariable (n : Nat)\ntheorem x : p := sorry").defines


def said(found: LeanStatement) -> list[str]:
    return [found.source[command.start : command.end] for command in found.header.context]


@table(
    ("header", "context"),
    [
        ("open A in\ndef f := 1\nset_option b true in\ntheorem y : p := q\nopen C\n", ["open C"]),
        ("section\nvariable (n : Nat)\nend\nvariable (m : Nat)\n", ["variable (m : Nat)"]),
        ("namespace A\ndef f := 1\nend A\nopen A\n", ["open A"]),
        ("namespace A.B\nopen C\nend A.B\nnamespace D\nopen E\n", ["namespace D", "open E"]),
        ("noncomputable section\nuniverse u\n", ["noncomputable section", "universe u"]),
        ("mutual\ninductive A\ninductive B\nend\nopen C\n", ["open C"]),
        ('local notation "a" => b\nscoped notation "c" => d\n', ['local notation "a" => b']),
        ("attribute [-simp] a\nattribute [simp] b\n", ["attribute [-simp] a"]),
        ("theorem y : p := by\n  open A in exact b\n  set_option c true in\n  exact d\nopen B\n", ["open B"]),
        ("def f (n : Nat) :\n    Nat := (\nopen B\n", ["open B"]),
        ("structure S where\n  a : Nat\n  deriving Repr\nopen B (c)\n  hiding d\n", ["open B (c)\n  hiding d"]),
        ("  open A\n  variable (n : Nat)\n", ["open A", "variable (n : Nat)"]),
        (
            "open A\nassert_not_exists B\nvariable (n : Nat)\n  (m : Nat)\n",
            ["open A", "variable (n : Nat)\n  (m : Nat)"],
        ),
        ("open A\nunseal B in\ntheorem y : p := q\nopen C\n", ["open A", "open C"]),
        ("open A -- here\n/-- d -/\n-- more\n", ["open A"]),
    ],
)
def test_what_is_in_force_at_the_theorem_is_its_context(header: str, context: list[str]) -> None:
    assert said(read(header + "theorem x : p := sorry")) == context


@table(
    ("text", "what"),
    [
        ("", "no theorem"),
        ("def x := 1", "no theorem"),
        ("-- theorem x : p := sorry", "no theorem"),
        ("private theorem x : p := sorry", "private"),
        ("theorem x := sorry", "no type"),
        ("axiom a : False\ntheorem x : p := sorry", "axioms"),
        ("prelude\ntheorem x : p := sorry", "prelude"),
        ("theorem x : p |--q := sorry", "two ways"),
    ],
)
def test_a_statement_that_nothing_can_be_made_of_is_refused(text: str, what: str) -> None:
    with pytest.raises(SpecError, match=what) as raised:
        read(text)
    assert raised.value.hint


def test_the_context_comes_before_the_submission() -> None:
    text = text_of(assembled("import A\nopen A\ntheorem x : p := sorry", "theorem x : p := q"))
    assert text == "import A\nopen A\ntheorem x : p := q"


def test_a_header_that_is_repeated_is_left_away_whatever_its_spaces() -> None:
    source = assembled(
        "import A\nopen A -- so\ndef f := 1\ntheorem x : p := sorry",
        "import A\n\n/- mine -/ open A\ndef  f :=\n 1\n\ntheorem x : p := q",
    )
    text = text_of(source)
    assert text.startswith("import A\nimport AssayStatement\n")
    assert text.count("open A") == 1
    assert "def" not in text
    assert text.endswith("theorem x : p := q")
    assert isinstance(source, LeanSource)
    assert text.splitlines()[7 - source.line_shift - 1] == "theorem x : p := q"


CONTEXT = "universe u\nnamespace N\nopen A\nvariable (n : Nat)\n"
INCLUDED = "variable (n : Nat)\ninclude n in\n"


@table(
    ("statement", "submission", "compiled"),
    [
        (CONTEXT + "theorem x : p := sorry", CONTEXT + "theorem x : p := q", CONTEXT + "theorem x : p := q"),
        (
            CONTEXT + "theorem x : p := sorry",
            "open A\nopen B\ntheorem x : p := q",
            CONTEXT + "\nopen B\ntheorem x : p := q",
        ),
        (
            CONTEXT + "theorem x : p := sorry",
            "theorem N.x : p := q",
            CONTEXT + "theorem _root_.N.x : p := q",
        ),
        (
            CONTEXT + "theorem x : p := sorry",
            "theorem N.x.{u} : p := q",
            "namespace N\nopen A\ntheorem _root_.N.x.{u} : p := q",
        ),
        (
            CONTEXT + "theorem x : p := sorry",
            "section\nnamespace N\ntheorem x : p := q\nend N\nend",
            CONTEXT.replace("namespace N\n", "") + "section\nnamespace N\ntheorem x : p := q\nend N\nend",
        ),
        (
            CONTEXT + "theorem x : p := sorry",
            "namespace N\ntheorem x : p := q\nend N",
            CONTEXT + "\ntheorem x : p := q\nend N",
        ),
        (
            "open A in\ntheorem x : p := sorry",
            "theorem y : q := r\n@[simp] theorem x : p := q",
            "theorem y : q := r\nopen A in @[simp] theorem x : p := q",
        ),
        ("open A in\ntheorem x : p := sorry", "open B in theorem x : p := q", "open B in theorem x : p := q"),
        (
            INCLUDED + "theorem x : p := sorry",
            "theorem x : p := q",
            "variable (n : Nat)\ninclude n in theorem x : p := q",
        ),
        (
            INCLUDED + "theorem x : p := sorry",
            "theorem x (n : Nat) : p := q",
            "variable (n : Nat)\ntheorem x (n : Nat) : p := q",
        ),
    ],
)  # fmt: skip
def test_a_submission_goes_on_where_the_header_ends(statement: str, submission: str, compiled: str) -> None:
    assert text_of(assembled(statement, submission)) == compiled


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


def test_heartbeats_may_be_as_many_as_the_statement_sets() -> None:
    statement = "set_option maxHeartbeats 400000 in\ntheorem x : p := sorry"
    for asked, given in (("400000", "400000"), ("900000", "400000"), ("0", "400000")):
        text = text_of(assembled(statement, f"set_option maxHeartbeats {asked} in theorem x : p := q"))
        assert f"set_option maxHeartbeats {given} in" in text


def test_a_full_name_at_the_root_is_the_same_theorem() -> None:
    statement = "namespace A\ntheorem x : p := sorry\nend A"
    assert "namespace A\ntheorem _root_.A.x" in text_of(assembled(statement, "theorem A.x : p := q"))
    assert "namespace A" in text_of(assembled(statement, "theorem x : p := q"))
