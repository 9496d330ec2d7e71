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

from appliance.cli.shell.lazy_group import CommandRow, GroupRow, lazy_group
from appliance.cli.shell.noted_signals import hear_again
from appliance.cli.shell.options import DATA, JSON_ASKED, Data, plugins_of_command
from appliance.inference.gpu_numbers import ORDER
from common.plugins.allowed import NO_PLUGINS, allow_when_needed

NO_READER = 141
"""Exit code that a shell reports for a broken pipe."""
COLLECT_AFTER = 20_000
"""Garbage collection threshold, in objects. Python's default of 700 takes a fifth of the time for loading the daemon's
modules or drawing a screen."""


COMMANDS: dict[str, CommandRow | GroupRow] = {
    "demo": CommandRow("service.commands:demo", "Run one night in miniature on this machine, in minutes."),
    "serve": CommandRow("service.commands:serve", "Run the daemon in the foreground, until Ctrl-C or SIGTERM."),
    "status": CommandRow(
        "service.commands:status", "Show running work, models in service, and what waits for a person."
    ),
    "tui": CommandRow("service.screen:tui", "Open the terminal program."),
    "stop": CommandRow("service.commands:stop", "Ask the daemon to stop."),
    "doctor": CommandRow("service.commands:doctor", "Check this machine, and advise on missing parts."),
    "logs": CommandRow("show.logs:logs", "Show the last lines of the daemon, its worker, its broker or its gateway."),
    "submit": CommandRow(
        "jobs.submit:submit", "Submit a question whose answer can be checked: an answer, a program, a proof, a text."
    ),
    "jobs": GroupRow(
        {
            "validate": CommandRow("jobs.validate:validate", "Sign whether a job's check means what was asked."),
            "ls": CommandRow("jobs.look:ls", "List the jobs, newest first."),
            "show": CommandRow("jobs.look:show", "Show one job: state, answer and bundle, or the failed attempts."),
            "watch": CommandRow("jobs.look:watch", "Follow a job to its end."),
            "cancel": CommandRow("jobs.look:cancel", "Cancel a job, even while it is worked on."),
            "resume": CommandRow(
                "jobs.look:resume", "Resume a job that was set aside because its worker died three times in a row."
            ),
            "retry": CommandRow("jobs.look:retry", "Submit the same question again with the next seed, as a new job."),
        },
        "List, show, watch, cancel, resume and retry jobs.",
    ),
    "verify": CommandRow(
        "jobs.bundle:verify", "Verify a bundle again, without the daemon, and list what was not checked."
    ),
    "bundle": CommandRow("jobs.bundle:app", "Pack a bundle into one file, or unpack it."),
    "check": CommandRow("check.commands:app", "Verify answers, proofs, programs and texts."),
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
    "prune": CommandRow("training.rollouts:prune", "Drop the tokens of old training rollouts from the ledger."),
    "model": GroupRow(
        {
            "provenance": CommandRow(
                "governance.provenance:provenance",
                "Check a model's attestation, and show its inputs (exit code 1 if it does not hold).",
            ),
            "import": CommandRow(
                "models.base_models:import_model",
                "Check a base model and store it in the data folder, with its licence text.",
            ),
            "use": CommandRow(
                "models.use:use_model",
                "Write the settings with which nights train a model into the configuration file.",
            ),
            "export": CommandRow(
                "models.base_models:export_model",
                "Write a model as a plain Hugging Face folder, with every byte checked.",
            ),
            "history": CommandRow("models.report:history", "Show gains and losses of every promotion, by taskset."),
            "ls": CommandRow(
                "models.look:ls",
                "List the checkpoints, newest first, with the decision about each, and the registered base models.",
            ),
            "compare": CommandRow("models.look:compare", "Compare two models on the same sealed items."),
            "show": CommandRow(
                "models.look:show",
                "Show the newest decision about a model, gate by gate, with the digest for --decision.",
            ),
            "approve": CommandRow(
                "models.judge:approve",
                "Put a candidate into service with your signature, if the policy then permits it (exit code 4 if not).",
            ),
            "reject": CommandRow(
                "models.judge:reject", "Record, with your signature, that a candidate must not go into service."
            ),
            "evaluate": CommandRow(
                "models.look:evaluate",
                "Compare a model with the champion again on fresh questions; the policy decides on the result.",
            ),
            "rollback": CommandRow(
                "models.judge:rollback",
                "Withdraw the canary; without one, put the previous champion back into service. Asks first.",
            ),
        },
        "Import, list, compare, approve, reject, roll back and export models.",
    ),
    "evaluate": CommandRow(
        "models.evaluate:evaluate", "Measure a model on open questions, with intervals; any engine."
    ),
    "plan": CommandRow("machine.plan:plan", "Compute which ways of training a model fit into this machine."),
    "policy": GroupRow(
        {
            "sign": CommandRow(
                "governance.policy_sign:sign",
                "Put an edited policy file into force with your signature, and others' if the policy requires them.",
            ),
            "check": CommandRow(
                "governance.policy_check:check",
                "Summarize a policy file, or report its fault (exit code 2). Without the daemon.",
            ),
            "show": CommandRow(
                "governance.policy_check:show",
                "Print the policy file in force, or write it to a file for editing. Without the daemon.",
            ),
            "explain": CommandRow(
                "governance.policy:explain", "Explain the newest decision about a model, or the decision of an id."
            ),
            "backtest": CommandRow(
                "governance.policy:backtest",
                "Show past decisions about every candidate under a policy file, or the one in force. Changes nothing.",
            ),
            "budget": CommandRow(
                "governance.policy:budget",
                "Show the rest of the quarter's chance of a false promotion, each candidate's evidence, and the nights "
                "to go.",
            ),
            "simulate": CommandRow(
                "governance.policy_simulate:simulate",
                "Estimate a policy's false promotions and its power, with simulated nights. Without the daemon.",
            ),
        },
        "Check, explain, test and sign the policy.",
    ),
    "key": GroupRow(
        {
            "new": CommandRow(
                "governance.key_sign:new", "Make your own key, encrypted, and ask the daemon to admit it."
            ),
            "ls": CommandRow("governance.keys:ls", "List the keys known to the daemon, and which are yours."),
            "show": CommandRow("governance.keys:show", "Show all that is known about a person's keys."),
            "admit": CommandRow(
                "governance.key_sign:admit", "Admit a key: your own, or another person's with your signature."
            ),
            "revoke": CommandRow(
                "governance.key_sign:revoke", "Revoke a key permanently; any person with a valid key can."
            ),
        },
        "Make, admit, revoke and list persons' keys.",
    ),
    "audit": CommandRow("audit.commands:app", "Read, check and export the audit log of all decisions."),
    "curriculum": GroupRow(
        {
            "ls": CommandRow(
                "curriculum.ls:ls", "List the tasksets: subject, check, and whether answers can be checked here."
            ),
            "show": CommandRow(
                "curriculum.view:show", "Show one taskset: topics, levels, tools, budget, and a task of each level."
            ),
            "sample": CommandRow(
                "curriculum.view:sample",
                "Show tasks as the model sees them: questions, files, and with --answers the answers.",
            ),
            "try": CommandRow(
                "curriculum.try_task:try_",
                "Work on a task yourself: Python in a sandbox, the task's tools, an answer, the verdict with its "
                "evidence.",
            ),
            "stats": CommandRow(
                "curriculum.stats:stats", "Show how often the model passes, by taskset and level, night by night."
            ),
            "measure": CommandRow(
                "curriculum.measure:measure", "Measure how often a model passes, by topic and level, with intervals."
            ),
            "add": CommandRow(
                "curriculum.add:add",
                "Add your own problems: each is checked, and the valid ones become the taskset own/NAME.",
            ),
            "collect": CommandRow(
                "curriculum.collect:collect",
                "Make tasks from your verified jobs (if the policy allows it) and from sessions with a verdict.",
            ),
            "rm": CommandRow("curriculum.add:rm", "Remove a taskset of your own."),
            "certify": CommandRow(
                "curriculum.certify:certify", "Test a taskset's checks; only a certified taskset is trained on."
            ),
            "reverify": CommandRow(
                "curriculum.reverify:reverify", "Judge stored answers again if a verifier's version changed."
            ),
            "audit": CommandRow(
                "curriculum.audit:audit", "Check training data for copies of sealed and held-out questions."
            ),
            "adapter": CommandRow(
                "curriculum.adapters:app", "Install packages that some worlds need, for sandboxes only."
            ),
            "harbor": CommandRow(
                "curriculum.harbor:harbor", "Show what a Harbor task folder becomes here, or why it is unusable."
            ),
            "export": CommandRow(
                "curriculum.harbor:export",
                "Write a terminal task as a Harbor task folder, with its check and its solution.",
            ),
        },
        "List, try, certify and add tasksets.",
    ),
    "plugins": CommandRow("plugins.commands:app", "List and certify plug-ins: distributions that add to the product."),
    "gateway": CommandRow(
        "service.gateway:app", "Run an OpenAI-compatible endpoint on this machine, for your own agent."
    ),
    "connect": CommandRow("service.connect:connect", "Let an agent program use the model in service."),
    "engine": CommandRow("models.engine:app", "Serve a model's tokens and log-probabilities to training programs."),
    "schema": CommandRow(
        "show.schema:schema", "Print the JSON Schema of a command's --json output, or list the commands that have one."
    ),
    "config": CommandRow("service.config:app", "Show the configuration and the origin of its values."),
    "backup": CommandRow("service.backup:app", "Create, list, verify, restore and remove backups of the data folder."),
    "bug-report": CommandRow(
        "machine.bug_report:bug_report", "Write an archive for people who investigate a fault, without secrets."
    ),
    "sandbox": GroupRow(
        {
            "run": CommandRow("sandbox.run:run", "Run Python in a fresh sandbox."),
            "shell": CommandRow(
                "sandbox.shell:shell",
                "Use Python in a sandbox interactively, with snapshots and branches; type `:help` there.",
            ),
            "snapshot": CommandRow(
                "sandbox.run:snapshot",
                "Run Python and keep the resulting sandbox; prints the snapshot's name, for --from.",
            ),
            "rm": CommandRow("sandbox.run:rm", "Remove kept snapshots."),
            "ls": CommandRow("sandbox.broker:ls", "List the sandboxes and snapshots of the running broker."),
            "stats": CommandRow("sandbox.broker:stats", "Show the running broker's counters since its start."),
            "sweep": CommandRow(
                "sandbox.broker:sweep",
                "Make the running broker remove what dead owners left: processes, control groups, folders.",
            ),
            "selftest": CommandRow(
                "sandbox.selftest:selftest", "Test that sandboxes hold here, with every check that a backend must pass."
            ),
            "bench": CommandRow(
                "sandbox.selftest:bench",
                "Measure calls, snapshots, rollbacks, branches and idle sandboxes here, in under a minute.",
            ),
        },
        "Run code in sandboxes, and inspect them.",
    ),
    "broker": CommandRow("service.commands:broker", "Run the broker alone, as root."),
    "cluster": CommandRow("sandbox.cluster:app", "Run sandboxes on several machines."),
    "selftest": CommandRow("machine.selftest:app", "Run the GPU self-test."),
    "docs": CommandRow("show.docs:app", "Write the reference pages."),
}


SECTIONS = {
    "demo": "Run it",
    "submit": "Give it work",
    "cycle": "Nights and training",
    "model": "Models and their approval",
    "curriculum": "Tasks",
    "gateway": "For other programs",
    "config": "The machine",
}
"""Headings in `assay --help`, by the first command below each."""
SPELLED = {"licence": "license"}
"""Accepted variant spellings of options; help shows one."""
app = lazy_group(
    COMMANDS,
    SECTIONS,
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
    DATA.set(data)
    JSON_ASKED.set(False)
    if os.environ.get("NO_COLOR"):  # https://no-color.org: any text but the empty one
        context.color = False


def main() -> None:
    """Runs the `assay` command line and exits."""
    hear_again()
    gc.set_threshold(COLLECT_AFTER, 20, 50)
    os.environ.update(NO_PLUGINS)
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
