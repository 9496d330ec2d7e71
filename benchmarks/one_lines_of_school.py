"""Lines of Python that solve the tasksets of school mathematics: see `one_lines.py`."""

from __future__ import annotations

import re
from collections import Counter

from benchmarks.one_lines import asked, numbers, python, writes


def _ends(text: str) -> tuple[str, str, str]:
    found = asked(
        r"integral of (.*) over x from (\S+) to (\S+)[? ]|Integrate (?:f\(x\) = )?(.*) from x = (\S+) to x = (\S+)\."
        r"|mean value of f\(x\) = (.*) on the interval from (\S+) to (\S+?)\?",
        text,
    )
    return python(found[0]), found[1], found[2].rstrip("?")


@writes("definite_integrals")
@writes("integrals_by_substitution")
def _(text: str) -> str:
    f, low, high = _ends(text)
    return f"integrate({f}, (x, {low}, {high}))"


@writes("mean_values")
def _(text: str) -> str:
    if "average" in text:
        f, low, high = asked(r"average of (.*) over all x with (\S+) <= x <= (\S+),", text)
    else:
        f, low, high = _ends(text)
    return f"integrate({python(f)}, (x, {low}, {high}))/({high} - ({low}))"


@writes("antiderivatives")
def _(text: str) -> str:
    f, start = asked(r"F'\(x\) = (.*) and F\(0\) = (-?\d+)\.|antiderivative of (.*) has the value (-?\d+) at", text)
    f = python(f)
    return f"[F - F.subs(x, 0) + ({start}) for F in [integrate({f}, x)]][0]"


@writes("areas_between_curves")
def _(text: str) -> str:
    a, b = asked(r"y = (.*?) and y = (.*?)(?:\?| enclose)", text)
    gap = f"{python(a)} - ({python(b)})"
    return f"sum(abs(integrate({gap}, (x, a, b))) for a, b in pairwise(sorted(real_roots({gap}))))"


@writes("unknown_integrands")
def _(text: str) -> str:
    f, low, high, value = asked(
        r"integral of (.*) over x from (\S+) to (\S+) equal to (-?\d+)"
        r"|integral of (.*) from x = (\S+) to x = (\S+) is (-?\d+)\.",
        text,
    )
    f = python(f.replace("kx", "k*x"))
    return f"solve(integrate({f}, (x, {low}, {high})) - ({value}), k)[0]"


def _inequality(text: str) -> str:
    ways = r"Solve (\S.*) for real x|numbers x is (.*)\? Answer|real x with (.*)\. Answer"
    return python(asked(ways, re.sub(r"^(Solve this|Please work this out|Here is a problem)\. ", "", text))[0])


@writes("linear_inequalities")
@writes("quadratic_inequalities")
@writes("products_and_signs")
@writes("quotients_and_signs")
@writes("absolute_values")
def _(text: str) -> str:
    return f"solve_univariate_inequality({_inequality(text)}, x, relational=False)"


@writes("whole_solutions")
def _(text: str) -> str:
    found = asked(r"(x\^2.*?) ?(<=|<) 0", text)
    return f"sum({python(found[0])} {found[1]} 0 for x in range(-9999, 9999))"


@writes("areas_and_radii")
def _(text: str) -> str:
    sides = numbers(text)
    area = f"abs(Triangle(sss={tuple(sides)}).area)"
    if "height" in text:
        return f"simplify(2*{area}/{max(sides)})"
    if "inscribed" in text:
        return f"simplify(2*{area}/{sum(sides)})"
    return f"simplify({sides[0]}*{sides[1]}*{sides[2]}/(4*{area}))" if "circumscribed" in text else f"simplify({area})"


@writes("cosines")
def _(text: str) -> str:
    a, b, c = numbers(text)
    return f"Rational({b}**2 + {c}**2 - {a}**2, 2*{b}*{c})"


@writes("third_sides")
def _(text: str) -> str:
    angle = int(asked(r"(\d+) degrees", text)[0])
    a, b = [one for one in numbers(text.replace(f"{angle} degrees", ""))]
    square = f"{a}**2 + {b}**2 - 2*{a}*{b}*cos(pi*{angle}/180)"
    return square if "square of" in text else f"sqrt({square})"


@writes("medians_and_bisectors")
def _(text: str) -> str:
    a, b, c = numbers(text)
    if "median" in text:
        return f"sqrt(2*{b}**2 + 2*{c}**2 - {a}**2)/2"
    return f"sqrt({b}*{c}*(1 - Rational({a}, {b} + {c})**2))"


