"""What an answer settles about the expected one, and where that ends: bare formulas, units, counts, bases."""

from __future__ import annotations

import time

import pytest
from tables import table

from verifiers.answers.grammar.reading.read_answer import formula
from verifiers.answers.grammar.words import loose_words
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground
from verifiers.registry import decide

BARE = [
    ("y=2x+1", "2x+1"), (r"v=\sqrt{2gh}", r"\sqrt{2gh}"), ("x=a+b", "b+a"),
    (r"A=\pi r^2", r"\pi r^2"), ("F=ma", "ma"),
    ("v=v_0+at", "v_0+at"), (r"E_k=\frac12mv^2", r"\frac{mv^2}{2}"), (r"\theta=\arctan\frac vu", r"\arctan\frac vu"),
    (r"R_{eq}=\frac{R_1R_2}{R_1+R_2}", r"\frac{R_1R_2}{R_1+R_2}"), ("KE=mgh", "mgh"), (r"\vec F=q\vec E", r"q\vec E"),
]  # fmt: skip
RELATIONS = [
    ("x_1=2x_2", "2x_2"), ("v_{max}=2v_{min}", "2v_{min}"), ("a_{n+1}=2a_n", "2a_n"), ("y'=2y", "2y"), ("x=y", "y"),
    ("x=y", "x"), ("y<2x", "2x"), ("PV=nRT", "nRT"), ("x+y=5z", "5z"), ("y=x+1, z=x-1", "x+1"), ("y=x+1", "x"),
    ("y=2x+1", "2y+1"), ("x=2x^2-1", "2x^2-1"), ("a=b=2c", "2c"), (r"y\ne 2x", "2x"), ("y=2x+1", "2x+1=0"),
]  # fmt: skip
LETTERS = [
    ("0.5 T", "500 mT"), (r"1.5\times10^3 J", "1.5 kJ"),
    (r"1.5\times10^{3} J", r"1500\ \text{J}"), ("3 F", "3000 mF"),
    ("3 C", r"3\ \text{C}"), ("B = 0.5 T", r"0.5\text{ T}"), ("5 C/s", r"5\text{ A}"),
]  # fmt: skip
NOT_LETTERS = [
    ("0.5T", "500 mT"), ("0.5 T", "50 mT"), ("0.5 T", r"0.5\text{ C}"),
    ("2 T x", r"2\text{ T}"), ("T", r"1\text{ T}"),
    (r"\frac{3 T}{2}", r"1.5\text{ T}"), ("0.5 T", "0.5"),
]  # fmt: skip
COUNTS = [
    ("18", "$18"), ("18", r"\$18.00"), ("18", "18 dollars"), ("$18", "18"), ("18 USD", "18"), ("12", "12 people"),
    ("12", r"12\text{ ways}"), ("12 people", "12"), ("18, 20", r"\$20, \$18"), ("70000", "$70,000"), ("-3", "-$3"),
]  # fmt: skip
NOT_COUNTS = [
    ("18", "18 cents"), ("18 cents", "18"), ("18", "€18"),
    ("18", "$1.80"), ("18", "$18 per hour"), ("12", "12 dozen"),
    ("12", "12 pairs"), ("2", "2 solutions"), ("3", "3 roots"), ("12", "12 hours"), ("12 hours", "12"),
    ("2.5", "2.5 people"), ("12", "12%"), ("12 people", "12 books"),
    ("x", "$x"), ("12x", "12x people"), ("12", "13 people"), ("12 oz", "12"), (r"\$18", "€18"), ("12 pairs", "12"),
]  # fmt: skip
FORMULAS = [
    ("CaCO_3", r"\text{CaCO}_3"), (r"\text{Fe}_2\text{O}_3", "Fe_2O_3"),
    (r"\mathrm{H_2O}", "H2O"), ("CO_2", r"\text{CO}_2"),
    (r"\mathrm{SO_4^{2-}}", r"\text{SO}_4^{2-}"), ("Na^+", r"\text{Na}^{+}"), (r"\ce{Ca(OH)2}", "Ca(OH)_2"),
    (r"\text{CuSO}_4\cdot 5\text{H}_2\text{O}", r"CuSO_4 \cdot 5 H_2O"),
    (r"C_{6}H_{12}O_{6}", r"\mathrm{C_6H_{12}O_6}"),
    ("2-butene", r"\text{2-butene}"), (r"\det A", r"\det(A)"), (r"\operatorname{tr} A", r"\mathrm{tr}(A)"),
    (r"(\det A)^2", r"\det(A)\det A"), ("pH=7.4", "7.4"), ("pK_a=4.7", "4.7"),
]  # fmt: skip
NOT_FORMULAS = [
    ("CaCO_3", r"\text{CaCO}_2"), (r"\mathrm{CO_2}", "Co_2"), (r"\mathrm{NO_2}", "No_2"),
    ("Na^+", "Na"), ("Na^+", "Na^-"),
    (r"\ce{Ca(OH)2}", "CaOH_2"), (r"\mathrm{H_2O}", "OH_2"), ("Fe^{2+}", "Fe^{3+}"), ("CuSO_4", r"CuSO_4\cdot5H_2O"),
    ("2-butene", "1-butene"), ("2-butene", "2-butyne"), (r"\det A", r"\det B"),
    (r"\det A", "A"), (r"\det A", r"\operatorname{tr} A"),
    ("pH=7.4", "pOH=7.4"),
]  # fmt: skip
ABOUT = [("3.14", r"\approx 3.14"), (r"\approx 3.14", "3.14"), (r"x\approx 2.35", "2.35"), ("2.35", "x ≈ 2.35"),
         (r"\approx 9.8\text{ m/s}", r"9.8\text{ m/s}"), ("t=4.5", r"t\approx4.5")]  # fmt: skip
