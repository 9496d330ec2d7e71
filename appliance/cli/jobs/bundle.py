"""`assay verify` and `assay bundle`: for holders of a bundle, with or without an appliance."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.check.options import require_toolchain
from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, prints, prints_without_data
from appliance.jobs.validation import meaning_file
from appliance.text.printable import printable
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.cli.jobs.verify import UnreadableBundle
    from appliance.jobs.report import BundleReport

app = typer.Typer(help="Pack a bundle into one file, or unpack it.", no_args_is_help=True)

SUFFIX = ".zip"
JOB_ID = re.compile(r"job-[0-9a-f]+")
Out = Annotated[Path | None, typer.Option("--out", metavar="PATH", help="Target; must not exist.")]


class WrittenFile(FrozenModel):
    """A file that was written, and its place."""

    file: str
    also: str = ""
    """The person's later signature of a bundle, which is not inside it."""


@prints
def verify(
    bundle: Annotated[Path, typer.Argument(help="The bundle: its folder, its one file, or the id of a job here.")],
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="SHA256", help="Expected SHA-256 of its manifest.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Public key that must have sealed it, saved earlier.")
    ] = None,
    person_key: Annotated[
        list[Path] | None,
        typer.Option("--person-key", metavar="FILE", help="Public key of a person who signed (repeatable)."),
    ] = None,
    lean: Annotated[
        Path | None, typer.Option("--lean", metavar="DIR", help="Lean toolchain for proofs (default: elan's).")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the result as a page.")] = None,
) -> Output[BundleReport | Annotated[UnreadableBundle, "where nothing can be read (exit code 2)"]]:
    """Verify a bundle again, without the daemon, and list what was not checked.

    Exit code 0 if everything holds, 1 if any byte, the seal, the statement or the verdict does not, 2 without a
    readable bundle or key, 5 if this machine cannot run the verifier.

    Example: assay verify bundle.zip --html report.html
    """
    from appliance.cli.jobs.verify import verify as verify_bundle

    require_toolchain(lean)
    data = data_folder()
    of_job = data / "artifacts" / bundle.name
    return verify_bundle(
        of_job if JOB_ID.fullmatch(str(bundle)) and of_job.is_dir() and not bundle.exists() else bundle,
        digest,
        key=key,
        own=data / "keys" / "trainer.pub",
        people=tuple(person_key or ()),
        html=html,
        lean=lean,
    )


@app.command("pack")
@prints_without_data
def pack(
    folder: Annotated[Path, typer.Argument(help="The bundle's folder, as shown by `assay jobs show`.")], out: Out = None
) -> Output[WrittenFile]:
    """Pack a bundle into one file in the current folder (NAME.zip), after checking all its bytes.

    Example: assay bundle pack artifacts/3f2a --out answer.zip
    """
    from appliance.jobs.bundle import pack as packed

    made = packed(folder, out or Path(f"{folder.resolve().name}{SUFFIX}"))
    later = meaning_file(folder.resolve())
    also = str(later) if later.exists() else ""
    if also:
        typer.echo(f"a later signature is not included: also send {printable(also)}", err=True)
    return Output(WrittenFile(file=str(made), also=also), str(made))


@app.command("unpack")
@prints_without_data
def unpack(
    file: Annotated[Path, typer.Argument(help="The bundle's one file.")], out: Out = None
) -> Output[WrittenFile]:
    """Unpack a bundle into a folder in the current one, after checking all its bytes.

    Example: assay bundle unpack answer.zip --out answer
    """
    from appliance.jobs.bundle import unpack as unpacked

    made = unpacked(file, out or Path(file.resolve().name.removesuffix(SUFFIX)))
    return Output(WrittenFile(file=str(made)), str(made))