@writes("right_triangles")
def _(text: str) -> str:
    one, two = (f"Rational('{each}')" for each in re.findall(r"\d+(?:/\d+)?", text))
    if "perimeter" in text and "area" in text:
        if re.search(r"perimeter \d", text):
            return f"(({one} - {two})**2 - {two}**2)/4"
        return f"{one} + sqrt({one}**2 + 4*{two})"
    if "other leg" in text:
        return f"sqrt({one}**2 - {two}**2)"
    if "foot" in text:
        return f"{one}**2/sqrt({one}**2 + {two}**2)"
    if "inscribed" in text:
        return f"({one} + {two} - sqrt({one}**2 + {two}**2))/2"
    return f"sqrt({one}**2 - {two}**2)*{two}/{one}" if "height" in text else f"sqrt({one}**2 + {two}**2)"


@writes("similar_triangles")
def _(text: str) -> str:
    m, n, value = numbers(text)
    ratio = f"Rational({m}, {m} + {n})"
    if "area" not in text:
        return f"{value}*{ratio}" if "BC = " in text else f"{value}/{ratio}"
    given, wanted = re.findall(r"ABC|ADE|DBCE", text.partition("AD : DB")[2])
    size = {"ABC": "1", "ADE": f"{ratio}**2", "DBCE": f"(1 - {ratio}**2)"}
    return f"{value}*{size[wanted]}/{size[given]}"


def _circle(text: str) -> str:
    left, right = asked(r"(x\^2 \+ y\^2.*?) = (-?\d+(?:/\d+)?)", text)
    return f"{python(left)} - Rational('{right}')".replace("1/2", "Rational(1, 2)")


@writes("centres_and_radii")
def _(text: str) -> str:
    return f"Circle({_circle(text)}).{'radius' if 'radius' in text else 'center.args'}"


@writes("tangent_lengths")
def _(text: str) -> str:
    x, y = asked(r"\((\S+), (\S+)\)", text)
    return f"sqrt(({_circle(text)}).subs({{x: Rational('{x}'), y: Rational('{y}')}}))"


@writes("chords")
def _(text: str) -> str:
    left, right = asked(r"line (.*?) = (-?\d+(?:/\d+)?)", text)
    line = f"{python(left)} - Rational('{right}')"
    return f"Segment(*Line({line}).intersection(Circle({_circle(text)}))).length"


@writes("chords_and_secants")
def _(text: str) -> str:
    a, b, c = (int(one) for one in re.findall(r"= (\d+)", text))
    return f"Rational({a}*({a} + {b}), {c}) - {c}" if "outside" in text else f"Rational({a}*{b}, {c})"


@writes("sectors")
def _(text: str) -> str:
    angle = asked(r"(\d+) degrees|angle (\d+)", text)[0]
    radius = asked(r"radius (\d+(?:/\d+)?)", text)[0]
    r = f"Rational('{radius}')"
    if "area" in text:
        return f"pi*{r}**2*{angle}/360"
    return f"2*pi*{r}*{angle}/360" + (f" + 2*{r}" if "perimeter" in text else "")


@writes("circles_through_points")
def _(text: str) -> str:
    points = ", ".join(f"Point({x}, {y})" for x, y in re.findall(r"\((-?\d+), (-?\d+)\)", text))
    return f"Circle({points}).center.args"


@writes("letters")
def _(text: str) -> str:
    word = asked(r"([A-Z]{5,})", text)[0]
    size = int(asked(r"(?:words of|length|rows of) (\d+)", text)[0])
    left = Counter(word)
    for first in re.findall(r"begin with ([A-Z])", text):
        left[first] -= 1
        size -= 1
    parts = f"prod(sum(x**i/factorial(i) for i in range(m + 1)) for m in {list(left.values())})"
    return f"factorial({size})*Poly({parts}, x).coeff_monomial(x**{size})"


@writes("committees")
def _(text: str) -> str:
    a, b = asked(r"(\d+) painters and (\d+) sculptors", text)
    size = asked(r"(?:group|committee) of (\d+)", text)[0]
    rule, low, *high = asked(r"(exactly|at least|at most|from) (\d+)(?: to (\d+))?", text)
    ends = {"exactly": (low, low), "at least": (low, size), "at most": ("0", low), "from": (low, *high)}[rule]
    return f"sum(comb({a}, i)*comb({b}, {size} - i) for i in range({ends[0]}, min({ends[1]}, {size}) + 1))"


@writes("balls_in_boxes")
def _(text: str) -> str:
    count = asked(r"tuples of (\d+)|into (\d+)", text)[0]
    total = asked(r"the sum (\d+)|can (\d+) equal", text)[0]
    bounds = re.search(r"from (\d+) to (\d+)|at least (\d+)", text)
    low, high = (bounds[1] or bounds[3], bounds[2] or total) if bounds else ("0", total)
    return f"(Poly([1]*({high} - {low} + 1), x)**{count}).coeff_monomial(x**({total} - {low}*{count}))"


