"""Attacks on the verifiers of answers, and honest answers that a stricter one would turn away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from verifiers.answers.spec import AnswerSpec, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec
from verifiers.case import Case

CODE, HANG, SEVERAL, DEGENERATE, RESTATED, SPOOFED, SAMPLED = 28, 29, 30, 31, 32, 33, 34
EMPTY = 24
NESTED = 50

ATTACKS: tuple[tuple[str, int, str, str, dict[str, Any], str], ...] = (
    ("import", CODE, "5", "__import__('os').getpid()", {}, "Code where an answer is expected."),
    ("eval", CODE, "5", "ev" + "al('2+3')", {}, "A call of Python's evaluator."),
    ("attribute", CODE, "5", "().__class__.__mro__", {}, "Attributes lead out of any restricted evaluator."),
    ("lambda", CODE, "5", "(lambda: 5)()", {}, "A function of the submission's own."),
    ("conditional", CODE, "5", "5 if 1 else 6", {}, "A Python expression that mathematics does not have."),
    ("walrus", CODE, "5", "(x:=5)", {}, "An assignment inside an expression."),
    ("f-string", CODE, "5", "f'{5}'", {}, "A string that computes."),
    ("tex-input", CODE, "5", r"\input{/etc/passwd}", {}, "A TeX command that reads files."),
    ("tex-def", CODE, "5", r"\def\x{5}\x", {}, "A TeX macro."),
    ("tex-csname", CODE, "5", r"\csname 5\endcsname", {}, "A TeX command built at run time."),
    ("power-tower", HANG, "5", "5^(5^(5^(5^5)))", {}, "Evaluating it takes for ever."),
    ("power-tower-free", HANG, "5", "5^(5^(5^(5^5)))", {"form": "equal"}, "The same where any form is allowed."),
    ("power-tower-tex", HANG, "1", "2003^{2002^{2001}}", {"form": "equal"}, "A tower of ordinary numbers."),
    ("power-tower-neighbour", HANG, "2003^{2002^{2001}}", "2003^{2002^{2001}}+1", {"form": "equal"}, "One more."),
    ("factorial", HANG, "1", "(10^8)!", {"form": "equal"}, "Eight hundred million digits."),
    ("factorial-of-factorial", HANG, "1", "((10^8)!)!", {"form": "equal"}, "A number that nobody can write."),
    ("factorial-neighbour", HANG, "(10^8)!", "(10^8+1)!", {"form": "equal"}, "Too large to multiply out."),
    ("binomial", HANG, "2", r"\binom{10^9}{5\cdot10^8}", {"form": "equal"}, "Three hundred million digits."),
    ("sum-of-many", HANG, "5", r"\sum_{k=1}^{10^{12}}\frac{1}{k}", {"form": "equal"}, "A trillion terms."),
    ("large-power-of-a-sum", HANG, "x", "(x+1)^{10^9}", {"form": "equal"}, "A polynomial of a billion terms."),
    ("nested-brackets", NESTED, "5", "(" * 20_000 + "5" + ")" * 20_000, {}, "Recursion of the reader."),
    ("nested-roots", NESTED, "5", r"\sqrt{" * 600 + "5" + "}" * 600, {}, "Recursion of the reader."),
    ("long-number", NESTED, "5", "9" * 100_000, {}, "Converting it takes quadratic time."),
    ("many-signs", NESTED, "5", "-" * 4_000 + "5", {}, "Recursion by signs."),
    ("many-members", NESTED, r"\{1\}", r"\{" + ",".join(["1"] * 3_000) + r"\}", {}, "Quadratic comparison of members."),
    ("two-boxes", SEVERAL, "5", r"\boxed{4} or \boxed{5}", {"final": "boxed"}, "Two answers, one of them right."),
    ("box-in-box", SEVERAL, "5", r"\boxed{\boxed{5}}", {"final": "boxed"}, "Which of the two is meant?"),
    ("box-with-two", SEVERAL, "5", r"\boxed{5, 6}", {"final": "boxed"}, "Two answers in one box."),
    ("unclosed-box", SEVERAL, "5", r"\boxed{5", {"final": "boxed"}, "A box that never ends."),
    ("no-box", SEVERAL, "5", "The answer is 5.", {"final": "boxed"}, "The form asked for is missing."),
    ("listing", SEVERAL, "5", "5, 6", {}, "Two answers, one of them right."),
    ("either-or", SEVERAL, "5", "5 or 6", {}, "Hedged."),
    ("alternatives", SEVERAL, "x=5", r"x=5 \text{ or } x=6", {}, "Hedged as an equation."),
    ("plus-minus", SEVERAL, "2", r"\pm 2", {}, "Both signs."),
    ("union", SEVERAL, r"\{5\}", r"\{5\}\cup\{6\}", {}, "Hedged as a set."),
    ("interval", SEVERAL, "5", "[4,6]", {}, "An interval around the answer."),
    ("all-reals", SEVERAL, "(0,1)", r"\mathbb{R}", {}, "A set that contains the answer."),
    ("two-choices", SEVERAL, "B", "A, B", {}, "Two choices."),
    ("two-words", SEVERAL, "yes", "yes and no", {}, "Both words."),
    ("side-by-side", SEVERAL, "12", "12 13", {}, "Two numbers without a sign."),
    ("bracket-trick", SEVERAL, "12", r"12)\;(13", {}, "Brackets that close what was never opened."),
    ("zero-by-zero", DEGENERATE, "1", r"\frac{0}{0}", {"form": "equal"}, "It has no value."),
    ("one-by-zero", DEGENERATE, r"\infty", r"\frac{1}{0}", {"form": "equal"}, "Undefined is not infinite."),
    ("zero-to-zero", DEGENERATE, "1", "0^0", {"form": "equal"}, "It has no value here."),
    ("hidden-zero-by-zero", DEGENERATE, "x", r"x+\frac{0}{\sin^2x+\cos^2x-1}", {"form": "equal"}, "0/0 in disguise."),
    ("infinity-by-infinity", DEGENERATE, "1", r"\frac{\infty}{\infty}", {"form": "equal"}, "It has no value."),
    ("nan", DEGENERATE, "5", "nan", {}, "Not a number."),
    ("nan-within-tolerance", DEGENERATE, "5", "nan", {"absolute": "0.1"}, "Comparisons with nan go wrong."),
    ("infinity-within-tolerance", DEGENERATE, "5", r"\infty", {"relative": "0.1"}, "An infinite answer."),
    ("oo", DEGENERATE, "5", "oo", {}, "SymPy's infinity by name."),
    ("zoo", DEGENERATE, "5", "zoo", {}, "SymPy's complex infinity by name."),
    ("free-symbol", DEGENERATE, "5", "z", {}, "A symbol is equal to anything in some checkers."),
    ("cancelling-symbol", DEGENERATE, "5", "5+z-z", {"form": "equal"}, "A symbol that the question does not have."),
    ("symbol-over-itself", DEGENERATE, "1", "z/z", {"form": "equal"}, "Likewise."),
    ("tautology", DEGENERATE, "5", "5=5", {}, "A true equation is no number."),
    ("tautology-for-true", DEGENERATE, "true", "1=1", {}, "A true equation is not the word."),
    ("piecewise", DEGENERATE, "5", "Piecewise((5, True))", {}, "A branch that is always taken."),
    ("integral", RESTATED, r"\frac13", r"\int_0^1 x^2\,dx", {}, "The question, left to the verifier."),
    ("sum", RESTATED, "55", r"\sum_{k=1}^{10}k", {}, "The question, left to the verifier."),
    ("limit", RESTATED, "1", r"\lim_{x\to0}\frac{\sin x}{x}", {}, "The question, left to the verifier."),
    ("addition", RESTATED, "42", "17+25", {}, "The question, left to the verifier."),
    ("product", RESTATED, "391", "17*23", {}, "The question, left to the verifier."),
    ("divisor", RESTATED, "6", r"\gcd(12,18)", {}, "The question, left to the verifier."),
    ("root", RESTATED, "3", r"\sqrt{9}", {}, "The question, left to the verifier."),
    ("sine", RESTATED, r"\frac{\sqrt3}{2}", r"\sin 60^\circ", {}, "The question, left to the verifier."),
    ("equation", RESTATED, "x=5", "2x=10", {}, "The question, left to be solved."),
    ("inequality", RESTATED, "(-2,2)", "x^2<4", {}, "The question, left to be solved."),
    ("set-builder", RESTATED, r"\{-1,1\}", r"\{x\mid x^2=1\}", {}, "The question, left to be solved."),
    ("intersection", RESTATED, "[3,5]", r"[0,5]\cap[3,9]", {}, "The question, left to the verifier."),
    ("cyrillic", SPOOFED, "x", "\u0445", {}, "A Cyrillic letter that looks like x."),
    ("arabic-digits", SPOOFED, "42", "\u0664\u0662", {}, "Digits of another script."),
    ("superscript", SPOOFED, "102", "10\u00b2", {}, "Folding would read 102."),
    ("zero-width", SPOOFED, "12", "1\u200b2", {}, "A sign that nobody sees."),
    ("right-to-left", SPOOFED, "12", "\u202e21", {}, "It is shown as 12."),
    ("root-of-a-square", SPOOFED, "x", r"\sqrt{x^2}", {"form": "equal"}, "Right for positive x only."),
    ("logarithm-of-a-square", SPOOFED, r"2\ln x", r"\ln x^2", {"form": "equal"}, "Right for positive x only."),
    ("upper-case", SPOOFED, "x", "X", {}, "Another symbol."),
    (
        "equal-at-many-points",
        SAMPLED,
        "x",
        r"x+\frac{(7x-3)(3x+5)(11x-17)(13x+1)(5x-29)(7x+41)}{10^{40}}",
        {"form": "equal"},
        "It agrees with x at six points, and nearly so everywhere.",
    ),
    ("tiny-wave", SAMPLED, r"\sin x", r"\sin x+\frac{\sin 7x}{10^{60}}", {"form": "equal"}, "Below any float."),
    ("tiny-fraction", SAMPLED, r"\frac{1}{2004!}", r"\frac{1}{2006!}", {"form": "equal"}, "Both are zero as floats."),
    ("large-neighbour", SAMPLED, "10^{30}", "10^{30}+1", {"form": "equal"}, "Equal as floats."),
    ("many-digits", SAMPLED, r"\pi", "3.14159265358979323846264338327950288", {}, "Closeness is not equality."),
    ("almost-whole", SAMPLED, "262537412640768744", r"e^{\pi\sqrt{163}}", {"form": "equal"}, "Twelve nines."),
    ("nothing", EMPTY, "0", "", {}, "An empty answer."),
    ("blanks", EMPTY, "0", " \n\t", {}, "Blanks only."),
    ("empty-braces", EMPTY, "0", "{}", {}, "An empty group."),
    ("empty-dollars", EMPTY, "0", "$$", {}, "Empty mathematics."),
    ("echo", EMPTY, "5", "the expected answer", {}, "Words instead of an answer."),
    ("unit-missing", DEGENERATE, r"5\text{ cm}", "5", {}, "The unit is part of the answer."),
    ("other-unit", DEGENERATE, r"5\text{ cm}", r"5\text{ m}", {}, "A hundred times as long."),
    ("base-missing", DEGENERATE, "101_2", "101", {}, "Another number."),
    ("percent-missing", DEGENERATE, r"50\%", "50", {}, "A hundred times as much."),
    ("function-as-product", SPOOFED, "f(2)", "2f", {}, "A value of a function is no product."),
    ("reduced-asked-for", RESTATED, r"\frac12", r"\frac24", {"form": "simplified"}, "Not in lowest terms."),
    ("other-notation", RESTATED, r"\frac12", "0.5", {"form": "same"}, "Not written as asked for."),
)

HONEST: tuple[tuple[str, int, str, str, dict[str, Any], str], ...] = (
    ("words-of-code", CODE, "5", "x = 5", {}, "An assignment is how people name a result."),
    ("tower-itself", HANG, "5^{5^{5^{5}}}", "5^{5^{5^{5}}}", {}, "Too large to compute, and still the same."),
    ("large-factorial-itself", HANG, "(10^8)!", "(10^8)!", {}, "Too large to compute, and still the same."),
    ("large-power", HANG, "2^{100}", "1267650600228229401496703205376", {}, "Written out."),
    ("brackets", NESTED, "5", "((((5))))", {}, "Needless, but honest."),
    ("one-box", SEVERAL, r"\frac12", r"Hence \(\boxed{\frac{1}{2}}\).", {"final": "boxed"}, "One box in a sentence."),
    ("several-solutions", SEVERAL, "2, 3", r"x=3 \text{ or } x=2", {}, "The answer has two solutions."),
    ("plus-minus-asked-for", SEVERAL, r"\{-2,2\}", r"x=\pm2", {}, "The answer has two solutions."),
    ("infinite", DEGENERATE, r"\infty", r"+\infty", {}, "Infinity may be the answer."),
    ("no-solution", DEGENERATE, r"\emptyset", r"\text{no solution}", {}, "Nothing may be the answer."),
    ("own-symbol", DEGENERATE, "2x+2", "2(x+1)", {}, "The question's symbol."),
    ("within-tolerance", DEGENERATE, "3.14159", "3.1416", {"absolute": "0.0001"}, "Rounded as allowed."),
    ("question-with-integral", RESTATED, r"\int_0^1 x^2\,dx", r"\frac13", {}, "The spec holds the question."),
    ("roots-remain", RESTATED, r"1+\sqrt2", r"\sqrt{3+2\sqrt2}", {}, "A closed form, not a question."),
    ("fraction-not-reduced", RESTATED, r"\frac12", r"\frac24", {}, "A number, written."),
    ("full-width", SPOOFED, "12", "\uff11\uff12", {}, "Full-width digits say the same."),
    ("absolute-value", SPOOFED, "|x|", r"\sqrt{x^2}", {}, "True for every real x."),
    ("positive-domain", SPOOFED, "x", r"\sqrt{x^2}", {"domain": "positive"}, "The spec says that x is positive."),
    ("double-angle", SAMPLED, r"\sin 2x", r"2\sin x\cos x", {}, "Proved, not sampled."),
    ("euler", SAMPLED, r"\arctan\frac12+\arctan\frac13", r"\frac{\pi}{4}", {}, "Proved, not sampled."),
    ("cardano", SAMPLED, r"\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5}", "1", {}, "Proved by a minimal polynomial."),
    ("converted", DEGENERATE, r"5\text{ m}", r"500\text{ cm}", {}, "The same length."),
    ("flipped", SAMPLED, "x>2", "2<x", {}, "The same inequality."),
    ("other-intervals", SAMPLED, r"(0,1)\cup(1,2)", r"(0,2)\setminus\{1\}", {}, "The same set."),
    (
        "bracket-style",
        SPOOFED,
        r"\begin{pmatrix}1\\2\end{pmatrix}",
        r"\begin{bmatrix}1\\2\end{bmatrix}",
        {},
        "A style.",
    ),
    ("choice", SPOOFED, r"\text{A}", "(A)", {}, "A label in brackets."),
    ("thousands", SPOOFED, "1000000", "1,000,000", {}, "Separators."),
    ("recurring", SAMPLED, r"\frac13", r"0.\overline{3}", {}, "Exactly a third."),
)


def cases() -> Iterator[Case]:
    for name, row, expected, submission, options, why in ATTACKS:
        spec = AnswerSpec(expected=expected, **options)
        yield Case(name=f"answer-{name}", spec=spec, submission=submission, honest=False, rows=(row,), why=why)
    for name, row, expected, submission, options, why in HONEST:
        spec = AnswerSpec(expected=expected, **options)
        yield Case(name=f"honest-{name}", spec=spec, submission=submission, honest=True, rows=(row,), why=why)
    yield from older()


def older() -> Iterator[Case]:
    """The kinds that decide one sort of answer each."""
    five, six = ExpressionSpec(expected="5"), ExpressionSpec(expected="6")
    solution = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    whole = IntegerSpec(expected="42")
    text = ExactSpec(expected="Blue whale")
    attacks: list[tuple[str, Any, str, int, str]] = [
        ("expression-code", five, "__import__('os')", CODE, "Code where an expression is expected."),
        ("expression-tower", five, "5^(5^(5^5))", HANG, "Evaluating it takes for ever."),
        ("expression-divisor", six, "gcd(12, 18)", RESTATED, "The question, left to the verifier."),
        ("expression-zero-by-zero", five, "5*0/0", DEGENERATE, "It has no value."),
        ("expression-empty", five, "", EMPTY, "An empty answer."),
        ("predicate-false", solution, "7", DEGENERATE, "Not a solution."),
        ("predicate-not-worked-out", solution, "40 + 2 - 36", RESTATED, "The question, left to the verifier."),
        ("predicate-code", solution, "x if True else 6", CODE, "Code where a number is expected."),
        ("predicate-variable", solution, "x", DEGENERATE, "The variable itself."),
        ("integer-decimal", whole, "42.0", SPOOFED, "Not an integer as asked for."),
        ("integer-other-script", whole, "\u0664\u0662", SPOOFED, "Digits of another script."),
        ("integer-long", whole, "4" * 100_000, NESTED, "Converting it takes quadratic time."),
        ("integer-two", whole, "42 43", SEVERAL, "Two numbers."),
        ("exact-other-case", text, "blue whale", SPOOFED, "Not this very text."),
        ("exact-contained", text, "Blue whale or orca", SEVERAL, "The text and more."),
        ("exact-empty", text, "", EMPTY, "An empty answer."),
    ]
    honest: list[tuple[str, Any, str, int, str]] = [
        ("expression-fraction", ExpressionSpec(expected="0.5"), r"\frac{1}{2}", SAMPLED, "The same number."),
        ("expression-expanded", ExpressionSpec(expected="2(x+1)", variables=("x",)), "2x+2", SAMPLED, "Expanded."),
        ("predicate-solution", solution, "x = 6", DEGENERATE, "The solution, named."),
        ("integer-signed", IntegerSpec(expected="3"), "+3", SPOOFED, "A sign that changes nothing."),
        ("exact-with-blanks", text, "  Blue whale\n", SPOOFED, "Blanks around it."),
    ]
    for name, spec, submission, row, why in attacks:
        yield Case(name=name, spec=spec, submission=submission, honest=False, rows=(row,), why=why)
    for name, spec, submission, row, why in honest:
        yield Case(name=f"honest-{name}", spec=spec, submission=submission, honest=True, rows=(row,), why=why)
