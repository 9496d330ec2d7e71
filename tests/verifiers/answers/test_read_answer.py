"""What people write as an answer is read as they mean it; what can be meant in two ways is refused or settled."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from fractions import Fraction

import pytest
from reading_kit import shown

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import Number, symbols
from verifiers.answers.grammar.wrapping import boxed
from verifiers.answers.read_answer import read_answer
from verifiers.answers.values import Scalar

NUMBERS = {
    "1,000,000": "1000000",
    "1{,}000": "1000",
    r"1\,000\,000": "1000000",
    r"10,\!000": "10000",
    "1 000 000": "1000000",
    r"1\frac{1}{2}": "3/2",
    "1 1/2": "3/2",
    "-1 1/2": "-(3/2)",
    "2 3/4": "11/4",
    r"\dfrac{1}{2}": "(1/2)",
    r"\tfrac12": "(1/2)",
    r"0.\overline{3}": "1/3",
    "0.(3)": "1/3",
    r"0.1\dot{6}": "1/6",
    r"0.\dot{1}2\dot{3}": "41/333",
    "1.2e-3": "3/2500",
    "$5$": "5",
    "101_2": "101 base 2",
    "1A_{16}": "1A base 16",
    "(101)_2": "101 base 2",
    r"101_{\text{two}}": "101 base 2",
    "FF_{16}": "0FF base 16",
    r"\infty": "oo",
    r"-\infty": "-oo",
    r"\boxed{5}": "5",
    r"$\boxed{5}$.": "5",
    r"\( 5 \)": "5",
    "5.": "5",
    "½": "(1/2)",
    "3½": "7/2",
    "1/0": "(1/0)",
    r"-\frac{1}{2}": "-((1/2))",
    r"\frac{-1}{2}": "(-(1)/2)",
    "{5}": "5",
    "1e5": "100000",
    r"$\frac{1}{2}$.": "(1/2)",
    "(((1)))": "1",
    "101₂": "101 base 2",
    "１２": "12",
    "–5": "-(5)",
    "inf": "oo",
    "infinity": "oo",
    "-oo": "-oo",
    "1.5 million": "1500000",
    "3 hundred": "300",
    "**42**": "42",
}

EXPRESSIONS = {
    r"1.2 \times 10^{-3}": "(6/5*10^-(3))",
    "1.2 x 10^3": "(6/5*10^3)",
    r"\sin(30 degrees)": "sin[(30*(pi/180))]",
    r"\sin 30^\circ": "sin[(30*(pi/180))]",
    "2+3i": "(2+(3*i))",
    "3i+2": "((3*i)+2)",
    "-i": "-(i)",
    r"\begin{vmatrix}1&2\\3&4\end{vmatrix}": "((1*4)+-((2*3)))",
    r"\sin^2 x": "sin[x]^2",
    r"\sin^{-1} x": "asin[x]",
    r"\arcsin x": "asin[x]",
    r"\ln 2": "ln[2]",
    r"\log_{10} 100": "log[100,10]",
    r"\lg 100": "log[100,10]",
    r"\exp(2)": "exp[2]",
    "|x|": "abs[x]",
    "|-3|": "abs[-(3)]",
    r"\lfloor 3.5 \rfloor": "floor[7/2]",
    "5!": "factorial[5]",
    r"\binom{5}{2}": "binomial[5,2]",
    r"\sqrt[3]{x}": "root[x,3]",
    r"\gcd(4,6)": "gcd[4,6]",
    r"\max(1,2)": "max[1,2]",
    r"\operatorname{lcm}(4,6)": "lcm[4,6]",
    r"\[ x^2 \]": "x^2",
    r"2\pi r": "(2*pi*r)",
    "2(x+1)": "(2*(x+1))",
    "(x+1)(x-1)": "((x+1)*(x+-(1)))",
    "f(2)": "f[2]",
    "f'(x)": "f'[x]",
    "x_1": "x_1",
    "x'": "x'",
    r"4\sqrt(2)": "(4*sqrt[2])",
    "2^{10}": "2^10",
    "x²+1": "(x^2+1)",
    "√2/2": "(sqrt[2]/2)",
    "π/2": "(pi/2)",
    "α+β": "(alpha+beta)",
    "2x y": "(2*x*y)",
    "xy": "(x*y)",
    "abc": "(a*b*c)",
    "3xyz": "(3*x*y*z)",
    r"\frac{3}{4}\pi": "((3/4)*pi)",
    r"3/4 \pi": "((3/4)*pi)",
    "a_{n+1}": "a_n+1",
    r"\int_0^1 x^2\,dx": "integral[x^2,x,0,1]",
    r"\int_{0}^{\pi} \sin x \, dx": "integral[sin[x],x,0,pi]",
    r"\sum_{k=1}^{n} k": "sum[k,k,1,n]",
    r"\lim_{x\to\infty} \frac{1}{x}": "limit[(1/x),x,infinity]",
    r"e^{i\pi}": "e^(i*pi)",
    "e^x": "e^x",
    "xe^x": "(x*e^x)",
    "2e^{3x}": "(2*e^(3*x))",
    r"\mathbf{i}+2\mathbf{j}": "(bold i+(2*bold j))",
    r"2\hat{i}-3\hat{j}": "((2*hat i)+-((3*hat j)))",
    r"\vec{v}": "vec v",
    r"\frac{x+1}{x-1}": "((x+1)/(x+-(1)))",
    "x^{1/2}": "x^(1/2)",
    r"\sqrt{x^2+1}": "sqrt[(x^2+1)]",
    r"\sqrt{2}\sqrt{3}": "(sqrt[2]*sqrt[3])",
    "2x+C": "((2*x)+C)",
    r"\ln|x|+C": "(ln[abs[x]]+C)",
    "n(n+1)/2": "((n*(n+1))/2)",
    r"\frac{n(n+1)}{2}": "((n*(n+1))/2)",
    "2^n-1": "(2^n+-(1))",
    r"k\pi": "(k*pi)",
    "(x+1)/2": "((x+1)/2)",
    "3 × 10^8": "(3*10^8)",
    r"a+b\sqrt{2}": "(a+(b*sqrt[2]))",
    "x^{-1}": "x^-(1)",
    r"\sin\frac{\pi}{3}": "sin[(pi/3)]",
    r"\sin{2x}": "sin[(2*x)]",
    r"\sqrt{x}": "sqrt[x]",
    r"\frac{1}{\sin x}": "(1/sin[x])",
    r"\frac12x": "((1/2)*x)",
    r"\log_3(9)": "log[9,3]",
    r"\log_{2}{8}": "log[8,2]",
    "log(2)": "ln[2]",
    "ln(x)/2": "(ln[x]/2)",
    "sqrt(2)/2": "(sqrt[2]/2)",
    "sqrt2": "sqrt[2]",
    "2*sqrt(3)": "(2*sqrt[3])",
    "pi/4": "(pi/4)",
    "2pi": "(2*pi)",
    "2*pi*r": "(2*pi*r)",
    "2pi r": "(2*pi*r)",
    "e^(2x)": "e^(2*x)",
    "x**2": "x^2",
    "(1/2)x": "((1/2)*x)",
    "a/b": "(a/b)",
    "10!": "factorial[10]",
    "n!": "factorial[n]",
    "i^2": "i^2",
    "(2+3i)(1-i)": "((2+(3*i))*(1+-(i)))",
    r"2\cdot3": "(2*3)",
    r"x\cdot y": "(x*y)",
    "-x^2": "-(x^2)",
    "x^{2y}": "x^(2*y)",
    r"\overline{AB}": "overline AB",
    r"\sqrt[3]{2}": "root[2,3]",
    "∛8": "root[8,3]",
    r"\frac{\pi}{6}+2k\pi": "((pi/6)+(2*k*pi))",
    "4π": "(4*pi)",
    "2√3": "(2*sqrt[3])",
    "3√2/2": "((3*sqrt[2])/2)",
    "√(x+1)": "sqrt[(x+1)]",
    "2×3": "(2*3)",
    "x⁻¹": "x^-(1)",
    "10⁻³": "10^-(3)",
    "x₁": "x_1",
    "½x": "((1/2)*x)",
    "𝑥+1": "(x+1)",
    "a'": "a'",
    "i": "i",
    "e": "e",
    "x": "x",
    "(c)": "c",
    "(i)": "i",
    "x y z": "(x*y*z)",
    "ab+bc+ca": "((a*b)+(b*c)+(c*a))",
    "5x": "(5*x)",
    "x5": "(x*5)",
    "x2": "(x*2)",
    "2 t^{2} + 1": "((2*t^2)+1)",
    "2 t": "(2*t)",
    "2 t^{2}": "(2*t^2)",
    "3 m + 2": "((3*m)+2)",
    "2 m v": "(2*m*v)",
    r"\frac{d}{dx}x^3": "derivative[x^3,x]",
    r"\frac{d}{dx}(x^3+1)": "derivative[(x^3+1),x]",
    r"\frac{d}{dx}\sin x": "derivative[sin[x],x]",
    r"\frac{dy}{dx}": "dy/dx",
    r"\frac{d}{2}": "(d/2)",
}

QUANTITIES = {
    r"50\%": "50 %",
    "50%": "50 %",
    "50 percent": "50 percent",
    r"30^\circ": "30 degree",
    "30°": "30 degree",
    "30 degrees": "30 degree",
    "5 cm": "5 cm",
    "5cm": "5 cm",
    r"3\text{ m/s}^2": "3 m s^-2",
    r"5\,\mathrm{kg\,m^2}": "5 kg m^2",
    "9.8 m/s^2": "49/5 m s^-2",
    r"9.8\ \text{m}\,\text{s}^{-2}": "49/5 m s^-2",
    r"\$5": "5 $",
    "$5": "5 $",
    "5 dollars": "5 dollars",
    "3 hours": "3 hours",
    "60 miles per hour": "60 miles hour^-1",
    r"25\text{ square feet}": "25 feet^2",
    "100 km/h": "100 km h^-1",
    r"x=\pm 2": "(x == 2) or (x == -(2))",
    "x=1 or x=2": "(x == 1) or (x == 2)",
    "x=1, x=2": "(x == 1) or (x == 2)",
    "x=1, y=2": "(x == 1) and (y == 2)",
    "x = 1, 2": "(x == 1) or (x == 2)",
    "y=2x+1": "y == ((2*x)+1)",
    "f(x)=x^2+1": "f[x] == (x^2+1)",
    "P(x)=x^2": "P[x] == x^2",
    "a_n = 2n+1": "a_n == ((2*n)+1)",
    "x^2+y^2=1": "(x^2+y^2) == 1",
    "2x+3y-5=0": "((2*x)+(3*y)+-(5)) == 0",
    "(x-1)^2+(y-2)^2=9": "((x+-(1))^2+(y+-(2))^2) == 9",
    "x=5 or 6": "(x == 5) or (x == 6)",
    r"2\sqrt{3}\text{ cm}": "(2*sqrt[3]) cm",
    r"5\text{ apples}": "5 apples",
    "12 units": "12 units",
    r"24\pi \text{ square units}": "(24*pi) units^2",
    "3*10^8 m/s": "(3*10^8) m s^-1",
    "-5°C": "-(5) degC",
    "25 °C": "25 degC",
    r"98.6^\circ\text{F}": "493/5 degF",
    r"1.5 \times 10^{3} \text{ kg}": "(3/2*10^3) kg",
    r"\frac{dy}{dx}=2x": "dy/dx == (2*x)",
    "x = 3, y = -2": "(x == 3) and (y == -(2))",
    "x=1,2,3": "(x == 1) or (x == 2) or (x == 3)",
    r"x = 1 \text{ or } x = -1": "(x == 1) or (x == -(1))",
    "$x=1$ or $x=2$": "(x == 1) or (x == 2)",
    "$5$ cm": "5 cm",
    "x=y=1": "x == y == 1",
    "x+y=1 and x-y=2": "((x+y) == 1) and ((x+-(y)) == 2)",
    "5 m": "5 m",
    "5 m/s": "5 m s^-1",
    "5 kg m/s": "5 kg m s^-1",
    "5 J/(kg K)": "5 J kg^-1 K^-1",
    r"10\%": "10 %",
    r"12.5\%": "25/2 %",
    "-3°": "-(3) degree",
    r"\frac{\pi}{3} \text{ radians}": "(pi/3) radians",
    "1.5 h": "3/2 h",
    "15 in": "15 in",
    "3 min": "3 min",
    "1 + 2 m": "(1+2) m",
    r"\$1,000,000": "1000000 $",
    r"-\$5": "-(5) $",
    "£5": "5 £",
    "€5": "5 €",
    "5€": "5 €",
    "5 USD": "5 USD",
    r"\text{5 cm}": "5 cm",
    r"5~\text{cm}^2": "5 cm^2",
    r"5\ \mathrm{cm}^{3}": "5 cm^3",
    "5 cm^3": "5 cm^3",
    "5 cm²": "5 cm^2",
    "5 cubic meters": "5 meters^3",
    "5 meters squared": "5 meters^2",
    "40 mph": "40 mph",
    "1/3 hour": "(1/3) hour",
    "2 dozen": "2 dozen",
    "4π cm²": "(4*pi) cm^2",
    "θ=π/3": "theta == (pi/3)",
    "5 sq ft": "5 ft^2",
    "5 apples": "5 apples",
    "1/2 cup": "(1/2) cup",
    "5 m^2": "5 m^2",
    "5 m^2/s": "5 m^2 s^-1",
    "3 s": "3 s",
    "2 million dollars": "2000000 dollars",
    "9 N m": "9 N m",
    r"9 N\cdot m": "9 N m",
}

SEVERAL = {
    r"\pm 2": "list(2, -(2))",
    r"1\pm\sqrt{2}": "list((1+sqrt[2]), (1+-(sqrt[2])))",
    "(1,2)": "tuple(1, 2)",
    "(1, -2, 3)": "tuple(1, -(2), 3)",
    r"\langle 1,2\rangle": "tuple(1, 2)",
    "1, 2 and 3": "list(1, 2, 3)",
    "1,2,3": "list(1, 2, 3)",
    "[[1,2],[3,4]]": "matrix(1, 2; 3, 4)",
    r"\begin{array}{cc}1&2\\3&4\end{array}": "matrix(1, 2; 3, 4)",
    r"\frac12\begin{pmatrix}1\\2\end{pmatrix}": "matrix(((1/2)*1); ((1/2)*2))",
    r"\left(\frac{1}{2}, \frac{3}{4}\right)": "tuple((1/2), (3/4))",
    r"x = \frac{\pi}{2} + n\pi, n \in \mathbb{Z}": "list(x == ((pi/2)+(n*pi)), all n in set Z)",
    "(x,y)=(1,2)": "tuple(x, y) := tuple(1, 2)",
    "5 or 6": "list(5, 6)",
    "[1,2,3]": "tuple(1, 2, 3)",
    "0,5": "list(0, 5)",
    "12,34": "list(12, 34)",
    "1, 234": "list(1, 234)",
    "(1,234)": "tuple(1, 234)",
    "[[1,2,3],[4,5,6]]": "matrix(1, 2, 3; 4, 5, 6)",
    "(|x|, 2)": "tuple(abs[x], 2)",
    "(1,2), (3,4)": "list(tuple(1, 2), tuple(3, 4))",
    "(1,2) and (3,4)": "list(tuple(1, 2), tuple(3, 4))",
    r"\begin{bmatrix} 1 \\ 2 \end{bmatrix}": "matrix(1; 2)",
    r"\begin{pmatrix}a&b\\c&d\end{pmatrix}": "matrix(a, b; c, d)",
    "((1,2))": "tuple(1, 2)",
    "((1,2),(3,4))": "tuple(tuple(1, 2), tuple(3, 4))",
    "1+2i, 1-2i": "list((1+(2*i)), (1+-((2*i))))",
    r"1 \pm 2i": "list((1+(2*i)), (1+-((2*i))))",
    r"\frac{1\pm\sqrt{5}}{2}": "list(((1+sqrt[5])/2), ((1+-(sqrt[5]))/2))",
    r"(\pm 1, 0)": "list(tuple(1, 0), tuple(-(1), 0))",
    r"(\begin{pmatrix}1&2\end{pmatrix})": "matrix(1, 2)",
    r"\left(\begin{pmatrix}1\\2\end{pmatrix}\right)": "matrix(1; 2)",
    "10, 007": "list(10, 7)",
}

SETS = {
    r"\{1,2,2\}": "{1, 2, 2}",
    "{1,2}": "{1, 2}",
    r"\emptyset": "{}",
    r"\varnothing": "{}",
    r"\{\}": "{}",
    "∅": "{}",
    r"(-\infty, 3]": "]-oo, 3]",
    "[0,1)": "[0, 1[",
    "]0,1[": "]0, 1[",
    r"(0,1)\cup(2,3)": "union(]0, 1[, ]2, 3[)",
    "(-∞, 0) ∪ (0, ∞)": "union(]-oo, 0[, ]0, oo[)",
    r"x\in(0,1)": "all x in ]0, 1[",
    r"\mathbb{R}": "set R",
    r"\mathbb R\setminus\{0\}": "difference(set R, {0})",
    r"\{x \mid x>2\}": "all x with x > 2",
    r"\{x | x > 2\}": "all x with x > 2",
    r"\{x \in \mathbb{Z} : -3 < x \le 5\}": "all x in set Z with -(3) < x <= 5",
    r"\{x \in \mathbb{R} : x \ne 0\}": "all x in set R with x != 0",
    "(2, 3] ": "]2, 3]",
    r"[1,2]\cup\{3\}": "union([1, 2], {3})",
    r"\{x : |x|<2\}": "all x with abs[x] < 2",
    r"\{x | |x|<2\}": "all x with abs[x] < 2",
    r"\{(1,2),(3,4)\}": "{tuple(1, 2), tuple(3, 4)}",
    r"\left\{1,2\right\}": "{1, 2}",
    r"\left[0,1\right)": "[0, 1[",
    r"\left(-\infty,\frac{1}{2}\right]": "]-oo, (1/2)]",
    r"k\in\mathbb{Z}": "all k in set Z",
    r"\{\{1\},\{2\}\}": "{{1}, {2}}",
    r"\{\emptyset\}": "{{}}",
    r"\{\pm 1\}": "{1, -(1)}",
    r"\{\pm 1, \pm 2\}": "{1, -(1), 2, -(2)}",
    r"\mathbb{Z}^+": "set N",
    r"\mathbb{R}^+": "]0, oo[",
    r"\mathbb{N}_0": "set N0",
    r"[0,\infty)": "[0, oo[",
    r"(-\infty,\infty)": "]-oo, oo[",
    r"\mathbb{R}\setminus\{1,2\}": "difference(set R, {1, 2})",
    r"(0,1)\cap(0.5,2)": "intersection(]0, 1[, ]1/2, 2[)",
    r"(0,1)\cup(2,3)\cup(4,5)": "union(]0, 1[, ]2, 3[, ]4, 5[)",
    r"x\in\{1,2\}": "all x in {1, 2}",
    r"x\in[0,1]\cup[2,3]": "all x in union([0, 1], [2, 3])",
    r"\{x\in\mathbb{R}\mid x\neq 0\}": "all x in set R with x != 0",
    "x ∈ ℝ": "all x in set R",
    "ℝ∖{0}": "difference(set R, {0})",
    "x∈{1}": "all x in {1}",
    "all real numbers": "set R",
    "Empty set": "{}",
    "{x | x > 2}": "all x with x > 2",
    "{x : x > 2}": "all x with x > 2",
    "{1}∪{2}": "union({1}, {2})",
}

RELATIONS = {
    r"1<x\le 3": "1 < x <= 3",
    "x > 2": "x > 2",
    r"x \neq 2": "x != 2",
    r"x\leqslant 3": "x <= 3",
    r"-\infty < x < 3": "x < 3",
    "x≤3": "x <= 3",
    r"d = 5 \text{ cm}": "d := 5 cm",
    r"A=\{1,2\}": "A := {1, 2}",
    "x<-1 or x>2": "(x < -(1)) or (x > 2)",
    r"x<-1\text{ or }x>2": "(x < -(1)) or (x > 2)",
    r"x < -1 \lor x > 2": "(x < -(1)) or (x > 2)",
    "x>1 and x<3": "(x > 1) and (x < 3)",
    r"-1<x<1, x\ne 0": "(-(1) < x < 1) and (x != 0)",
    "|x-1|<2": "abs[(x+-(1))] < 2",
    r"x\ge 2 and x\ne 3": "(x >= 2) and (x != 3)",
    "x<1<2": "x < 1 < 2",
    "a<b": "a < b",
}

WORDS = {
    r"\text{(A)}": "choice A",
    "(A)": "choice A",
    "A": "choice A",
    "A.": "choice A",
    "Option B": "choice B",
    r"\textbf{(C)}": "choice C",
    "B)": "choice B",
    "yes": "words yes",
    "No": "words no",
    "no solution": "words no solution",
    r"\text{no real solutions}": "words no real solutions",
    "True": "words true",
    "Tuesday": "words tuesday",
    "John Smith": "words john smith",
    "July 4, 1776": "words july 4, 1776",
    "2:3": "words 2:3",
    "10:30": "words 10:30",
    r"\text{The answer is 5}": "words the answer is 5",
    "The answer is 5": "words the answer is 5",
    "yes.": "words yes",
    "YES": "words yes",
    "True.": "words true",
    "false": "words false",
    "None": "words none",
    "undefined": "words undefined",
    "DNE": "words dne",
    "does not exist": "words does not exist",
    r"\text{DNE}": "words dne",
    "no": "words no",
    "I": "choice I",
    "E": "choice E",
    "C": "choice C",
    r"\text{C}": "choice C",
    "Monday": "words monday",
    "12 March 2020": "words 12 march 2020",
    "2020-12-25": "words 2020-12-25",
    "3rd": "words 3rd",
    "Erdős": "words erdős",
    "Bob and Alice": "words bob and alice",
    "Alice, Bob": "words alice, bob",
}


@pytest.mark.parametrize(("text", "meaning"), [*NUMBERS.items(), *EXPRESSIONS.items()])
def test_a_number_or_an_expression_is_read_as_it_is_meant(text: str, meaning: str) -> None:
    assert shown(read_answer(text, variables=None)) == meaning


@pytest.mark.parametrize(("text", "meaning"), QUANTITIES.items())
def test_a_unit_stays_with_its_number(text: str, meaning: str) -> None:
    assert shown(read_answer(text, variables=None)) == meaning


@pytest.mark.parametrize(("text", "meaning"), [*SEVERAL.items(), *SETS.items(), *RELATIONS.items()])
def test_points_lists_matrices_sets_and_relations_are_told_apart(text: str, meaning: str) -> None:
    assert shown(read_answer(text, variables=None)) == meaning


@pytest.mark.parametrize(("text", "meaning"), WORDS.items())
def test_words_and_choices_are_no_products_of_letters(text: str, meaning: str) -> None:
    assert shown(read_answer(text, variables=None)) == meaning


SETTLED = [
    ("(0, 1)", "x > 2", "]0, 1["),
    ("(0, 1)", "[0, 1)", "]0, 1["),
    ("(0, 1)", "(5, 6)", "tuple(0, 1)"),
    ("[1, 2]", "[1,2,3]", "[1, 2]"),
    ("1,234", "5", "1234"),
    ("1,234", "5, 6", "list(1, 234)"),
    ("0,5", r"\frac12", "1/2"),
    ("0,5", "1, 2", "list(0, 5)"),
    ("2e-3", "0.01", "1/500"),
    ("2e+1", "1+2e", "((2*e)+1)"),
    ("5 m", "3m", "(5*m)"),
    ("5m", "3 km", "5 m"),
    ("m", "2m", "m"),
    ("A", "x+A", "A"),
    ("A", "B", "choice A"),
    ("a", r"\text{(B)}", "choice A"),
    ("c)", "A", "choice C"),
    ("{5}", r"\{1,2\}", "{5}"),
    ("{5}", "7", "5"),
    ("no", "yes", "words no"),
    ("YES", "yes", "words yes"),
    ("ab", "Bob", "words ab"),
    ("5 apples", "7 apples", "5 apples"),
    ("xyz", "2xzy", "(x*y*z)"),
    ("mhg", "2ghm", "(m*h*g)"),
    ("i", "i + 1", "i"),
]


@pytest.mark.parametrize(("text", "expected", "meaning"), SETTLED)
def test_an_expected_answer_settles_what_has_two_readings(text: str, expected: str, meaning: str) -> None:
    wanted = read_answer(expected, variables=None)
    assert shown(read_answer(text, variables=None, expected=wanted)) == meaning


@pytest.mark.parametrize(
    ("text", "variables", "meaning"),
    [
        ("e + 1", ["e"], "(e+1)"),
        ("5 m", ["m"], "(5*m)"),
        ("rate * time", ["rate", "time"], "(rate*time)"),
        ("A", ["A"], "A"),
        ("ab", ["ab"], "ab"),
        ("no", ["n", "o"], "words no"),
        ("f(x)", ["f", "x"], "f[x]"),
    ],
)
def test_declared_names_win(text: str, variables: list[str], meaning: str) -> None:
    read = read_answer(text, variables=variables)
    assert shown(read) == meaning
    if meaning == "(e+1)":
        assert isinstance(read, Scalar)
        assert symbols(read.of) == {"e"}


REFUSED = {
    "nothing": "",
    "blanks": " \n\t ",
    "empty formula": "$ $",
    "brackets that close what they did not open": r"12)\;(13",
    "a word too many": "5 cm extra",
    "an unknown word before a unit": "5 extra cm",
    "a call of the interpreter": "__import__('os').system('true')",
    "an attribute": "x.__class__",
    "a lambda": "lambda: 5",
    "an unknown command": r"\input{/etc/passwd}",
    "a definition": r"\def\x{5}5",
    "a comment": "5 % 6",
    "a division with two readings": "1/2x",
    "a quotient of products": "x/2y",
    "a function whose reach is unclear": r"\sin x (x+1)",
    "a function before a slash": r"\sin x/2",
    "numbers side by side": "6 7",
    "formulas side by side": "$6$ $7$",
    "groups side by side": "{2}{3}",
    "a coefficient behind and before": "2x2",
    "a number between letters": "x2y",
    "an open bracket": "(12",
    "an open brace": r"\{1, 2",
    "an open fraction": r"\frac{1}{2",
    "a matrix without an end": r"\begin{pmatrix} 1 & 2",
    "a matrix of ragged rows": r"\begin{pmatrix} 1 & 2 \\ 3 \end{pmatrix}",
    "a matrix closed as another": r"\begin{pmatrix} 1 \end{bmatrix}",
    "an open list": "5, ",
    "a list that begins with a comma": ", 5",
    "an open alternative": "5 or",
    "an equation without a side": "x =",
    "an equation of nothing": "= 5",
    "an empty bracket": "()",
    "an arrow": r"x \to 2",
    "dots": "0.333...",
    "dots in a list": r"1, 2, \ldots",
    "an approximation": r"x \approx 3.14",
    "signs that may go together or not": r"\pm 1 \pm 2",
    "infinity within an interval": r"[0, \infty]",
    "arithmetic with infinity": r"\infty - 1",
    "mixed set operations": r"A \cup B \cap C",
    "mixed operations of intervals": r"[0,1] \cup [2,3] \cap [1,5]",
    "a number as a set": r"[0,1] \cup 5",
    "a set of images": r"\{2k \mid k \in \mathbb{Z}\}",
    "a set of equations": r"\{x = 1\}",
    "a unit whose denominator is unclear": "5 J/kg K",
    "two units": r"\$5 dollars",
    "a unit without a number": r"\$",
    "a percentage in a sum": r"50\% + 1",
    "an integral without bounds": r"\int x^2 dx",
    "an integral without its variable": r"\int_0^1 x^2",
    "a digit that its base lacks": "12_2",
    "a power of a power": "2^{3}^{2}",
    "a double factorial": "5!!",
    "mixed and improper": r"2\frac{3}{2}",
    "a mixed number twice": "1 1/2 1/3",
    "a root of unclear reach": r"\sqrt23",
    "signs around a formula that do not match": r"12\)\;\(13",
    "a Cyrillic letter": "\u0445 + 1",
    "a Greek capital that looks Latin": "\u0391 + 1",
    "a zero-width space": "4\u200b2",
    "text that runs the other way": "\u202e12",
    "a NUL": "4\x002",
    "Arabic digits": "\u0664\u0662",
    "a dash that is no minus": "x \u2013 1",
    "quotation marks": '"5"',
    "a statement": "5; drop",
    "an escape": "5\x1b[2J",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_malformed_is_refused_whole(text: str) -> None:
    with pytest.raises(GrammarError):
        read_answer(text, variables=None, expected=Scalar(Number(Fraction(5))))


LARGE = {
    "a million brackets": "(" * 10**6,
    "a million braces": "{" * 10**6,
    "deep brackets": "(" * 700 + "1" + ")" * 700,
    "deep tuples": "(1," * 300 + "2" + ")" * 300,
    "deep sets": r"\{" * 300 + "1" + r"\}" * 300,
    "deep square brackets": "[" * 1000 + "1" + "]" * 1000,
    "deep fractions": r"\frac{" * 300 + "1" + "}{2}" * 300,
    "fractions without braces": r"\frac" * 600 + "1",
    "roots without braces": r"\sqrt" * 900 + "1",
    "signs of roots": "\u221a" * 1400 + "2",
    "deep powers": "x^" * 600 + "2",
    "deep signs": "-" * 1400 + "2",
    "deep unit brackets": "5 m" + "/(m" * 300 + ")" * 300,
    "many integrals": r"\int_0^1" * 400,
    "many limits": r"\lim_{x \to 0}" * 200 + "x",
    "a long number": "9" * 2001,
    "a power of ten": "1e99999",
    "a long exponent": "1e" + "9" * 400,
    "a long recurring decimal": "0.(" + "1" * 3000 + ")",
    "a large determinant": r"\begin{vmatrix}" + r"\\".join(["1" + "&1" * 9] * 10) + r"\end{vmatrix}",
    "a large matrix": r"\begin{pmatrix}" + "1&" * 700 + r"1\end{pmatrix}",
    "a long list": ",".join(["x"] * 600),
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_what_is_too_large_is_refused_at_once(text: str) -> None:
    started = time.process_time()
    with pytest.raises(TooLargeError):
        read_answer(text, variables=None)
    assert time.process_time() - started < 0.5


def test_towers_and_huge_factorials_are_read_without_being_computed() -> None:
    started = time.process_time()
    for text in ("9^{9^{9^{9^{9}}}}", "(10^{8})!", r"\binom{10^{9}}{5\cdot 10^{8}}", "((9!)!)!", "2**10**10"):
        assert isinstance(read_answer(text, variables=None), Scalar)
    assert time.process_time() - started < 0.5


def test_reading_runs_nothing_and_imports_nothing_heavy() -> None:
    program = (
        "import json, sys\n"
        "from verifiers.answers.read_answer import read_answer\n"
        "read_answer(r'\\int_0^1 x^2\\,dx', variables=None)\n"
        "print(json.dumps([name for name in ('sympy', 'mpmath', 'z3') if name in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"So it is \boxed{5}.", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {\{1, 2\}} as claimed", r"\{1, 2\}"),
        (r"\fbox{x}", "x"),
        ("a\n$$\\boxed{\\text{no}}$$", r"\text{no}"),
    ],
)
def test_the_only_box_is_the_answer(text: str, inside: str) -> None:
    assert boxed(text) == inside


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "",
        r"\boxed",
        r"\boxed 5",
        r"\boxed{5",
        r"\boxed{5} or \boxed{6}",
        r"\boxed{5} \boxed{5}",
        r"\boxed{\boxed{5}}",
        r"\boxed{5}, \fbox{6}",
        r"\boxedx{5}",
    ],
)
def test_none_or_several_boxes_are_no_answer(text: str) -> None:
    with pytest.raises(GrammarError):
        boxed(text)


def test_a_million_boxes_and_braces_are_refused_quickly() -> None:
    started = time.process_time()
    for text in (r"\boxed{" * 140_000, r"\boxed" + "{" * 900_000, r"\boxed{5}" * 110_000, "x" * 2_000_000):
        with pytest.raises(GrammarError):
            boxed(text)
    assert time.process_time() - started < 5
