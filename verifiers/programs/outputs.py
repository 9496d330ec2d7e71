"""What a reference prints for generated input, for whole programs.

What always holds: it runs in a sandbox that no candidate gets; how its output has to be compared is not decided here.
"""

from __future__ import annotations

from runtime.sandbox import CallStatus
from verifiers.errors import SpecError
from verifiers.programs.clocks import Clock, Limit
from verifiers.programs.compare import printed
from verifiers.programs.findings import Finding, clip
from verifiers.programs.guests import SPEC_SECONDS, Opening
from verifiers.programs.judges import enough
from verifiers.programs.plan import generated, stdin_of
from verifiers.programs.spec import ProgramSpec, Run
from verifiers.programs.streams import Program
from verifiers.programs.values import Value


def outputs(spec: ProgramSpec, opening: Opening) -> dict[int, Value]:
    """Standard output for each generated input, by its place; input for which the reference does not end with 0 is left
    out. Raises SpecError for a reference that is wrong about a run, or ends in no way at all, and SandboxError."""
    program = Program(spec, spec.reference, opening, clock=Clock(float("inf"), float("inf")))
    found: dict[int, Value] = {}
    try:
        for place, run in enumerate(spec.runs):
            code, text = _ran(program, run, spec)
            if (run.exit_code is not None and code != run.exit_code) or not printed(
                run.expected, text, spec.output, absolute=spec.compare.absolute, relative=spec.compare.relative
            ):
                raise SpecError(
                    f"the reference disagrees with run {place + 1}: it prints {clip(ascii(text))} and ends with {code}",
                    hint="One of the two is wrong.",
                )
        inputs = generated(spec)
        for place, arguments in enumerate(inputs):
            code, text = _ran(program, Run(stdin=stdin_of(arguments)), spec)
            if code == 0:
                found[place] = text
    finally:
        program.close()
    enough(len(found), len(inputs))
    if len({run.expected.strip() for run in spec.runs} | {str(text).strip() for text in found.values()}) == 1:
        raise SpecError(
            "the reference prints the same for every input, so a constant passes",
            hint="Declare `inputs` for which it prints something else.",
        )
    return found


def _ran(program: Program, run: Run, spec: ProgramSpec) -> tuple[int, str]:
    told = program.run(run, Limit.of(max(SPEC_SECONDS, spec.seconds)))
    if isinstance(told, Finding):
        raise SpecError(f"the reference cannot be used: {told.reason}")
    if told.status is not CallStatus.OK or told.exit_code is None:
        raise SpecError(f"the reference does not end on {clip(ascii(run.stdin), 80)}: {told.status}")
    return told.exit_code, told.stdout.decode("utf-8", "surrogateescape")
