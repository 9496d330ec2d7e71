"""Description of a files spec, the statement parts its verdict covers, and files that a check should reject. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from verifiers.contract import examples as e
from verifiers.contract.statement import StatementPart, Verified, decided, not_covered
from verifiers.contract.text import one_line, quoted
from verifiers.contract.verdict import Verdict
from verifiers.files.spec import FilesSpec


def explain(spec: FilesSpec) -> Iterator[str]:
    yield f"Required files: {', '.join(spec.declared)}."
    for condition in spec.files:
        if condition.mode is not None:
            yield f"{condition.path} has the mode {condition.mode}."
        if condition.equals is not None:
            yield f"{condition.path} has these lines:"
            yield from quoted(condition.equals)
    for command in spec.commands:
        yield f"This runs beside the files in a fresh sandbox, for at most {spec.seconds:g} s:"
        yield f"    {one_line(' '.join(command.command))}"
        for file in command.files:
            yield f"  with {file.path} (mode {file.mode}):"
            yield from quoted(file.text)
        if command.stdin:
            yield "  with this input:"
            yield from quoted(command.stdin)
        if command.exit_code is not None:
            yield f"  It must exit with code {command.exit_code}."
        if command.stdout is not None:
            yield "  It must print:"
            yield from quoted(command.stdout)
        for file in command.leaves:
            yield f"  It must leave this in {file.path}:"
            yield from quoted(file.text)
    if spec.suite is not None:
        yield f"{len(spec.suite.tests)} tests run with the changed files in a fresh copy of the repository. Each must"
        yield f"  pass and observe the expected values, all within {spec.seconds:g} s of processor time."
    if spec.foreign is not None and not spec.foreign.command:
        yield "The environment adds a score of its own, which is not a verdict."
    elif spec.foreign is not None:
        yield f"A test of the task adds a score, which is not a verdict: {one_line(' '.join(spec.foreign.command))}"
        yield f"  for at most {spec.foreign.seconds:g} s, with {len(spec.foreign.files)} files of its own."


def parts(spec: FilesSpec, verdict: Verdict) -> Verified:
    what = "that the declared files hold what was asked"
    if spec.commands:
        what += f", and that {len(spec.commands)} commands make of them what was expected"
    if spec.suite is not None:
        what += f", and that {len(spec.suite.tests)} tests of the repository pass with them"
    limits: list[StatementPart] = [
        not_covered("what else was done in the terminal", "only the declared files are judged")
    ]
    if spec.foreign is not None:
        limits.append(not_covered("what the test that came with the task says", "it ran beside the submission"))
    return Verified([decided(verdict, what)], limits)


def examples(spec: FilesSpec, answer: str | None, try_: e.AskVerifier) -> e.ExampleReport:
    def of(text: str, mode: str = "644") -> str:
        return json.dumps({path: {"text": text, "mode": mode} for path in spec.declared})

    inputs = [
        *e.of_the_job(spec, answer),
        e.ExampleInput("mutant", "empty files", spec, of("")),
        e.ExampleInput("mutant", "scripts that exit immediately with success", spec, of("exit 0\n", "755")),
        e.ExampleInput(
            "mutant", "links instead of files", spec, json.dumps({p: {"problem": "a link"} for p in spec.declared})
        ),
        e.ExampleInput("mutant", "empty", spec, "{}"),
    ]
    return e.ExampleReport(tuple(try_(e.distinct(inputs))))
