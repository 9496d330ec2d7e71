"""TOML format of a program spec, as people write it.

    function = "solve"
    reference = '''
    def solve(numbers):
        return sum(n * n for n in numbers)
    '''
    generate = 100

    [[inputs]]
    kind = "list"
    of = { kind = "integer", low = -50, high = 50 }

    [[examples]]
    arguments = "[1, 2, 3]"
    expected = "14"
    visible = true

`arguments` and `expected` are Python literals in text. Any other TOML value is taken as it is: `expected = 14`,
`arguments = [[1, 2, 3], "text"]` (a list of the arguments). The keys are those of `ProgramSpec`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from common.bounded_models import first_fault
from common.toml_files import TomlError, read_toml
from verifiers.contract.errors import SpecError
from verifiers.programs import checking
from verifiers.programs.data.values import NotPlainError, literal, of_native
from verifiers.programs.spec import ProgramSpec

MOST_CHARS = 20_000_000


def spec_of_toml(text: str, _folder: Path = Path()) -> ProgramSpec:
    """Parses a program spec from TOML text. Raises SpecError for invalid text or an unusable spec."""
    if len(text) > MOST_CHARS:
        raise SpecError(f"the file has more than {MOST_CHARS} characters")
    try:
        found = read_toml(text)
    except TomlError as error:
        raise SpecError(f"not TOML: {error}", hint='Write lines like: function = "median"') from error
    return spec_of_table(found)


def spec_of_table(found: dict[str, Any]) -> ProgramSpec:
    """Builds a program spec from a parsed TOML table, whose examples are modified in place. Raises SpecError."""
    examples = found.get("examples", [])
    if not isinstance(examples, list) or not all(isinstance(example, dict) for example in examples):
        raise SpecError("`examples` are tables", hint="Write each as [[examples]].")
    for place, example in enumerate(examples):
        _in_literals(example, f"example {place + 1}")
    try:
        spec = ProgramSpec.model_validate(found)
    except ValidationError as error:
        raise SpecError(str(first_fault(error)), hint="docs/verifiers/program.md lists the fields.") from error
    checking.check(spec)
    return spec


def _in_literals(example: dict[str, Any], name: str) -> None:
    """Converts an example's `arguments` list and its `expected` value to Python literals, in place; text stays. Raises
    SpecError, which begins with `name`."""
    try:
        arguments = example.get("arguments", "")
        if isinstance(arguments, list):
            example["arguments"] = ", ".join(literal(of_native(value)) for value in arguments)
        elif not isinstance(arguments, str):
            raise SpecError(f"{name}: `arguments` must be text or a list of the arguments")
        if "expected" in example and not isinstance(example["expected"], str):
            example["expected"] = literal(of_native(example["expected"]))
    except NotPlainError as error:
        raise SpecError(f"{name}: {error}") from error