@writes("subsets_by_sum")
def _(text: str) -> str:
    some = numbers(asked(r"((?:\d+, )+\d+(?: and \d+)?)", text)[0])
    target, m = asked(r"(?:remainder|sum is|congruent to|whose sum is) (\d+) (?:when divided by|modulo) (\d+)", text)
    return f"sum(sum(s) % {m} == {target} for n in range({len(some)} + 1) for s in combinations({some}, n))"


@writes("sums_of_dice")
def _(text: str) -> str:
    dice = numbers(asked(r"with ([\d, and]+) sides", text)[0])
    kind, n = asked(r"(exactly|at least|divisible by) (\d+)", text)
    good = {"exactly": f"== {n}", "at least": f">= {n}", "divisible by": f"% {n} == 0"}[kind]
    return f"Rational(sum(sum(s) {good} for s in product(*(range(1, d + 1) for d in {dice}))), {'*'.join(map(str, dice))})"


@writes("urns")
def _(text: str) -> str:
    have = [int(one) for one in re.findall(r"(\d+) (?:red|blue|green)", text.partition("balls")[0])]
    want = [int(one) for one in re.findall(r"(\d+) (?:red|blue|green)", text.partition("xactly")[2])]
    pairs = list(zip(have, want, strict=True))
    if "each put back" in text:
        chances = "*".join(f"Rational({h}, {sum(have)})**{w}" for h, w in pairs)
        return f"factorial({sum(want)})*{chances}/({'*'.join(f'factorial({w})' for w in want)})"
    return f"Rational({'*'.join(f'comb({h}, {w})' for h, w in pairs)}, comb({sum(have)}, {sum(want)}))"


@writes("heads_and_tails")
def _(text: str) -> str:
    p, n = asked(r"probability (\d+/\d+)", text)[0], asked(r"thrown (\d+)|Each of (\d+)", text)[0]
    rule, low, *high = asked(r"(exactly|at least|from) (\d+)(?: to (\d+))?", text)
    top = {"exactly": low, "at least": n, "from": (high or [""])[0]}[rule]
    p = f"Rational('{p}')"
    return f"sum(comb({n}, i)*{p}**i*(1 - {p})**({n} - i) for i in range({low}, {top} + 1))"


@writes("hidden_causes")
def _(text: str) -> str:
    found = re.findall(r"machine (\w) makes (\S+) of all parts, and (\S+) of", text)
    who = asked(r"machine (\w)(?: made|\?)", text)[0]
    parts = {name: f"Rational('{share}')*Rational('{rate}')" for name, share, rate in found}
    return f"{parts[who]}/({' + '.join(parts.values())})"


@writes("random_walks")
def _(text: str) -> str:
    p = asked(r"probability (\d+/\d+)", text)[0]
    start, end = asked(r"owns (\d+) coins|starts at (\d+)", text)[0], asked(r"stops at (\d+)|reach (\d+)", text)[0]
    return f"limit((1 - x**{start})/(1 - x**{end}), x, (1 - Rational('{p}'))/Rational('{p}'))"


@writes("distributions")
def _(text: str) -> str:
    pairs = ", ".join(f"({v}, Rational('{p}'))" for v, p in re.findall(r"(-?\d+) with the probability (\d+/\d+)", text))
    mean = f"sum(v*p for v, p in [{pairs}])"
    return f"sum(v*v*p for v, p in [{pairs}]) - {mean}**2" if "variance" in text else mean


@writes("fair_games")
def _(text: str) -> str:
    stake, prize = asked(r"costs (\d+)|For (\d+) coin", text)[0], asked(r"gets (\d+)|pays (\d+)", text)[0]
    low, sides = asked(r"at least (\d+)|total of (\d+)", text)[0], asked(r"1 to (\d+)", text)[0]
    dice = asked(r"(\d+|one) fair di", text)[0].replace("one", "1")
    return (
        f"Rational({prize}*sum(sum(s) >= {low} for s in product(range(1, {sides} + 1), repeat={dice})),"
        f" {sides}**{dice}) - {stake}"
    )


@writes("largest_and_smallest")
def _(text: str) -> str:
    found = re.search(r"cards 1 to (\d+), (\d+)|draws (\d+) of the numbers 1, ..., (\d+)", text)
    assert found is not None
    n, k = found[1] or found[4], found[2] or found[3]
    value = f"Rational({k}*({n} + 1), {k} + 1)"
    if "put back" in text:
        value = f"sum(1 - Rational(t - 1, {n})**{k} for t in range(1, {n} + 1))"
    return f"{n} + 1 - {value}" if "smallest" in text else value


