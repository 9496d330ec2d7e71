"""`assay engine`: an engine for programs that sample through it, such as environments of the package verifiers."""

from __future__ import annotations

import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.noted_signals import STOPS, noted
from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, for_people, prints, short, show_fields, show_json, show_line
from appliance.text.printable import printable
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.config.configuration import Settings
    from appliance.inference.engine import Engine, ModelFiles

app = typer.Typer(help="Serve a model's tokens and log-probabilities to training programs.", no_args_is_help=True)
SECONDS = 0.5
"""Interval between checks of the engine, in seconds."""


@app.callback()
def _group() -> None:
    """Keeps `serve` a command of its own."""


class ServedEngine(FrozenModel):
    base_url: str
    model: str
    version: str
    key: str
    """File with the key."""


@app.command("serve")
@prints
def serve(
    model: Annotated[
        str, typer.Argument(help="champion, candidate, previous, canary, a digest's first digits, or a model's folder.")
    ] = "champion",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="TCP port; 0 takes a free one.")] = 0,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file", metavar="FILE", help="Key file, created if missing (default: engine.key in the data folder)."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Model name for clients (default: MODEL).")] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="Concurrent conversations.")] = None,
    tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=16, help="Tokens of the longest conversation.")
    ] = None,
) -> Output[ServedEngine | None]:
    """Serve `/inference/v1/generate` on this machine's loopback address, until Ctrl-C or SIGTERM.

    SIGUSR1 pushes the present model of that name: a new champion, or changed files of the folder, which must be
    complete. Success is reported; on failure the old weights keep serving and standard error has the reason. Token ids
    go in; ids, log-probabilities and the weights' version come out, as from vLLM. The engine comes from the
    configuration ([model] engine, device, dtype), as do rows and tokens ([recipe.agent]) unless given. Exit code 2:
    unusable model or port; 5: the engine failed.

    Example: assay engine serve champion --port 8200
    """
    from appliance.errors import AssayError, ExitCode, UsageError
    from appliance.inference.engine import ModelError
    from appliance.inference.http.generate_server import GenerateServer, read_key
    from appliance.rendering.guarded import end_tokens
    from appliance.rendering.renderer import RenderingError
    from runtime.service_manager import ServiceManager

    manager = ServiceManager.adopt()
    settings = read_settings()
    budget = settings.recipe.agent
    most = tokens or budget.max_tokens
    try:
        files, version = model_files(model, settings.data)
        ends = end_tokens(files)
        key_path = key_file or settings.data / "engine.key"
        engine = configured_engine(settings, rows=rows or budget.concurrent, slots=most)
        version = engine.push(files, version).version
        server = GenerateServer(
            engine, model=name or model, most_tokens=most, key=read_key(key_path), ends=ends, port=port
        )
    except (ModelError, RenderingError) as error:
        raise UsageError(str(error), error.hint) from error

    people = for_people()

    def show(said: str, version: str) -> None:
        if not people:
            show_json(ServedEngine(base_url=server.address, model=name or model, version=version, key=str(key_path)))
        else:
            show_line(said)
            show_fields(
                [
                    ("base_url", server.address),
                    ("model", name or model),
                    ("weights", short(version)),
                    ("key", f"in {key_path}"),
                ]
            )

    def push_again() -> None:
        nonlocal files, version
        try:
            new_files, new_version = model_files(model, settings.data)
            if end_tokens(new_files) != ends:
                raise UsageError("its end-of-text tokens changed", "restart the engine")
            show("the engine has new weights", server.push(new_files, new_version).version)
            files, version = new_files, new_version
        except Exception as error:  # noqa: BLE001 - what is served goes on with the weights that it had
            hint = getattr(error, "hint", "")
            said = f"no new weights: {error}" + f"; {hint}" * bool(hint)
            try:
                if not server.version:
                    server.push(files, version)
            except Exception as lost:  # noqa: BLE001 - as above: the next signal pushes anew
                said += f"; the previous weights cannot be pushed again either: {lost}"
            typer.echo(printable(said), err=True)

    came = noted(*STOPS, signal.SIGUSR1)
    with ThreadPoolExecutor(1) as pushes, server:  # a push waits for what is under way, and a stop does not
        show("serving the engine; stop with Ctrl-C", version)
        manager.ready(f"serving {name or model} at {server.address}")
        pushing: Future[None] | None = None
        while True:
            time.sleep(SECONDS)
            if came & STOPS:
                break
            if signal.SIGUSR1 in came and (pushing is None or pushing.done()):
                came.discard(signal.SIGUSR1)
                pushing = pushes.submit(push_again)
            if server.failure is not None:
                raise AssayError(
                    f"the engine failed: {server.failure}",
                    getattr(server.failure, "hint", "start it again"),
                    ExitCode.INFRASTRUCTURE,
                )
        manager.stopping()
    return Output(None)


def configured_engine(settings: Settings, *, rows: int, slots: int) -> Engine:
    """Makes the engine that `[model]` and `[vllm]` configure. Raises ModelError."""
    from appliance.inference.engines import make_engine

    return make_engine(
        settings.model.engine,
        rows=rows,
        slots=slots,
        threads=settings.threads,
        device=settings.model.device,
        dtype=settings.model.dtype,
        vllm=settings.vllm,
    )


def model_files(model: str, data: Path) -> tuple[ModelFiles, str]:
    """Returns verified files of a model named by alias, digest or folder, and its digest. Raises UsageError for an
    adapter, and ModelError."""
    from appliance.cli.check.judge import digest_of
    from appliance.errors import UsageError
    from appliance.inference.engine import ADAPTER
    from appliance.inference.folder import read_model
    from appliance.learning.folders import MANIFEST, read_verified, verify
    from appliance.models.export_model import published

    source = published(model, data)
    if (source / ADAPTER).is_file():
        raise UsageError(f"{source} is an adapter, not a model", "merge it first with `assay model export`")
    if (source / MANIFEST).exists():
        digest = verify(source)
        return read_verified(source, expect=digest), digest
    files = read_model(source)
    return files, digest_of(files)
