"""Plain-text explanation of a Lean statement, and the claims of a verdict about its proof. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.contract.errors import SpecError
from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.text import one_line, quoted
from verifiers.contract.verdict import Verdict
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import read_statement


def explain(spec: LeanSpec) -> Iterator[str]:
    try:
        name = read_statement(spec).full_name
    except SpecError as error:
        yield f"A statement that cannot be read: {error}"
    else:
        yield f"A proof, accepted by Lean's kernel, of the theorem {name} as stated here:"
    yield from quoted(spec.statement)
    yield "Names have the meaning that the imports and definitions above give them; nothing else is assumed."
    yield "Everything before the last colon of the theorem's head is an assumption, or holds for all values."
    if spec.imports:
        yield f"A proof may also import: {', '.join(spec.imports)}."
    if spec.require_replay:
        yield "Every declaration must be accepted again, by a kernel that never ran the proof."
    if spec.kernels == 2:
        yield "An independent kernel, which the machine's owner installed, must accept the theorem as well."
    yield f"It has {spec.seconds:g} s, {spec.memory_mib} MiB and {spec.heartbeats} heartbeats to compile."


def visible(spec: LeanSpec) -> str:
    return spec.statement


def question(spec: LeanSpec, asked: str | None) -> str:
    """Returns the person's question or, without one, a question made from the theorem."""
    return asked if asked is not None else f"Prove this in Lean 4.\n\n{spec.statement.strip()}"


def parts(spec: LeanSpec, verdict: Verdict) -> Verified:
    axioms = verdict.evidence.get("axioms")
    named = ", ".join(one_line(str(axiom)) for axiom in axioms[:10]) if isinstance(axioms, list) and axioms else "none"
    theorem = one_line(str(verdict.evidence.get("theorem", "the theorem")))
    replayed = verdict.evidence.get("kernel_replayed") == "yes"
    detail = f"Lean's kernel, axioms: {named}, kernel_replayed: {'yes' if replayed else 'no'}"
    if isinstance(kernel := verdict.evidence.get("kernel"), str):
        detail += f", kernel: {one_line(kernel)}"
    if isinstance(second := verdict.evidence.get("second_kernel"), str):
        detail += f", second kernel: {one_line(second)} {one_line(str(verdict.evidence.get('second_verdict')))}"
    limits = []
    if not replayed:
        what = "that the kernel accepts every declaration a second time, apart from the submission"
        limits.append(not_covered(what, "kernel_replayed: no", needed=spec.require_replay))
    return Verified([decided(verdict, f"that {theorem} is a theorem as it is stated", detail)], limits)
