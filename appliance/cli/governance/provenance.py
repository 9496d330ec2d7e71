"""`assay model provenance`: checks a model's origin offline, by its trainer's attestation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from appliance.audit.machine_keys import public_file
from appliance.cli.shell.named import ALIASES
from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, prints, show_fields, show_line
from appliance.errors import AssayError, ExitCode, UsageError
from appliance.models.export_model import recorded_alias
from policies.attestation import MANIFEST, verify_attestation
from policies.envelopes import PublicKey
from policies.errors import StatementRefused
from runtime.model import FrozenModel


class ProvenanceDocument(FrozenModel):
    subjects: dict[str, str]
    predicate: dict[str, Any]
    """SLSA provenance, version 1."""


@prints
def provenance(
    model: Annotated[
        str, typer.Argument(help="An attestation file, an alias such as champion, or a digest's first digits.")
    ],
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="The trainer's public key (keys/trainer.pub), saved earlier."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--model", metavar="DIR", help="Also read every byte of this model folder.")
    ] = None,
) -> Output[ProvenanceDocument]:
    """Check a model's attestation, and show its inputs (exit code 1 if it does not hold).

    Example: assay model provenance 3f2a91
    """
    from appliance.learning.errors import CheckpointError
    from appliance.learning.folders import verify

    place = read_settings().data
    file = _attestation(place, model)
    public = key or public_file(place, "trainer")
    try:
        found = verify_attestation(
            file.read_bytes(),
            PublicKey.read(public.read_text(encoding="utf-8")),
            manifest=verify(folder) if folder else None,
        )
    except (StatementRefused, CheckpointError) as error:
        raise AssayError(f"{file} is invalid: {error}", error.hint, ExitCode.FAILED_VERDICT) from error
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file} cannot be checked with {public}: {getattr(error, 'strerror', None) or error}",
            "name the attestation, and the trainer's public key with --key",
        ) from error
    document = ProvenanceDocument(subjects=dict(found.subjects), predicate=dict(found.predicate))
    return Output(document, lambda: _show(document, folder))


def _show(found: ProvenanceDocument, folder: Path | None) -> None:
    build, run = found.predicate["buildDefinition"], found.predicate["runDetails"]
    show_fields(
        [
            ("model", found.subjects[MANIFEST]),
            ("made by", run["builder"]["id"]),
            ("in", build["externalParameters"]["cycle"]),
            *((one["name"], one["digest"]["sha256"]) for one in build["resolvedDependencies"]),
            *run["builder"]["version"].items(),
            ("finished", run["metadata"]["finishedOn"]),
        ]
    )
    checked = "every byte of the folder matches" if folder else "no model folder was read: see --model"
    show_line(f"the signature is valid; {checked}")


def _attestation(data: Path, model: str) -> Path:
    file = Path(model)
    if file.is_file():
        return file
    if model in ALIASES:
        named = recorded_alias(data / "ledger.sqlite3", model)
        if named is None:
            raise UsageError(f"no {model} here", "list the models with `assay model ls`")
        model = named
    safe = model.isalnum() and len(model) >= 6
    found = sorted((data / "attestations").glob(f"{model}*.json")) if safe else []
    if len(found) != 1:
        raise UsageError(
            f"{len(found)} attestations match {model!r}",
            "name its file, or at least six digits of a model that this data folder made",
        )
    return found[0]
