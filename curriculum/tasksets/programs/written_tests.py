"""Hidden tests of programs over integers."""

from __future__ import annotations

from curriculum.tasksets.programs.small_language import FUNCTION
from curriculum.tasksets.programs.tested_blocks import TestedBlock
from verifiers.programs.spec import Example, ProgramSpec


def numbers_spec(tested: TestedBlock) -> ProgramSpec:
    """Returns the spec that tests submissions against a program's results for its calls; the shown calls are
    visible."""
    tests = [(call, True) for call in tested.shown] + [(call, False) for call in tested.hidden]
    return ProgramSpec(
        function=FUNCTION,
        examples=tuple(
            Example(arguments=f"{a}, {b}", expected=str(tested.results[a, b]), visible=shown) for (a, b), shown in tests
        ),
    )
