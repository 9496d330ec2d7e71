"""What looks the same and means something else never passes; what is written otherwise and means the same does."""

from __future__ import annotations

import pytest
from tables import table

from verifiers.answers.spec import AnswerSpec
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground
from verifiers.registry import decide

P, R, U = Ground.PROVED, Ground.REFUTED, Ground.UNKNOWN

CASE = [
    (r"\text{CO}", "Co", R), (r"\text{Cs}", "CS", R), (r"\text{NaCl}", "NaCL", R), (r"\text{pH}", "PH", R),
    (r"\text{Aa}", "aa", R), (r"\text{AABB}", "aabb", R), (r"\text{plan A}", "plan a", R),
    (r"\text{On time}", "on time", P), (r"\text{No}", "NO", P), (r"\text{McKay}", "mckay", P),
    (r"\text{A circle}", "a circle", P), (r"\text{CO}", "CO", P),
]  # fmt: skip
SUMS = [
    (r"-\frac15", r"\sum_{k=-5}^{\infty}\frac{1}{k(k+1)}", U), ("e", r"\sum_{k=-1}^{\infty}\frac{1}{k!}", U),
    ("n+1", r"\sum_{k=0}^{n}\frac{k}{k}", U), ("2995", r"\sum_{k=1}^{2995}\frac{k-7}{k-7}", U),
    ("1", r"\prod_{k=0}^{\infty}\frac{k}{k}", U), ("1", r"\sum_{k=1}^{\infty}\frac{1}{k(k+1)}", P),
    ("e", r"\sum_{k=0}^{\infty}\frac{1}{k!}", P), (r"\frac34", r"\sum_{k=2}^{\infty}\frac{1}{k^2-1}", P),
    (r"\frac{n}{n+1}", r"\sum_{k=1}^{n}\frac{1}{k(k+1)}", P),
    (r"\frac{n}{2n+1}", r"\sum_{k=1}^{n}\frac{1}{4k^2-1}", P),
]  # fmt: skip
UNKNOWN_FUNCTIONS = [
    (r"f(\frac{\pi}{4})", r"f(\arctan 1)", U), ("3", "f(2)", U), (r"\frac{\pi^2}{6}", r"\zeta(2)", P),
    ("f(x)+1", "f(x)+2", R), ("f(x)+1", "1+f(x)", P),
]  # fmt: skip
REAL = [
    (r"\sqrt{x^3}", r"x\sqrt{x}", P), (r"\sqrt{x^3}", r"-x\sqrt{x}", R), (r"\ln\frac1x", r"-\ln x", P),
    (r"\ln x^2", r"2\ln x", R), (r"\ln((x+1000)^2)", r"2\ln(x+1000)", U), (r"\sqrt{(x-1)^3}", r"(x-1)\sqrt{x-1}", P),
    (r"\sqrt{(1-x)^3}", r"(x-1)\sqrt{1-x}", R), (r"\sqrt{(x^2-1)^3}", r"(x^2-1)\sqrt{x^2-1}", P),
    (r"-\ln\frac{b}{a}", r"\ln\frac{a}{b}", P), (r"\ln\frac ab", r"\ln a-\ln b", U), (r"\ln(ab)", r"\ln a+\ln b", R),
    (r"\sqrt{x^3+x^2}", r"|x|\sqrt{x+1}", P), (r"\sqrt{x^3+x^2}", r"x\sqrt{x+1}", R), (r"\sqrt{x^2}", "x", R),
    (r"\sqrt{-x^3}", r"-x\sqrt{-x}", P), (r"\ln(-x)", r"\ln x", R), ("e^{ix}", r"\cos x-i\sin x", R),
]  # fmt: skip
FUNCTIONS = [
    (r"\operatorname{arccot}(-1)", r"\frac{3\pi}{4}", P), (r"\operatorname{arccot}(-1)", r"-\frac{\pi}{4}", R),
    (r"\arg(-1-i)", r"-\frac{3\pi}{4}", P), (r"\arg(-1-i)", r"\frac{5\pi}{4}", R),
    (r"\operatorname{sgn}(x)^2", "1", R), (r"x\operatorname{sgn} x", "|x|", P),
    (r"\Gamma(\frac72)", r"\frac{15\sqrt\pi}{8}", P), (r"\Gamma(n+1)", "n!", P), (r"\Gamma(n)", "n!", R),
    (r"\lfloor -x\rfloor", r"-\lceil x\rceil", P), (r"\lfloor x+3\rfloor", r"\lfloor x\rfloor+3", P),
    (r"\lfloor x+\frac12\rfloor", r"\lfloor x\rfloor", R), (r"\arccos(-x)", r"\pi-\arccos x", P),
    (r"\max(a,b)", r"\max\{b,a\}", P), (r"\max(a,b)", r"\min(a,b)", R),
]  # fmt: skip
COMPLEX = [
    (r"\operatorname{Re} z", "z", R), (r"\operatorname{conj}(z)", "z", R), (r"\operatorname{Im} z", "0", R),
    (r"\operatorname{Re} z", r"\frac{z+\bar z}{2}", P), (r"|z|^2", r"z\overline{z}", P), (r"|z|^2", "z^2", R),
    ("z^*", r"\bar z", P), (r"\operatorname{Re}(z^2)", r"(\operatorname{Re} z)^2", R),
]  # fmt: skip
UNITS = [
    (r"\pi hr^2", r"\pi r^2 h", P), (r"\pi hr^2", r"\pi rh^2", R), (r"\frac{3mg}{2}", r"1.5mg", P),
    ("3 mg", "0.003 g", P), (r"\frac{3mg}{2}", r"1.5\text{ mg}", R), (r"9\pi cm^2", r"9\pi\text{ cm}^2", P),
    (r"r^2 h", r"h r^2", P), (r"12\ \mu m", "0.012 mm", P), (r"\mu mg", r"mg\mu", P),
    (r"47 k\Omega", r"47000\text{ ohm}", P), (r"2\mu g", r"2g\mu", P), (r"47 k\Omega", r"47\text{ ohm}", R),
    (r"8\text{ pF}", r"8\times10^{-12}\text{ F}", P), ("2\\psi", r"\psi\cdot 2", P),
    (r"32\text{ psi}", r"32\text{ lbf/in}^2", P), (r"760\text{ mmHg}", r"760\text{ torr}", R),
]  # fmt: skip
NAMES = [
    (r"P(X=2)=\frac14", "0.25", P), (r"P(X=2)=\frac14", r"P(X=3)=\frac14", R),
    (r"\angle ABC=60^\circ", r"60^\circ", P), (r"\angle ABC=60^\circ", r"\angle ABD=60^\circ", R),
    ("x_1=2, x_2=3", r"x=3\text{ or }x=2", P), ("2, 3", "x_1=3, x_2=2", P), ("x_1=2, x_2=3", "x_1=3, x_2=2", R),
    ("x_1=2, x_2=3", "2, 3", R), ("2, 3", "x=2, y=3", Ground.UNFINISHED), ("PV=nRT", r"T=\frac{PV}{nR}", P),
    ("PV=nRT", r"T=\frac{nR}{PV}", R), (r"3\mathbf i-\mathbf k", "(3,0,-1)", P),
    (r"3\mathbf i-\mathbf k", "(3,-1,0)", R), ("(3,-1)", "3i-j", Ground.UNFINISHED),
    (r"-\infty<x<\infty", r"\mathbb R", P), ("(-\\infty,0)U(2,\\infty)", "x<0 or x>2", P),
]  # fmt: skip


