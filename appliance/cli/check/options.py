"""Converts the options of an `assay check` command to a spec and a submission."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from appliance.cli.shell.inputs import STDIN, text_of
from appliance.errors import UsageError
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from verifiers.contract.kinds import Kind, KindOption
    from verifiers.registry.spec import Spec

BYTE_ORDER_MARK = "\ufeff"


class CheckRun(FrozenModel):
    """Options of `assay check` shared by all kinds of checks."""

    spec: Path | None = Field(
        None, description="Fields of the spec; see docs/verifiers.md.", json_schema_extra={"metavar": "SPEC.toml"}
    )
    pairs: Path | None = Field(
        None,
        description="Check many: one JSON object per line, `-` for standard input.",
        json_schema_extra={"metavar": "FILE"},
    )
    out: Path | None = Field(
        None, description="File for results; the same command continues it.", json_schema_extra={"metavar": "FILE"}
    )
    jobs: int = Field(1, ge=1, le=256, description="Pairs checked concurrently.")
    seconds: float | None = Field(
        None,
        ge=0.05,
        le=86_400,
        description="CPU time limit of a check (default: the kind's usual limit).",
        json_schema_extra={"metavar": "S"},
    )
    evidence: bool = Field(False, description="Show the evidence for the reason.")


def missing(flag: str, metavar: str) -> UsageError:
    """Returns the error that reports a required option as missing."""
    return UsageError(f"{flag} is missing", f"give {flag} {metavar or 'TEXT'}, or --pairs FILE for many")


def require_pairs_or_one(run: CheckRun, single: list[str]) -> None:
    """Raises AssayError unless exactly one of a file of pairs and a single check is given. `single` are flags of the
    latter."""
    if run.pairs is not None and single:
        raise UsageError(f"{single[0]} and --pairs cannot be combined", "give one of them")
    if run.pairs is None and run.out is not None:
        raise UsageError("--out requires --pairs", "give --pairs FILE, or omit --out")
    if run.out is not None and not run.out.absolute().parent.is_dir():
        raise UsageError(f"--out: no such folder ({run.out.absolute().parent})", "create it, or name another file")


def require_fields(kind: Kind, fields: Mapping[str, Any]) -> None:
    """Raises AssayError, naming the option, if a check of one submission lacks a required field of its spec."""
    flags = {option.field: option for option in kind.options}
    for name, field in kind.spec.load().model_fields.items():
        if field.is_required() and name not in fields and name != "kind" and name in flags:
            raise missing(flags[name].flag, flags[name].metavar)
    if kind.spec_file is not None and not fields:
        raise UsageError("--spec is missing", "name a file with the spec's fields; see docs/verifiers/ for examples")


def key_option(kind: Kind) -> KindOption | None:
    """Returns the option that each line of a pairs file gives under its own name, such as `gold`. None if this kind of
    check has none."""
    required = kind.spec.load().model_fields
    return next(
        (
            option
            for option in kind.options
            if kind.submission.takes == "text" and option.takes == "text" and required[option.field].is_required()
        ),
        None,
    )


def require_toolchain(folder: Path | None) -> None:
    """Raises AssayError if the given folder has no Lean."""
    if folder is None:
        return
    from verifiers.lean.toolchain import find

    if find(folder) is None:
        raise UsageError(
            f"{folder}: no Lean toolchain", "set --lean to a toolchain folder, such as elan's, with lib/lean"
        )


def fields_in(kind: Kind, file: Path | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Merges the fields of a check's spec from its sources. A text file itself comes first, then --spec, then the
    options; `values` are by flag. Raises AssayError, SpecError."""
    read: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for option in kind.options:
        value = values.get(option.flag)
        if value is None:
            continue
        if option.takes == "file":
            text = text_of(value, option.flag)
            found = {option.field: text} if option.read is None else _read(option.read.load(), text, Path(value))
            (given if option.read is None else read).update(found)
        else:
            given[option.field] = option.sets or value
    return read | _fields_of(kind, file) | given


def _fields_of(kind: Kind, file: Path | None) -> dict[str, Any]:
    """Reads the spec fields in a --spec file, whose kind of check must match if given. Raises AssayError, SpecError."""
    if file is None:
        return {}
    text = text_of(str(file), "--spec").removeprefix(BYTE_ORDER_MARK)
    if kind.spec_file is not None:
        return _read(kind.spec_file.load(), text, file)
    from common.toml_files import TomlError, read_toml

    try:
        fields = read_toml(text)
    except TomlError as error:
        raise UsageError(f"{file} is not TOML: {error}", 'write lines like: form = "equal"') from error
    found = fields.pop("kind", kind.name)
    if found != kind.name:
        raise UsageError(f"{file} is a spec of the kind {found!r}, not {kind.name!r}", "use that kind's command")
    return fields


def _read(read: Any, text: str, file: Path) -> dict[str, Any]:
    """Reads spec fields from text with a kind's own parser. Raises SpecError that names the file."""
    from verifiers.contract.errors import SpecError

    try:
        spec: Spec = read(text, Path() if str(file) == STDIN else file.parent)
    except SpecError as error:
        raise SpecError(f"{file}: {error}", hint=error.hint) from error
    return spec.model_dump(mode="json", exclude={"kind"})


def spec_of(kind: Kind, fields: Mapping[str, Any]) -> Spec:
    """Builds the spec of a check from its fields. Raises AssayError for invalid ones."""
    from pydantic import ValidationError

    from common.bounded_models import first_fault
    from verifiers.registry.spec import SPEC

    try:
        return SPEC.validate_python({**fields, "kind": kind.name})
    except ValidationError as error:
        raise UsageError(f"spec: {first_fault(error)}", "see docs/verifiers/ for the fields of each kind") from error


def submission_of(kind: Kind, spec: Spec, value: str | None) -> str:
    """Returns the submission to check: the option's text, or its file's, or the kind's default for such a spec. Raises
    AssayError if it is missing or unreadable."""
    option = kind.submission
    if value is None:
        default = option.default.load()(spec) if option.default is not None else None
        if default is None:
            raise missing(option.flag, option.metavar)
        return str(default)
    if option.takes == "file":
        return text_of(value, option.flag)
    return text_of(STDIN, option.flag).removesuffix("\n") if value == STDIN else value
