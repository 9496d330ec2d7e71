"""`assay policy simulate`: estimates false promotions and power of a policy."""

from __future__ import annotations

import typer

from appliance.cli.governance.policy_check import PolicyFile
from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, prints, show_fields, show_line
from appliance.settings.policy_files import read_policy
from policies.simulate import Assumed, Simulated
from policies.simulate import simulate as simulated


@prints
def simulate(assumed: Assumed, file: PolicyFile = None) -> Output[Simulated]:
    """Estimate how often a policy promotes a model without a real gain, and finds one with it. Simulated nights,
    without the daemon.

    Example: assay policy simulate policy.toml
    """
    policy, name = read_policy(data_folder(), file)
    found = simulated(policy, assumed, lambda text: typer.echo(text, err=True))
    return Output(found, lambda: _show(found, assumed, f"{name}, {policy.digest[:12]}"))


def _show(found: Simulated, assumed: Assumed, policy: str) -> None:
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
            ("policy", policy),
            ("no better", fooled),
            (f"{assumed.gain:g} points better", power),
            ("by night", ", ".join(f"{100 * share:.0f} %" for share in found.found_by_night)),
            (f"{assumed.loss:g} points worse", _losing(found, assumed)),
        ]
    )
    show_line("assumes that all other gates pass and a person approves everything; real false promotions are rarer")


def _interval(value: float, low: float, high: float) -> str:
    return f"{100 * value:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def _losing(found: Simulated, assumed: Assumed) -> str:
    """Describes the losing quarter with the gate `retention`, and before there was that gate."""
    return (
        f"{assumed.promotions} candidates, each losing {assumed.loss:g} points of the same taskset: a quarter loses "
        f"{found.lost_points:.1f} points, {found.lost_points_before:.1f} without `retention`; the third loss is never "
        f"promoted in {100 * found.stopped_share:.1f} %, without it in {100 * found.stopped_share_before:.1f} %"
    )