@table(("gold", "answer", "ground"), CASE + REAL + UNITS + NAMES)
def test_an_answer_says_what_it_means_and_nothing_else(gold: str, answer: str, ground: Ground) -> None:
    assert decide(AnswerSpec(expected=gold), answer).ground is ground


@table(("gold", "answer", "ground"), SUMS + FUNCTIONS + UNKNOWN_FUNCTIONS)
def test_a_value_that_is_left_to_be_computed_is_the_value_that_it_has(gold: str, answer: str, ground: Ground) -> None:
    assert decide(AnswerSpec(expected=gold, form="equal"), answer).ground is ground


@table(("gold", "answer", "ground"), COMPLEX)
def test_a_complex_symbol_is_not_its_conjugate(gold: str, answer: str, ground: Ground) -> None:
    assert decide(AnswerSpec(expected=gold, domain="complex"), answer).ground is ground


@pytest.mark.parametrize(
    "gold", [r"\overline{x+1}", r"\boxed 5^2", r"\angle", "5 or", r"\begin{pmatrix}1\\2\end{pmatrix}^2"]
)
def test_what_is_not_clear_is_no_expected_answer(gold: str) -> None:
    with pytest.raises(SpecError):
        decide(AnswerSpec(expected=gold), "1")


@pytest.mark.parametrize(("text", "passed"), [(r"So \boxed 5.", True), (r"\boxed 25", True), (r"\boxed 5^2", False)])
def test_a_box_without_braces_holds_the_digits_behind_it(text: str, passed: bool) -> None:
    assert decide(AnswerSpec(expected="25" if "2" in text else "5", final="boxed"), text).passed is passed


def test_an_infinity_is_not_the_other_one() -> None:
    spec = AnswerSpec(expected=r"-\infty")
    assert [decide(spec, text).ground for text in (r"-\infty", r"\infty")] == [P, R]
