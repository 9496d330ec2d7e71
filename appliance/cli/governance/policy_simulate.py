"""`assay policy simulate`: estimates false promotions and power of a policy."""

from __future__ import annotations

from typing import Any

import typer

from appliance.cli.governance.policy_check import PolicyFile
from appliance.cli.shell.model_options import parameters_of, read_options, with_options
from appliance.cli.shell.options import Data, Json, data_of
from appliance.cli.show.printing import show_fields, show_json, show_line
from appliance.settings.policy_files import read_policy
from policies.simulate import Assumed
from policies.simulate import simulate as simulated


@with_options(parameters_of(Assumed))
def simulate(
    context: typer.Context, file: PolicyFile = None, data: Data = None, as_json: Json = False, **values: Any
) -> None:
    """Estimate how often a policy promotes a model that is no better, and finds one that is. Simulated nights, without
    the daemon.

    Example: assay policy simulate policy.toml
    """
    assumed = read_options(Assumed, values)
    policy, name = read_policy(data_of(context, data), file)
    found = simulated(policy, assumed, lambda text: typer.echo(text, err=True))
    if as_json:
        show_json(found)
        return
    fresh, held = 100 * found.null_promoted_share_fresh, 100 * found.null_promoted_share_held
    fooled = (
        f"{_interval(found.null_promoted_share, found.null_promoted_low, found.null_promoted_high)} of the quarters "
        f"promote such a candidate; {fresh:.2f} % with a new one every night, {held:.2f} % with held ones asked again"
    )
    power = (
        f"{_interval(found.power, found.power_low, found.power_high)} are promoted within {assumed.within} nights, "
        f"{100 * found.rejected_share:.1f} % rejected"
    )
    show_fields(
        [
            ("policy", f"{name}, {policy.digest[:12]}"),
            ("no better", fooled),
            (f"{assumed.gain:g} points better", power),
            ("by night", ", ".join(f"{100 * share:.0f} %" for share in found.found_by_night)),
        ]
    )
    show_line("assumes that all other gates pass and a person approves everything; real false promotions are rarer")


def _interval(value: float, low: float, high: float) -> str:
    return f"{100 * value:.2f} % ({100 * low:.2f} to {100 * high:.2f})"
