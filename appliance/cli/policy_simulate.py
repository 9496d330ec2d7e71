"""`assay policy simulate`: how often a policy would be fooled by nothing, and how soon it would see a gain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.options import Data, Json, settings_of


def simulate(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="The policy file; without it the one in the data folder, else the packaged one."),
    ] = None,
    gain: Annotated[float, typer.Option("--gain", help="Points of the real gain that should be found.")] = 4.0,
    items: Annotated[int, typer.Option("--items", help="Sealed questions a night.")] = 800,
    discordant: Annotated[
        float,
        typer.Option("--discordant", help="Percent of the questions that one model gets right and the other not."),
    ] = 20.0,
    families: Annotated[int, typer.Option("--families", help="Families that the questions are spread over.")] = 7,
    nights: Annotated[int, typer.Option("--nights", help="Of a quarter.")] = 90,
    within: Annotated[int, typer.Option("--within", help="Nights in which the gain should be found.")] = 5,
    quarters: Annotated[int, typer.Option("--quarters", help="How many to simulate.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="Of the made-up questions.")] = 0,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """How often a policy promotes what is no better, and finds what is better. Made-up nights, without the daemon."""
    from pydantic import ValidationError

    from appliance.cli.show import show_fields, show_json, show_line
    from appliance.places import parse_policy, written_policy
    from policies.policy import read_content
    from policies.simulate import Assumed
    from policies.simulate import simulate as simulated

    try:
        assumed = Assumed(
            gain=gain,
            items=items,
            discordant=discordant,
            families=families,
            nights=nights,
            within=within,
            quarters=quarters,
            seed=seed,
        )
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        named = f"--{fault['loc'][0]}: " if fault["loc"] else ""
        raise typer.BadParameter(f"{named}{fault['msg'].removeprefix('Value error, ')}") from error
    content, told = read_content(file) if file is not None else written_policy(settings_of(context, data).data)
    policy = parse_policy(content, told)
    found = simulated(policy.promotion, assumed, lambda text: typer.echo(text, err=True))
    if as_json:
        show_json(found)
        return
    fresh, held = 100 * found.null_promoted_share_fresh, 100 * found.null_promoted_share_held
    fooled = (
        f"{_share(found.null_promoted_share, found.null_promoted_low, found.null_promoted_high)} of the quarters "
        f"promote such a candidate; {fresh:.2f} % with a new one every night, {held:.2f} % with held ones asked again"
    )
    power = (
        f"{_share(found.power, found.power_low, found.power_high)} are promoted within {within} nights, "
        f"{100 * found.rejected_share:.1f} % rejected"
    )
    show_fields(
        [
            ("policy", f"{told}, {policy.digest[:12]}"),
            ("no better", fooled),
            (f"{gain:g} points better", power),
            ("by night", ", ".join(f"{100 * share:.0f} %" for share in found.found_by_night)),
        ]
    )
    show_line("every other gate passes here, and a person approves of everything: a real owner is fooled less often")


def _share(value: float, low: float, high: float) -> str:
    return f"{100 * value:.2f} % ({100 * low:.2f} to {100 * high:.2f})"
