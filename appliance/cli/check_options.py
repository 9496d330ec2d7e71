"""Options that the commands of `assay check` share, and the specs and texts that they stand for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policies.toml_files import TomlError, read_toml

if TYPE_CHECKING:
    from appliance.errors import AssayError
    from verifiers.spec import Spec

PairsFile = Annotated[
    Path | None, typer.Option("--pairs", metavar="FILE", help="Many at once: one JSON object a line, `-` for input.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Where results go; the same command goes on with what is there."),
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, max=256, help="How many pairs are checked at the same time.")]
Evidence = Annotated[bool, typer.Option("--evidence", help="Show what lets somebody else check the reason.")]
SpecFile = Annotated[
    Path | None, typer.Option("--spec", metavar="SPEC.toml", help="Fields of the spec; see docs/verifiers.md.")
]
Submission = Annotated[
    str | None, typer.Option("--submission", metavar="FILE", help="What is to be checked, `-` for standard input.")
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds", metavar="S", min=0.05, max=86_400, help="Wall clock of a check; what is usual unless given."
    ),
]

MAX_BYTES = 8 << 20
STDIN = "-"
BYTE_ORDER_MARK = "\ufeff"


def usage(message: str, hint: str) -> AssayError:
    """The error to raise for what cannot be asked."""
    from appliance.errors import AssayError, ExitCode

    return AssayError(message, hint, ExitCode.USAGE)


def many(single: Mapping[str, object], pairs: Path | None, out: Path | None, *, needed: bool = True) -> bool:
    """Whether a file of pairs is asked for. `single` are the options that say what a single check is about, by name,
    all of them `needed` for it unless said otherwise. Raises AssayError when both, or neither, are given."""
    present = [name for name, value in single.items() if value is not None]
    if pairs is not None and present:
        raise usage(f"{present[0]} and --pairs both say what to check", "give one of them")
    if pairs is None and needed and len(present) < len(single):
        missing = next(name for name in single if name not in present)
        raise usage(f"{missing} is missing", f"give {' and '.join(single)}, or --pairs FILE")
    if pairs is None and out is not None:
        raise usage("--out is for a file of pairs", "give --pairs FILE, or leave --out out")
    if out is not None and not out.absolute().parent.is_dir():
        raise usage(f"{out.absolute().parent} is no folder", "make it, or name another --out")
    return pairs is not None


def needs(spec: Path | None, pairs: Path | None) -> None:
    """Raises AssayError when nothing says what is true."""
    if spec is None and pairs is None:
        raise usage("--spec is missing", "name a file with the fields of the spec; docs/verifiers.md has examples")


def needs_field(fields: Mapping[str, Any], name: str, pairs: Path | None) -> None:
    """Raises AssayError when neither an option nor the spec's file has what a single check is about."""
    if pairs is None and name not in fields:
        raise usage(f"--{name} is missing", f"give --{name} FILE, or --pairs FILE for many")


def needs_toolchain(folder: Path | None) -> None:
    """Raises AssayError for a folder that is named and holds no Lean."""
    if folder is None:
        return
    from verifiers.lean.toolchain import find

    if find(folder) is None:
        raise usage(
            f"{folder} holds no Lean toolchain", "--lean names the folder of one, such as elan's; it has lib/lean"
        )


def text_of(name: str, option: str) -> str:
    """What a file holds, or standard input. Raises AssayError for what is no text, or too much."""
    try:
        if name == STDIN:
            data = _standard_input(option)
        else:
            with Path(name).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise usage(f"{name}: {error.strerror}", f"{option} names a file that can be read, or `-`") from error
    if len(data) > MAX_BYTES:
        raise usage(f"{name} is longer than {MAX_BYTES >> 20} MiB", "nothing that long is checked")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise usage(f"{name} is not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def _standard_input(option: str) -> bytes:
    """Raises AssayError where there is none, or where another option has read it."""
    if sys.stdin is None or sys.stdin.closed:
        raise usage(f"{option}: there is no standard input left to read", "only one option can be `-`; name a file")
    with sys.stdin as stream:
        return stream.buffer.read(MAX_BYTES + 1)


def fields_of(file: Path | None, kind: str) -> dict[str, Any]:
    """The fields of a TOML file, which may name its kind but no other one. Raises AssayError, SpecError."""
    if file is None:
        return {}
    if kind in ("program", "checklist"):
        return _dumped(_spec_in(file, kind))
    try:
        fields = read_toml(text_of(str(file), "--spec").removeprefix(BYTE_ORDER_MARK))
    except TomlError as error:
        raise usage(f"{file} is not TOML: {error}", 'write lines like: form = "equal"') from error
    found = fields.pop("kind", kind)
    if found != kind:
        raise usage(f"{file} is a spec of the kind {found!r}, not {kind!r}", "use the command that is for it")
    return fields


def _spec_in(file: Path, kind: str) -> Spec:
    """Raises AssayError, or SpecError that names the file."""
    if kind == "checklist":
        from verifiers.checklists.files import checklist_from, read_checklist

        if str(file) != STDIN:
            return read_checklist(file)
        return checklist_from(text_of(STDIN, "--spec"), Path())
    from verifiers.errors import SpecError
    from verifiers.programs.files import spec_of_toml

    text = text_of(str(file), "--spec").removeprefix(BYTE_ORDER_MARK)
    try:
        return spec_of_toml(text)
    except SpecError as error:
        raise SpecError(f"{file}: {error}", hint=error.hint) from error


def _dumped(spec: Spec) -> dict[str, Any]:
    return spec.model_dump(mode="json", exclude={"kind"})


def spec_of(kind: str, fields: Mapping[str, Any]) -> Spec:
    """Raises AssayError for fields that make no spec."""
    from pydantic import ValidationError

    from verifiers.spec import SPEC
    from verifiers.spec_faults import first_fault

    try:
        return SPEC.validate_python({**fields, "kind": kind})
    except ValidationError as error:
        raise usage(
            f"spec: {first_fault(error, within=1)}", "docs/verifiers.md lists the fields of every spec"
        ) from error


def claim_of(file: str | None) -> dict[str, Any]:
    """The spec that a claim's file is. Raises AssayError, SpecError."""
    if file is None:
        return {}
    from verifiers.errors import SpecError
    from verifiers.smt.files import claim_spec

    text = text_of(file, "--claim")
    try:
        return _dumped(claim_spec(text))
    except SpecError as error:
        raise SpecError(f"{file}: {error}", hint=error.hint) from error


def terms_of(file: str | None, fields: Mapping[str, Any]) -> str:
    """What is submitted to a claim; without a file, what is said where a claim asks for no terms. Raises AssayError."""
    if file is not None:
        return text_of(file, "--submission")
    from verifiers.smt.files import default_submission
    from verifiers.spec import SmtSpec

    spec = spec_of("smt", fields)
    assert isinstance(spec, SmtSpec)
    said = default_submission(spec)
    if said is None:
        raise usage(f"this claim asks for terms ({spec.question})", "give them with --submission FILE")
    return said


def given(**options: Any) -> dict[str, Any]:
    """Those options that were given."""
    return {name: value for name, value in options.items() if value is not None}
