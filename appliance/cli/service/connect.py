"""`assay connect`: starts an agent program on the gateway, or prints how."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import typer

from appliance.cli.service.gateway import tell_when_off
from appliance.cli.shell.noted_signals import left_by_signal, run_child
from appliance.cli.shell.options import api_client, read_settings
from appliance.cli.show.printing import Output, prints
from appliance.errors import UsageError
from runtime.model import FrozenModel


class AgentConnection(FrozenModel):
    """Start of an agent program that the model in service answers."""

    agent: str
    token: str
    """Name of the token that was made for it."""
    environment: dict[str, str]
    command: tuple[str, ...]
    """Program with its arguments; empty if any program may be started so."""


@prints
def connect(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="claude, codex, opencode, aider, openai, anthropic.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments of the program, with --run.")
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Start the program instead of printing how.")] = False,
    consent: Annotated[
        bool, typer.Option("--consent", help="Record its sessions; those with a verdict may become tasks.")
    ] = False,
) -> Output[AgentConnection]:
    """Let an agent program use the model in service.

    Makes a token, and prints the program's settings or starts it. Writes no file: what is printed can be given to a
    shell. A token of --run is revoked when the program ends.

    Example: assay connect claude --run -- -p "hello"
    """
    from appliance.client.gateway import NewToken
    from appliance.gateway.agents import AGENTS, GatewayEndpoint

    if agent not in AGENTS:
        known = "\n".join(f"{name}: {one.about}" for name, one in AGENTS.items())
        raise UsageError(f"unknown agent {agent[:40]!r}", hint=f"use one of these:\n{known}")
    settings, api = read_settings(), api_client()
    probe = AGENTS[agent].start(GatewayEndpoint("", "", 0))
    if arguments and not run:
        raise UsageError("arguments are given to a program that is started", hint="add --run, or leave them out")
    if run and not probe.command:
        raise UsageError(f"{agent} names no program", hint="leave --run out, and start yours with what is printed")
    if run and shutil.which(probe.command[0]) is None:
        raise UsageError(f"{probe.command[0]} is not installed", hint=probe.install)
    taken = {one.name for one in api.tokens() if one.revoked is None}
    name = next(free for number in range(1, 1 << 20) if (free := f"{agent}-{number}") not in taken)
    made = api.new_token(NewToken(name=name, consent=consent))
    tell_when_off()
    most = settings.gateway.max_tokens or settings.recipe.agent.max_tokens
    start = AGENTS[agent].start(GatewayEndpoint(settings.gateway.base_url, made.secret, most))
    found = AgentConnection(agent=agent, token=name, environment=dict(start.environment), command=start.command)
    if run:
        try:
            code = _run([*start.command, *(arguments or ())], {**os.environ, **start.environment})
        finally:
            api.revoke_token(name)
        return Output(found, code=code)
    typer.echo(f"`assay gateway token revoke {name}` ends this connection", err=True)
    lines = [f"export {variable}={shlex.quote(value)}" for variable, value in start.environment.items()]
    return Output(found, lines + ([shlex.join(start.command)] if start.command else []))


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs the person's own program in this terminal, and returns its exit code. Ctrl-C is for that program; another
    signal ends both."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with left_by_signal(needs_terminal=False):
            code = run_child(command, env=environment, preexec_fn=partial(signal.signal, signal.SIGINT, before))
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code
