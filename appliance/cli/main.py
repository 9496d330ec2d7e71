"""The command `assay`: maps each command to a call of the control API or of the module that does the work.

Invariants: a foreseen error is a message and a hint on standard error with a documented exit code, never a traceback.
Model text cannot control the terminal. A command's module is imported when the command is used, and nothing large
before the command needs it.
"""

from __future__ import annotations

import gc
import json
import os
import select
import sys
from typing import Annotated, Any

import typer

from appliance.cli.shell.lazy_group import CommandRow, lazy_group
from appliance.cli.shell.noted_signals import hear_again
from appliance.cli.shell.options import JSON_ASKED, Data, plugins_of_command
from appliance.inference.gpu_numbers import ORDER
from common.plugins.allowed import allow_when_needed

NO_READER = 141
"""Exit code that a shell reports for a broken pipe."""
COLLECT_AFTER = 20_000
"""Garbage collection threshold, in objects. Python's default of 700 takes a fifth of the time for loading the daemon's
modules or drawing a screen."""


COMMANDS = {
    "serve": CommandRow("service.commands:serve", "Run the daemon in the foreground, until Ctrl-C or SIGTERM."),
    "broker": CommandRow("service.commands:broker", "Run the broker alone, as root."),
    "status": CommandRow(
        "service.commands:status", "Show running work, models in service, and what waits for a person."
    ),
    "tui": CommandRow("service.screen:tui", "Open the terminal program."),
    "stop": CommandRow("service.commands:stop", "Ask the daemon to stop."),
    "doctor": CommandRow("service.commands:doctor", "Check this machine, and advise on missing parts."),
    "plan": CommandRow("machine.plan:plan", "Compute which ways of training a model fit into this machine."),
    "selftest": CommandRow("machine.selftest:app", "Run the GPU self-test."),
    "backup": CommandRow("service.backup:app", "Create, list, verify, restore and remove backups of the data folder."),
    "bug-report": CommandRow(
        "machine.bug_report:bug_report", "Write an archive for people who investigate a fault, without secrets."
    ),
    "demo": CommandRow("service.commands:demo", "Run one night in miniature on this machine, in minutes."),
    "config": CommandRow("service.commands:config", "Show the configuration and the origin of its values."),
    "schema": CommandRow(
        "show.schema:schema", "Print the JSON Schema of a command's --json output, or list the commands that have one."
    ),
    "submit": CommandRow(
        "jobs.submit:submit", "Submit a question whose answer can be checked: an answer, a program, a proof, a text."
    ),
    "jobs": CommandRow("jobs.commands:app", "List, show, watch, cancel, resume and retry jobs."),
    "verify": CommandRow(
        "jobs.bundle:verify", "Verify a bundle again, without the daemon, and list what was not checked."
    ),
    "bundle": CommandRow("jobs.bundle:app", "Pack a bundle into one file, or unpack it."),
    "model": CommandRow("models.commands:app", "Import, list, compare, approve, reject, roll back and export models."),
    "evaluate": CommandRow(
        "models.evaluate:evaluate", "Measure a model on open questions, with intervals; any engine."
    ),
    "engine": CommandRow("models.engine:app", "Serve a model's tokens and log-probabilities to training programs."),
    "gateway": CommandRow(
        "service.gateway:app", "Run an OpenAI-compatible endpoint on this machine, for your own agent."
    ),
    "key": CommandRow("governance.key_commands:app", "Make, admit, revoke and list persons' keys."),
    "audit": CommandRow("audit.commands:app", "Read, check and export the audit log of all decisions."),
    "policy": CommandRow("governance.policy_commands:app", "Check, explain, test and sign the policy."),
    "cycle": CommandRow("training.cycles:app", "Start, list, show, watch, cancel and resume cycles."),
    "schedule": CommandRow("training.schedule:app", "Show, pause and resume the schedule of nights."),
    "report": CommandRow(
        "models.report:report",
        "Show a cycle's results: curves, tasksets before and after, decision, examples of changed answers.",
    ),
    "train": CommandRow("training.train:train", "Train in stages: SFT, RL with growing budgets, distillation."),
    "warm-start": CommandRow(
        "training.warm_start:warm_start",
        "Let a teacher answer training questions, verify the answers, and keep a set for a stage of SFT.",
    ),
    "rollouts": CommandRow("training.rollouts:app", "List and show the model's attempts."),
    "prune": CommandRow("service.prune:prune", "Drop the tokens of old training rollouts from the ledger."),
    "docs": CommandRow("show.docs:app", "Write the reference pages."),
    "logs": CommandRow("show.logs:logs", "Show the last lines of the daemon, its worker, its broker or its gateway."),
    "curriculum": CommandRow("curriculum.commands:app", "List, try, certify and add tasksets."),
    "plugins": CommandRow("plugins.commands:app", "List and certify plug-ins: distributions that add to the product."),
    "check": CommandRow("check.commands:app", "Verify answers, proofs, programs and texts."),
    "sandbox": CommandRow("sandbox.commands:app", "Run code in sandboxes, and inspect them."),
    "cluster": CommandRow("sandbox.cluster:app", "Run sandboxes on several machines."),
}


