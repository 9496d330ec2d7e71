"""`assay verify` and `assay bundle`: for holders of a bundle, with or without an appliance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.check.options import require_toolchain
from appliance.cli.shell.options import Data, Json, data_of
from appliance.cli.show.printing import show_json, show_line
from appliance.jobs.validation import meaning_file
from appliance.text.printable import printable

app = typer.Typer(help="Pack a bundle into one file, or unpack it.", no_args_is_help=True)

SUFFIX = ".zip"
Out = Annotated[Path | None, typer.Option("--out", metavar="PATH", help="Target; must not exist.")]


def verify(
    context: typer.Context,
    bundle: Annotated[Path, typer.Argument(help="The bundle: its folder, or its one file.")],
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
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Verify a bundle again, without the daemon, and list what was not checked.

    Exit code 0 if everything holds, 1 if any byte, the seal, the statement or the verdict does not, 2 without a
    readable bundle or key, 5 if this machine cannot run the verifier.

    Example: assay verify bundle.zip --html report.html
    """
    from appliance.cli.jobs.verify import verify as verify_bundle

    require_toolchain(lean)
    raise typer.Exit(
        verify_bundle(
            bundle,
            as_json,
            digest,
            key=key,
            own=data_of(context, data) / "keys" / "trainer.pub",
            people=tuple(person_key or ()),
            html=html,
            lean=lean,
        )
    )


@app.command("pack")
def pack(
    folder: Annotated[Path, typer.Argument(help="The bundle's folder, as shown by `assay jobs show`.")],
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Pack a bundle into one file in the current folder (NAME.zip), after checking all its bytes.

    Example: assay bundle pack artifacts/3f2a --out answer.zip
    """
    from appliance.jobs.bundle import pack as packed

    made = packed(folder, out or Path(f"{folder.resolve().name}{SUFFIX}"))
    later = meaning_file(folder.resolve())
    _show_written(made, str(later) if later.exists() else "", as_json)
    if later.exists():
        typer.echo(f"a later signature is not included: also send {printable(str(later))}", err=True)


@app.command("unpack")
def unpack(
    file: Annotated[Path, typer.Argument(help="The bundle's one file.")], out: Out = None, as_json: Json = False
) -> None:
    """Unpack a bundle into a folder in the current one, after checking all its bytes.

    Example: assay bundle unpack answer.zip --out answer
    """
    from appliance.jobs.bundle import unpack as unpacked

    _show_written(unpacked(file, out or Path(file.resolve().name.removesuffix(SUFFIX))), "", as_json)


def _show_written(made: Path, also: str, as_json: bool) -> None:
    if as_json:
        from appliance.cli.documents.data import WrittenFile

        show_json(WrittenFile(file=str(made), also=also))
    else:
        show_line(str(made))
