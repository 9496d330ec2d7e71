"""Spec of the kind `program`: pure data.

Values are Python literals as text (`[1, 2], key=(3, 4)`), so that tuples, bytes and sets can be written and a spec can
be stored as JSON or TOML and hashed. `verifiers.programs.checking` rejects unusable specs.
"""

from __future__ import annotations

import operator
from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecData, SpecModel
from verifiers.programs.data.compare import CompareRule, OutputRule
from verifiers.programs.data.generators import Generator

LITERAL_CHARS = 1_000_000
SOURCE_CHARS = 200_000


class Example(SpecData):
    """One call of the function and its result: either a value or an exception."""

    arguments: str = Field(default="", max_length=LITERAL_CHARS)
    """Arguments as written between the parentheses of a call."""
    expected: str = Field(default="", max_length=LITERAL_CHARS)
    raises: str = Field(default="", max_length=100)
    """Name of an exception or of one of its bases. The name of a built-in exception means that class, never a
    candidate's class of the same name."""
    visible: bool = False
    """True if the candidate was shown this example: passing only visible ones solves nothing."""
    compare: CompareRule | None = None
    """Comparison rule that overrides the spec's."""


class Run(SpecData):
    """One run of the whole program."""

    stdin: str = Field(default="", max_length=LITERAL_CHARS)
    expected: str = Field(default="", max_length=LITERAL_CHARS)
    """Expected standard output."""
    arguments: tuple[str, ...] = Field(default=(), max_length=100)
    exit_code: int | None = 0
    """Expected exit code; None for any."""
    visible: bool = False


class MetamorphicRelation(SpecData):
    """Relation between results for related inputs, which needs no expected value. Inputs are generated.

    `permutation`: the order of the items of an argument does not matter. `reversal`: that argument reversed gives the
    result reversed. `swap`: the first two arguments may be exchanged. `involution`: f(f(x)) is x. `idempotence`:
    f(f(x)) is f(x). `inverse`: `other`(f(x)) is x. `monotone`: a larger argument never gives a smaller result. `scale`:
    the argument times `factor` (item by item for a list) gives the result times `result_factor`. `shift`: `factor` is
    added instead, and `result_factor` to the result.
    """

    kind: Literal[
        "permutation", "reversal", "swap", "involution", "idempotence", "inverse", "monotone", "scale", "shift"
    ]
    argument: int = Field(default=0, ge=0, le=50)
    """Index of the argument that is changed, from 0."""
    other: str = Field(default="", max_length=100)
    factor: int = 2
    result_factor: int = 2
    count: int = Field(default=20, ge=1, le=500)


class Tool(SpecData):
    """Commands that build and run a program in another language. `{file}` is the path of the source, below /work."""

    file: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}$")
    run: tuple[str, ...] = Field(min_length=1, max_length=50)
    """Run command; starts with a full path inside the sandbox."""
    build: tuple[str, ...] = Field(default=(), max_length=50)
    """Build command, likewise; runs once before the tests."""


class ProgramSpec(SpecModel):
    """Visible and hidden tests of a program; the submission is its source. Expected values never enter its sandbox.

    With `function`, the program is imported and that function is called, one input at a time. Without it, the program
    is run as a whole for each of `runs`. Test files of unittest or pytest are not supported: their assertions would run
    in the candidate's process, or call it through a proxy in the middle of a test; either gives the candidate a say in
    its own verdict. Express them as examples, generated inputs, relations and properties.
    """

    kind: Literal["program"] = "program"
    language: str = Field(default="python", max_length=40)
    tool: Tool | None = None
    """Commands for a language that is not built in."""
    function: str = Field(default="", max_length=100)
    driver: str = Field(default="", max_length=SOURCE_CHARS)
    """Python source with `drive(solution, *arguments)`, called instead of the function: for classes, generators,
    several calls. It runs beside the candidate, which can read it, so it must contain no secret; its result is compared
    outside."""
    examples: tuple[Example, ...] = Field(default=(), max_length=5_000)
    runs: tuple[Run, ...] = Field(default=(), max_length=2_000)
    inputs: tuple[Generator, ...] = Field(default=(), max_length=20)
    """Generators: one per argument of the function or, for whole programs, one per line of standard input, in which
    list items are separated by spaces."""
    generate: int = Field(default=0, ge=0, le=5_000)
    """Number of inputs generated for the reference and the properties."""
    reference: str = Field(default="", max_length=SOURCE_CHARS)
    """Right solution, in the same language and with the same function; runs in sandboxes without candidates. Inputs for
    which it raises, or exits with a non-zero code, are skipped. It runs twice, in different orders, and must agree with
    itself; each run has the time of one submission."""
    maker: str = Field(default="", max_length=SOURCE_CHARS, exclude_if=operator.not_)
    """Python program that prints an input for whole programs, for tests that are too large to store. It runs like the
    reference, once for each of `cases`."""
    cases: tuple[str, ...] = Field(default=(), max_length=100, exclude_if=operator.not_)
    """Standard input of the maker, one text for each test."""
    slack: float = Field(default=0.0, ge=0, le=1_000, exclude_if=operator.not_)
    """Time limit of a whole program's test as a multiple of the reference's CPU time on it, if that exceeds
    `seconds`. The reference is measured in a sandbox of the same size."""
    properties: tuple[str, ...] = Field(default=(), max_length=20)
    """Python sources with `holds(result, *arguments)`, which must return True. They run like the reference, separately.
    All calls for one submission share its time limit; after that, nothing is decided."""
    relations: tuple[MetamorphicRelation, ...] = Field(default=(), max_length=20)
    seed: int = Field(default=0, ge=0, le=1 << 62)
    """Seed of the generated inputs."""
    compare: CompareRule = CompareRule()
    output: OutputRule = "lines"
    """Comparison of standard output; `numbers` uses the tolerances of `compare`."""
    seconds: float = Field(default=2.0, gt=0, le=120)
    """Time limit of one test, in seconds of its own time."""
    total_seconds: float = Field(default=60.0, gt=0, le=3_600)
    """Time limit of all tests together, in seconds."""
    memory_mib: int = Field(default=256, ge=64, le=16_384)
    output_bytes: int = Field(default=16_384, ge=256, le=8 << 20)
    """Output limit of one test, in bytes: printed text and, in the judge's notation, the result."""
    fresh: bool = False
    """True to use a new process for each test, so that no state survives between tests."""
    twice: Literal["always", "if_chancy", "never"] = "always"
    """Repetition of passed tests: all of them, in another order, and they must pass again. `if_chancy` is an older name
    of `always`: a source need not reveal that it uses random numbers."""
    suspicion: Literal["explains", "refuses"] = "explains"
    """Effect of a strong signal (`verifiers.programs.functions`): explains a failure, or also refuses a pass."""
    partial: bool = False
    """True to score a program that fails some tests by the share that it passed."""
