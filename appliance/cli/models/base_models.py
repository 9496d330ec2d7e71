"""`assay model import` and `assay model export`: base models in, plain model folders out. Neither needs the daemon."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, prints, short, show_fields, show_line, show_table
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.models.local_models import ImportableModel

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME@]SOURCE",
        help="A model folder, a tar archive of one, gguf:FILE, ollama:MODEL[:TAG], hub:ORG/NAME[@REVISION], "
        "lmstudio:PUBLISHER/REPOSITORY[/FILE] or smollm2; NAME is its name from then on. Without it, list the models "
        "on this machine.",
    ),
]


class ExportForm(StrEnum):
    """Output format of a model."""

    FOLDER = "folder"
    GGUF = "gguf"


class ImportedModel(FrozenModel):
    name: str
    folder: str
    digest: str
    parameters: int
    license: str
    known: bool
    """True if the model was registered before, with the same files."""
    quantised_from: str
    """Number formats of the weights in a GGUF file; empty for weights that were not quantized."""
    dropped: list[str]
    """Parts of the source that the registered model does not have."""


class ExportedModel(FrozenModel):
    folder: str | None
    """Written folder, or file for llama.cpp."""
    gguf: str | None
    digest: str
    merged: bool
    difference: float
    """Largest difference of log-probabilities between merged and unmerged, in nats."""
    tensors: int | None
    """Tensors in a GGUF file."""
    template: str
    """Reason that the chat template does not write the trained format exactly; empty if it does."""


@prints
def import_model(
    source: Source = None,
    license_file: Annotated[
        Path | None, typer.Option("--license", metavar="FILE", help="Licence text, if the source has none.")
    ] = None,
) -> Output[ImportedModel | Annotated[list[ImportableModel], "without SOURCE"]]:
    """Check a base model and store it in the data folder, with its licence text.

    A name such as hub:ORG/NAME refers to files that another program has stored here; nothing is downloaded. Quantized
    weights become float32. Exit code 0: it is stored, or already was; 2: unsound or unsupported model, missing licence
    text, or name in use; 5: unreadable, or not writable.

    Example: assay model import qwen3-0.6b@ollama:qwen3:0.6b
    """
    from appliance.models.local_models import find_models, stores

    places = stores(os.environ, Path.home())
    if source is None:
        found = find_models(places)
        return Output(found, lambda: _show_importable(found))
    from appliance.models.import_model import import_base

    made = import_base(source, data_folder(), places, license_file)
    imported = ImportedModel(
        name=made.name,
        folder=str(made.folder),
        digest=made.digest,
        parameters=made.facts.parameters,
        license=made.license_file,
        known=made.known,
        quantised_from=made.quantised_from,
        dropped=list(made.dropped),
    )
    return Output(imported, lambda: _show_imported(imported))


def _show_importable(found: Sequence[ImportableModel]) -> None:
    show_table(
        ("size", "command"),
        [(f"{one.bytes / 1e9:.1f} GB", f"assay model import {shlex.quote(one.source)}") for one in found],
        empty="no models of Ollama, LM Studio or the Hugging Face cache on this machine: name a folder or a GGUF file",
        whole=True,
    )


def _show_imported(made: ImportedModel) -> None:
    show_line(f"{made.name} {'was already registered' if made.known else 'is registered'}")
    show_fields(
        [
            ("parameters", f"{made.parameters / 1e6:,.1f} million"),
            ("weights", f"float32, from {made.quantised_from}" if made.quantised_from else ""),
            ("digest", short(made.digest)),
            ("licence", str(Path(made.folder) / made.license)),
            *(("left out", one) for one in made.dropped),
            ("what fits", f"assay plan {made.name}"),
            ("to train it", f"assay model use {made.name}"),
        ]
    )


@prints
def export_model(
    model: Annotated[
        str,
        typer.Argument(
            help="champion, candidate, previous, canary, a digest's first digits, or a checkpoint's folder."
        ),
    ],
    target: Annotated[Path, typer.Argument(help="The folder (or file) to write; it must not exist.")],
    base: Annotated[
        str,
        typer.Option(metavar="NAME|DIR", help="Base model of an adapter checkpoint: a registered name or a folder."),
    ] = "",
    form: Annotated[
        ExportForm, typer.Option("--format", help="folder: Hugging Face format; gguf: one file for llama.cpp.")
    ] = ExportForm.FOLDER,
) -> Output[ExportedModel]:
    """Write a model as a plain Hugging Face folder, with every byte checked.

    An adapter checkpoint is merged into its base in float32, and the merged model's log-probabilities are compared with
    those of base and adapter together. GGUF weights keep their types; the file is read again and compared, and
    unsupported models are refused. Exit code 0: written; 2: unknown model or base, or the target exists; 5: damaged
    file, adapter of another base, no GGUF form, or not writable.

    Example: assay model export champion ./my-model
    """
    from appliance.models.export_model import export, export_gguf

    tensors = None
    if form is ExportForm.GGUF:
        done, tensors = export_gguf(model, target, data_folder(), base)
    else:
        done = export(model, target, data_folder(), base)
    exported = ExportedModel(
        folder=str(target) if form is ExportForm.FOLDER else None,
        gguf=str(target) if form is ExportForm.GGUF else None,
        digest=done.digest,
        merged=done.merged,
        difference=done.difference,
        tensors=tensors,
        template=done.template,
    )
    lines = [f"wrote model {short(done.digest)} to {target}"]
    if tensors is not None:
        lines.append(f"{tensors} tensors, verified against the model")
    if done.template:
        lines.append(f"chat template: {done.template}")
    if done.merged:
        lines.append(f"merged in float32; log-probabilities differ by at most {done.difference:.1e} nats")
    return Output(exported, lines)
