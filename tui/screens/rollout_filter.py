"""Parses the text after `/` on the screen Rollouts into a filter of the control API. Pure.

`fail`, `family=gcd verdict=fail`, `job=job-1`, `cycle=night-1 train`: words in any order, each narrows the list.
"""

from __future__ import annotations

from appliance.client import Outcome, Purpose, RolloutFilter

FIELDS = ("family", "verdict", "purpose", "cycle", "job", "step")
HINT = "pass fail hack infra, train validation evaluation job, family=… cycle=… job=… step=…"
VERDICTS = {"pass": Outcome.PASS, "fail": Outcome.FAIL, "hack": Outcome.HACK_SUSPECTED, "infra": Outcome.INFRA_ERROR}
_VERDICTS = {**VERDICTS, **{one.value: one for one in Outcome}}
_PURPOSES = {one.value: one for one in Purpose}


def read_filter(text: str) -> RolloutFilter | str:
    """Parses the typed filter of the list of rollouts; returns a message that says what to correct if it is invalid."""
    given: dict[str, object] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals:
            name = "verdict" if word in _VERDICTS else "purpose" if word in _PURPOSES else "family"
            value = word
        if name not in FIELDS or not value:
            return f"invalid filter {word!r}: use {HINT}"
        if name in given:
            return f"{name} is given twice: keep one"
        given[name] = value
    if "verdict" in given:
        verdict = _VERDICTS.get(str(given.pop("verdict")))
        if verdict is None:
            return f"invalid verdict: use one of {', '.join(VERDICTS)}"
        given["outcome"] = verdict
    if "purpose" in given and given["purpose"] not in _PURPOSES:
        return f"invalid purpose: use one of {', '.join(_PURPOSES)}"
    if "step" in given and not (str(given["step"]).isascii() and str(given["step"]).isdigit()):
        return "invalid step: use a whole number"
    return RolloutFilter.model_validate(given, strict=False)