SPELLED = {"licence": "license"}
"""Accepted variant spellings of options; help shows one."""
app = lazy_group(
    COMMANDS,
    name="assay",
    add_completion=True,
    help="Keeps an agent honest and makes it better every night.",
    context_settings={"token_normalize_func": lambda name: SPELLED.get(name, name)},
)


def _version(wanted: bool) -> None:
    if wanted:
        from appliance import __version__

        typer.echo(f"assay {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    data: Data = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = data
    JSON_ASKED.set(False)
    if os.environ.get("NO_COLOR"):  # https://no-color.org: any text but the empty one
        context.color = False


def main() -> None:
    """Runs the `assay` command line and exits."""
    hear_again()
    gc.set_threshold(COLLECT_AFTER, 20, 50)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for some takes longer than a command
    os.environ.update(ORDER)
    allow_when_needed(plugins_of_command)
    command = typer.main.get_command(app)
    typed = sys.argv[1:]
    # What is mistyped is told to a program, too, though nothing was parsed. Of `demo`, --json names a file.
    for_program = "--json" in typed and "demo" not in typed
    try:
        left_with = command(prog_name="assay", standalone_mode=not for_program)
        sys.exit(left_with if isinstance(left_with, int) else 0)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError as broken:
        sys.exit(_unread(broken))
    except typer.Abort:  # only where a program asked
        sys.exit(_told("no answer to the prompt", "answer at a terminal, or give the answer as an option", 1))
    except SystemExit as left:
        # The parser of the command line makes 1 of a broken pipe, which is the code of a verdict.
        broken_below = left.__context__
        if not isinstance(broken_below, BrokenPipeError):
            raise
        sys.exit(_unread(broken_below))
    except Exception as error:  # noqa: BLE001 - the outermost frame: shown to the person, never swallowed
        sys.exit(_mistyped(error) if for_program and hasattr(error, "format_message") else complain(error))


def _mistyped(error: Any) -> int:
    """Prints a command-line syntax error as JSON; returns the exit code."""
    hint = f"`{error.ctx.command_path} --help` lists the options" if getattr(error, "ctx", None) else ""
    return _told(error.format_message(), hint, error.exit_code)


def _told(message: str, hint: str, code: int) -> int:
    typer.echo(json.dumps({"message": message, "hint": hint, "exit_code": code}, ensure_ascii=True), err=True)
    return code


def _unread(broken: BrokenPipeError) -> int:
    return NO_READER if _nobody_reads() else complain(broken)


def _nobody_reads() -> bool:
    """True if the reader of the output (head, less) has closed it."""
    watch = select.poll()
    watch.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))


def complain(error: Exception) -> int:
    """Prints an error's message and hint on standard error, as JSON with --json; returns the exit code.
    ASSAY_LOG__LEVEL=debug adds the traceback of an unforeseen error."""
    from appliance.cli.shell.live_line import columns_of
    from appliance.cli.shell.wrapping import wrapped
    from appliance.errors import explain
    from appliance.text.printable import printable

    if os.environ.get("ASSAY_LOG__LEVEL") == "debug":
        import traceback

        traceback.print_exception(error)
    explained = explain(error)
    if JSON_ASKED.get():
        return _told(explained.message, explained.hint, int(explained.code))
    columns = columns_of(sys.stderr)
    typer.echo(wrapped(f"assay: {printable(explained.message, lines=True)}", columns, indent=2), err=True)
    if explained.hint:
        typer.echo(wrapped(f"  {printable(explained.hint, lines=True)}", columns), err=True)
    return int(explained.code)


if __name__ == "__main__":
    main()