@writes("waiting_times")
def _(text: str) -> str:
    if "die" in text:
        sides = asked(r"with (\d+) faces", text)[0]
        faces = sides if "each face" in text else asked(r"until (\d+) different", text)[0]
        return f"sum(Rational({sides}, {sides} - i) for i in range({faces}))"
    p = asked(r"probability (\d+/\d+)", text)[0]
    if "in a row" in text:
        row = asked(r"until (\d+)", text)[0]
        return f"sum(1/Rational('{p}')**i for i in range(1, {row} + 1))"
    which = asked(r"success number (\d+)", text)[0]
    return f"{which}/Rational('{p}')"


@writes("expected_counts")
def _(text: str) -> str:
    n = asked(r"thrown (\d+)", text)[0]
    if "die" in text:
        m = asked(r"1 to (\d+)", text)[0]
        return f"{m}*Rational({m} - 1, {m})**{n}" if "never" in text else f"Rational({n}*({n} - 1), 2*{m})"
    chance = asked(r"probability (\d+/\d+)", text)[0]
    p = f"Rational('{chance}')"
    if "pairs" in text:
        return f"({n} - 1)*({p}**2 + (1 - {p})**2)"
    return f"1 + 2*({n} - 1)*{p}*(1 - {p})" if "runs" in text else f"{n}*{p}*(1 - {p}) + ({n}*{p})**2"


@writes("linear_combinations")
def _(text: str) -> str:
    a, sign, b = asked(r"(-?\d+)X ([+-]) (\d+)Y", text)
    found = re.findall(r"(?:mean|expected value) (-?\d+)", text)
    spread = re.findall(r"\bvariance (\d+)", text)
    tie = (re.findall(r"covariance (-?\d+)", text) or ["0"])[0]
    b = sign + b
    mean = f"({a}*({found[0]}) + ({b})*({found[1]}))"
    variance = f"{a}**2*{spread[0]} + ({b})**2*{spread[1]} + 2*({a})*({b})*({tie})".replace(f"{a}**2", f"({a})**2", 1)
    wanted = text[text.index("is the" if "is the" in text else "Find the") :]
    return variance if "variance" in wanted else f"{variance} + {mean}**2" if ")^2" in wanted else mean


@writes("draws_without_return")
def _(text: str) -> str:
    if "lots" in text:
        n, good, drawn = asked(r"Of (\d+) lots (\d+) win. Someone buys (\d+)", text)
    else:
        drawn, n, good = asked(r"(\d+) of (\d+) balls.*; (\d+) of", text)
    mean = f"Rational({drawn}*{good}, {n})"
    return f"{mean}*(1 - Rational({good}, {n}))*Rational({n} - {drawn}, {n} - 1)" if "variance" in text else mean


@writes("coin_combinations")
def _(text: str) -> str:
    coins = numbers(asked(r"of ([\d, and]+) cents", text)[0])
    total = asked(r"exactly (\d+)|can (\d+) cents", text)[0]
    paid = f"Poly([int(i % c == 0) for i in range({total}, -1, -1)], x)"
    return f"prod({paid} for c in {coins}).coeff_monomial(x**{total})"


@writes("impossible_amounts")
def _(text: str) -> str:
    a, b = numbers(text)
    return f"({a} - 1)*({b} - 1)//2" if "How many" in text else f"{a}*{b} - {a} - {b}"


@writes("least_solution")
def _(text: str) -> str:
    a, b, c = asked(r"(\d+)x [+-] (\d+)y = (-?\d+)", text)
    return f"next(x for x in range(1, {b} + 1) if ({c} - {a}*x) % {b} == 0)"


@writes("sums_of_two_squares")
def _(text: str) -> str:
    n = max(numbers(text))
    pick = "max" if "largest" in text else "min"
    return f"{pick}(x for x in range(isqrt({n}) + 1) if 2*x*x >= {n} and isqrt({n} - x*x)**2 == {n} - x*x)"


@writes("sums_and_products")
def _(text: str) -> str:
    b, a, c = asked(r"xy \+ (\d+)x \+ (\d+)y = (\d+)", text)
    each = f"for x in range(1, {c} + 1) if {c} > {b}*x and ({c} - {b}*x) % (x + {a}) == 0"
    if "How many" in text:
        return f"sum(1 {each})"
    return f"max(x {each})" if "largest" in text else f"min(x + ({c} - {b}*x)//(x + {a}) {each})"


@writes("differences_of_squares")
def _(text: str) -> str:
    n = asked(r"y\^2 = (\d+)", text)[0]
    pick = "max" if "largest" in text else "min"
    return f"{pick}((d + {n}//d)//2 for d in divisors({n}) if d*d < {n} and (d + {n}//d) % 2 == 0)"
