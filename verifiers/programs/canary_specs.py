"""What the canaries are checked against: one small spec of each sort."""

from __future__ import annotations

from verifiers.programs.compare import Comparison
from verifiers.programs.generators import Integers, Lists, Texts
from verifiers.programs.spec import Example, ProgramSpec, Relation, Run

SORTED = """def holds(result, numbers):
    left = list(numbers)
    for item in result:
        left.remove(item)
    return not left and all(a <= b for a, b in zip(result, result[1:]))
"""
WORDS = Texts(alphabet="abc ", most=12)
NUMBERS = Lists(of=Integers(low=-50, high=50), most=12)
SQUARES = (
    Example(arguments="[1, 2, 3]", expected="14", visible=True),
    Example(arguments="[]", expected="0", visible=True),
    Example(arguments="[-4]", expected="16"),
    Example(arguments="[10, 20]", expected="500"),
    Example(arguments="[7, -7, 7]", expected="147"),
)
SPECS: dict[str, ProgramSpec] = {
    "squares": ProgramSpec(function="solve", examples=SQUARES),
    "squares, quickly": ProgramSpec(function="solve", examples=SQUARES, seconds=1.0, total_seconds=1.5),
    "squares, each in a new process": ProgramSpec(function="solve", examples=SQUARES, fresh=True),
    "squares, generated": ProgramSpec(
        function="solve",
        examples=SQUARES[:2],
        inputs=(NUMBERS,),
        generate=30,
        reference="def solve(numbers):\n    return sum(n * n for n in numbers)\n",
        relations=(
            Relation(kind="permutation", count=5),
            Relation(kind="scale", factor=3, result_factor=9, count=5),
        ),
    ),
    "order": ProgramSpec(
        function="order",
        examples=(Example(arguments="[2, 1]", expected="[1, 2]", visible=True),),
        inputs=(NUMBERS,),
        generate=25,
        properties=(SORTED,),
        relations=(Relation(kind="idempotence", count=5),),
    ),
    "codec": ProgramSpec(
        function="encode",
        examples=(
            Example(arguments="'aab'", expected="[('a', 2), ('b', 1)]", visible=True),
            Example(arguments="''", expected="[]"),
            Example(arguments="'abbb'", expected="[('a', 1), ('b', 3)]"),
        ),
        inputs=(WORDS,),
        relations=(Relation(kind="inverse", other="decode", count=15),),
    ),
    "count": ProgramSpec(
        function="count",
        examples=(
            Example(arguments="'a b a'", expected="{'a': 2, 'b': 1}", visible=True),
            Example(arguments="''", expected="{}"),
            Example(arguments="'x'", expected="{'x': 1}"),
        ),
    ),
    "root": ProgramSpec(
        function="root",
        examples=(
            Example(arguments="4", expected="2.0", visible=True),
            Example(arguments="2", expected="1.4142135623730951"),
            Example(arguments="-1", raises="ValueError"),
        ),
        compare=Comparison(rule="close", absolute=1e-9),
    ),
    "large": ProgramSpec(
        function="solve",
        examples=(
            Example(arguments="3", expected="[0, 1, 2]", visible=True),
            Example(arguments="20000", expected=str(list(range(20_000)))),
        ),
        output_bytes=1 << 20,
        seconds=10.0,
    ),
    "account": ProgramSpec(
        function="Account",
        driver=(
            "def drive(solution, moves):\n    account = solution.Account()\n"
            "    return [account.move(amount) for amount in moves]\n"
        ),
        examples=(
            Example(arguments="[1, 2]", expected="[1, 3]", visible=True),
            Example(arguments="[5, -5, 2]", expected="[5, 0, 2]"),
        ),
    ),
    "sum of lines": ProgramSpec(
        runs=(
            Run(stdin="1 2 3\n", expected="6\n", visible=True),
            Run(stdin="", expected="0\n"),
            Run(stdin="5\n-7\n", expected="-2\n"),
        ),
        seconds=5.0,
    ),
    "lines, exactly": ProgramSpec(
        runs=(
            Run(stdin="3", expected="0\n1\n2\n", visible=True),
            Run(stdin="30000", expected="".join(f"{n}\n" for n in range(30_000))),
        ),
        output="exact",
        output_bytes=1 << 20,
        seconds=10.0,
    ),
}