NOT_ABOUT = [
    (r"\pi", r"\approx 3.14"), (r"\approx 3.14", r"\pi"), ("3.14159", r"\approx 3.14"), ("3.14", r"\approx 3.1"),
    (r"\frac13", r"x\approx 0.33"), (r"\approx 0.33", r"\frac13"),
    ("3", r"\approx\frac{6}{2}"), ("t=4.5", r"s\approx4.5"),
]  # fmt: skip


@table(("gold", "answer"), BARE + LETTERS + COUNTS + FORMULAS + ABOUT)
def test_what_is_said_by_custom_passes(gold: str, answer: str) -> None:
    assert decide(AnswerSpec(expected=gold), answer).ground is Ground.PROVED


@table(("gold", "answer"), RELATIONS + NOT_LETTERS + NOT_COUNTS + NOT_FORMULAS + NOT_ABOUT)
def test_what_only_looks_so_does_not(gold: str, answer: str) -> None:
    assert not decide(AnswerSpec(expected=gold), answer).passed


@table(
    ("gold", "answer", "form", "passed"),
    [
        ("12_8", "10", "worked_out", False), ("12_8", "12_8", "worked_out", True),
        ("12_8", "12_{\\text{eight}}", "worked_out", True),
        ("12_8", "20_5", "worked_out", False), ("10", "12_8", "worked_out", False),
        ("100_{10}", "100", "worked_out", True),
        ("12_8", "10", "equal", True), ("10", "12_8", "equal", True), ("12_8", "12", "equal", False),
    ],
)  # fmt: skip
def test_a_numeral_is_in_the_base_that_was_asked_for_unless_any_form_will_do(
    gold: str, answer: str, form: str, passed: bool
) -> None:
    assert decide(AnswerSpec.model_validate({"expected": gold, "form": form}), answer).passed is passed


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (r"p \to q", "an arrow"), (r"p \implies q", "logic"),
        (r"\det(AB)", "one letter"), (r"\det A^2", "one letter"),
        (r"\det 2A", "one letter"), (r"\operatorname{rank} A B", "one letter"), (r"\approx \pi", "not a decimal"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_by_its_name(gold: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        decide(AnswerSpec(expected=gold), "1")


@table("text", ["CO_2", "C_1C_2", "V_1I_2", "N_0", "(a+b)_2", "H", "CO", "In", "P", "x^+", "A_2B", "Ca()_2", "C)_2("])
def test_what_may_be_a_product_is_no_formula_by_itself(text: str) -> None:
    assert formula(text) is None


@pytest.mark.parametrize(
    "text", ["Ca(" * 40, "CaO" * 39 + "_", "1,2-" + "-2" * 140 + "x", "1-" + "ane" * 90 + "!", r"\text{" * 30 + "Ca"]
)
def test_long_texts_of_elements_and_places_end_in_no_time(text: str) -> None:
    started = time.process_time()
    assert formula(text) is None
    loose_words(text)
    assert time.process_time() - started < 0.5
