"""Explanation of a program's tests: calls, expected results and comparison; and the claims of a verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.verdict import Verdict
from verifiers.programs.data import generators as g
from verifiers.programs.data.compare import CompareRule
from verifiers.programs.spec import MetamorphicRelation, ProgramSpec

SHOWN_TESTS = 40
SEEN = {True: "   (shown to the agent)", False: ""}
RULES = {
    "exact": "with the same types throughout: 2.0 is not 2, a tuple is not a list",
    "equal": "by value: 2.0 is 2, a tuple with the same items is the list",
    "any_order": "with the same types, the items of a list in any order",
}
OUTPUTS = {
    "exact": "character by character",
    "lines": "line by line, apart from blanks at their ends",
    "tokens": "word by word, ignoring white space between them",
    "numbers": "word by word, numbers within the tolerances",
}
AGAIN = {
    "if_chancy": "A program that passes must pass again, in another order.",
    "always": "A program that passes must pass again, in another order.",
    "never": "Nothing is repeated.",
}


def explain(spec: ProgramSpec) -> Iterator[str]:
    if spec.function:
        yield f"A Python program with `{spec.function}`, called with these:"
    else:
        yield f"A program in {spec.language}, run as a whole with these:"
    yield from _tests(spec)
    yield from _generated(spec)
    yield from (f"For related inputs: {relation(one)}." for one in spec.relations)
    yield from _source("It is called through this driver:", spec.driver)
    if spec.tool is not None:
        yield f"Built by `{' '.join(spec.tool.build) or 'nothing'}`, run by `{' '.join(spec.tool.run)}`."
    if spec.function:
        yield f"Results are compared {compared(spec.compare)}."
    else:
        near = compared(spec.compare) if spec.output == "numbers" else ""
        yield f"Output is compared {OUTPUTS[spec.output]}{f' ({near})' if near else ''}."
    yield AGAIN[spec.twice]
    if spec.fresh:
        yield "Each test has a new process."
    if spec.partial:
        yield "A program that fails some tests does not pass; its score is the share that it passed."
    if spec.suspicion == "refuses":
        yield "A program that passes but looks like an attempt to cheat the judge is refused."
    yield (
        f"One test may take {spec.seconds:g} s, all of them {spec.total_seconds:g} s, with {spec.memory_mib} MiB and "
        f"{spec.output_bytes} bytes of output."
    )
    if spec.slack:
        yield f"A made input allows {spec.slack:g} times the solution's CPU time, if that is longer."
    yield "Inputs outside these tests are not covered."


def _tests(spec: ProgramSpec) -> Iterator[str]:
    for one in spec.examples[:SHOWN_TESTS]:
        comes = f"gives {one.expected}" if one.expected else f"raises {one.raises}"
        how = f", compared {compared(one.compare)}" if one.compare is not None else ""
        yield f"    {spec.function}({one.arguments}) {comes}{how}{SEEN[one.visible]}"
    for run in spec.runs[:SHOWN_TESTS]:
        argv = f" with the arguments {' '.join(run.arguments)}" if run.arguments else ""
        code = "any code" if run.exit_code is None else f"code {run.exit_code}"
        yield f"    on the input {run.stdin!r}{argv} prints {run.expected!r} and ends with {code}{SEEN[run.visible]}"
    for name, tests in (("examples", spec.examples), ("runs", spec.runs)):
        if len(tests) > SHOWN_TESTS:
            yield f"    and {len(tests) - SHOWN_TESTS} more {name}"


def _generated(spec: ProgramSpec) -> Iterator[str]:
    if spec.inputs:
        yield "Inputs are generated, one for each of these:" if spec.function else "Lines of input are generated:"
        yield from (f"    {generator(one)}" for one in spec.inputs)
    if spec.generate:
        yield f"{spec.generate} of them, by the seed {spec.seed}" + (
            ", are also given to this reference, which is assumed to be right:" if spec.reference else "."
        )
    if spec.cases:
        yield f"{len(spec.cases)} inputs are printed by this program, for {'; '.join(map(repr, spec.cases))}:"
        yield from _source("", spec.maker)
    yield from _source("" if spec.generate else "A solution assumed to be right:", spec.reference)
    for number, source in enumerate(spec.properties, 1):
        yield from _source(f"Property {number}, which must be True for each result:", source)


def _source(title: str, source: str) -> Iterator[str]:
    if source:
        if title:
            yield title
        yield from (f"    {line}" for line in source.splitlines())


def compared(how: CompareRule) -> str:
    if how.rule == "close":
        return f"by value, numbers within {how.absolute:g}, or within a share of {how.relative:g} of the expected one"
    return RULES[how.rule]


def generator(one: g.Generator) -> str:
    match one:
        case g.Integers():
            return f"a whole number from {one.low} to {one.high}"
        case g.Floats():
            return f"a number from {one.low:g} to {one.high:g}"
        case g.Booleans():
            return "True or False"
        case g.Texts():
            return f"a text of {one.least} to {one.most} of the characters {one.alphabet!r}"
        case g.Choices():
            return f"one of {', '.join(one.among)}"
        case g.Lists():
            how = "".join([", all different" if one.distinct else "", ", ascending" if one.ordered else ""])
            return f"a list of {one.least} to {one.most} items{how}, each {generator(one.of)}"
        case g.Tuples():
            return f"a tuple of {'; '.join(map(generator, one.parts)) or 'nothing'}"
        case g.Dictionaries():
            return (
                f"a dictionary of {one.least} to {one.most} items, each key {generator(one.keys)}, each value "
                f"{generator(one.items)}"
            )
        case _:
            assert_never(one)


def relation(one: MetamorphicRelation) -> str:
    which = f"argument {one.argument + 1}"
    sentences = {
        "permutation": f"the order of the items of {which} does not matter",
        "reversal": f"{which} reversed gives the result reversed",
        "swap": "the first two arguments may be exchanged",
        "involution": "applied to its own result it gives the argument back",
        "idempotence": "applied to its own result it gives that result again",
        "inverse": f"{one.other} applied to the result gives the argument back",
        "monotone": f"a larger {which} never gives a smaller result",
        "scale": f"{which} times {one.factor} gives the result times {one.result_factor}",
        "shift": f"{which} plus {one.factor} gives the result plus {one.result_factor}",
    }
    return f"{sentences[one.kind]} ({one.count} generated inputs)"


def visible(spec: ProgramSpec) -> str:
    seen = [f"{spec.function}({case.arguments}) == {case.expected}" for case in spec.examples if case.visible]
    return "\n".join([spec.driver, *seen])


def question(spec: ProgramSpec, asked: str | None) -> str | None:
    """Returns a person's question, followed by the spec's visible tests."""
    return None if asked is None else "\n\n".join([asked, *_visible_tests(spec)])


def _visible_tests(spec: ProgramSpec) -> list[str]:
    intro = [f"The program is in {spec.language}." if not spec.function else f"It defines `{spec.function}`."]
    examples = [example for example in spec.examples if example.visible]
    runs = [run for run in spec.runs if run.visible]
    lines = [
        f"{spec.function}({example.arguments}) "
        + (f"raises {example.raises}" if example.raises else f"is {example.expected}")
        for example in examples
    ]
    lines += [f"input {run.stdin!r} prints {run.expected!r}" for run in runs]
    return intro + (["Examples:\n" + "\n".join(lines)] if lines else [])


def parts(spec: ProgramSpec, verdict: Verdict) -> Verified:
    tests = verdict.evidence.get("tests")
    count = f"{tests} tests" if isinstance(tests, int) else "the tests"
    kinds = [
        f"{number} {what}"
        for number, what in (
            (len(spec.examples), "examples"),
            (len(spec.runs), "runs"),
            (spec.generate, "generated inputs asked for"),
            (len(spec.cases), "made inputs"),
            (len(spec.relations), "relations"),
            (len(spec.properties), "properties"),
        )
        if number
    ]
    near = ""
    if spec.compare.rule == "close" or spec.output == "numbers":
        near = f"; numbers within {spec.compare.absolute:g} or {spec.compare.relative:g} as a share"
    claims = [decided(verdict, f"that the program passes {count}: {', '.join(kinds)}{near}", verdict.isolation)]
    limits = [not_covered("what the program does for inputs that were not run", "tests say nothing of them")]
    if spec.reference:
        limits.append(not_covered("that the reference is right", "it came with the job"))
    return Verified(claims, limits)
