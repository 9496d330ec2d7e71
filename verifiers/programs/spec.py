"""What a program is checked against: pure data.

Values are written as Python literals in text (`[1, 2], key=(3, 4)`), so that a tuple, bytes or a set can be said, and
so that a spec can be stored as JSON or TOML and hashed. `verifiers.programs.checking` says which specs are refused.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecData, SpecModel
from verifiers.programs.data.compare import CompareRule, OutputRule
from verifiers.programs.data.generators import Generator

LITERAL_CHARS = 1_000_000
SOURCE_CHARS = 200_000


class Example(SpecData):
    """One call of the function, and what comes of it: exactly one of a value and an exception."""

    arguments: str = Field(default="", max_length=LITERAL_CHARS)
    """As between the brackets of a call."""
    expected: str = Field(default="", max_length=LITERAL_CHARS)
    raises: str = Field(default="", max_length=100)
    """The name of an exception, or of one of its bases. A name that Python has built in means that class, and none of
    the candidate's that is called the same."""
    visible: bool = False
    """Whether the candidate was shown it: a program that passes only these is no solution."""
    compare: CompareRule | None = None
    """Instead of the spec's own."""


class Run(SpecData):
    """One run of the whole program."""

    stdin: str = Field(default="", max_length=LITERAL_CHARS)
    expected: str = Field(default="", max_length=LITERAL_CHARS)
    """What it must print on standard output."""
    arguments: tuple[str, ...] = Field(default=(), max_length=100)
    exit_code: int | None = 0
    """None: any."""
    visible: bool = False


class MetamorphicRelation(SpecData):
    """Something that holds between results for related inputs, whatever the right result is. Inputs are generated.

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
    """Which one is changed, counted from 0."""
    other: str = Field(default="", max_length=100)
    factor: int = 2
    result_factor: int = 2
    count: int = Field(default=20, ge=1, le=500)


class Tool(SpecData):
    """How a program in another language is built and run. `{file}` is where the source lies, below /work."""

    file: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}$")
    run: tuple[str, ...] = Field(min_length=1, max_length=50)
    """The first is a full path inside the sandbox."""
    build: tuple[str, ...] = Field(default=(), max_length=50)
    """Likewise; run once, before."""


class ProgramSpec(SpecModel):
    """Tests, visible and hidden; the submission is the source. Expected values never enter its sandbox.

    With `function`, the program is imported and that function is called, one input at a time. Without, the program is
    run as a whole for each of `runs`. Test files of unittest or pytest are not taken: their assertions would have to
    run in the candidate's process, or call it through a proxy in the middle of a test, and either gives the candidate
    a say in its own verdict. What they test is said with examples, generated inputs, relations and properties.
    """

    kind: Literal["program"] = "program"
    language: str = Field(default="python", max_length=40)
    tool: Tool | None = None
    """For a language that is not known here."""
    function: str = Field(default="", max_length=100)
    driver: str = Field(default="", max_length=SOURCE_CHARS)
    """Python with `drive(solution, *arguments)`, which is called instead, for classes, generators, several calls. It
    runs beside the candidate, which can read it: nothing in it may be secret, and what it returns is compared here."""
    examples: tuple[Example, ...] = Field(default=(), max_length=5_000)
    runs: tuple[Run, ...] = Field(default=(), max_length=2_000)
    inputs: tuple[Generator, ...] = Field(default=(), max_length=20)
    """One for each argument of the function, for inputs that are generated; for whole programs one for each line of
    standard input, a list with blanks between its items."""
    generate: int = Field(default=0, ge=0, le=5_000)
    """How many inputs are generated for the reference and the properties."""
    reference: str = Field(default="", max_length=SOURCE_CHARS)
    """A solution that is right, in the same language and with the same function; it runs in a sandbox that no candidate
    gets. An input for which it raises, or ends with another code than 0, is none. It is asked twice, in another order,
    and has to say the same; all of it has the time that a submission has."""
    properties: tuple[str, ...] = Field(default=(), max_length=20)
    """Each Python with `holds(result, *arguments)`, which must be True. They run like the reference, apart from it. All
    calls for one submission together have the time that it has; when that is over, nothing is known."""
    relations: tuple[MetamorphicRelation, ...] = Field(default=(), max_length=20)
    seed: int = Field(default=0, ge=0, le=1 << 62)
    """Other inputs for another seed."""
    compare: CompareRule = CompareRule()
    output: OutputRule = "lines"
    """How standard output is compared; `numbers` takes the tolerances of `compare`."""
    seconds: float = Field(default=2.0, gt=0, le=120)
    """Of one test, of its own time."""
    total_seconds: float = Field(default=60.0, gt=0, le=3_600)
    """Of all tests together."""
    memory_mib: int = Field(default=256, ge=64, le=16_384)
    output_bytes: int = Field(default=16_384, ge=256, le=8 << 20)
    """Of one test: what it prints and, in the judge's notation, what it returns."""
    fresh: bool = False
    """A new process for each test, so that nothing is remembered from one to the next."""
    twice: Literal["always", "if_chancy", "never"] = "always"
    """Whether tests that passed are all repeated, in another order, and have to pass again. `if_chancy` is an older
    name of `always`: a source does not have to say that it draws."""
    suspicion: Literal["explains", "refuses"] = "explains"
    """What a strong signal does (`verifiers.programs.signals`): it names a failure, or refuses what passed as well."""
    partial: bool = False
    """Whether a program that fails some tests gets the share that it passed as its score."""
