"""Restricts the draws of an answer as its request asks, and tells the probabilities of what was drawn.

Invariants: a turn whose distribution was changed is answered and not trained on. A form of the answer that the model's
format cannot be bound to is refused; a demanded call then stays a wish, which the reply lists as unused.
"""

from __future__ import annotations

from typing import Any

from appliance.gateway.champion import ServedModel
from appliance.gateway.chat_request import ChatRequest
from appliance.gateway.replies import GatewayError
from appliance.inference.engine import DrawRule, Turn
from appliance.rendering.grammars import turn_grammar
from appliance.rendering.renderer import Ids, Renderer
from common import strict_json
from common.strict_json import Bounds, NotJsonError

CHANGED = "its draws were restricted as the client asked"
_ANSWER = Bounds(8 << 20)


def rule_of(request: ChatRequest, served: ServedModel, before: Ids, *, restricts: bool) -> DrawRule | None:
    """Returns the rule for an answer behind these tokens; None if the model is free. `restricts`: the engine can apply
    rules. Raises GatewayError for a rule that the engine or the model's format cannot apply."""
    schema = None if request.demands_call else request.response_format.schema_
    top = request.top_logprobs if request.logprobs else 0
    asked = {"response_format": schema is not None, "top_p": request.top_p < 1, "top_logprobs": top > 0}
    if not restricts:
        if refused := [name for name, one in asked.items() if one]:
            named = [request.own_names(name) for name in refused]
            raise GatewayError(400, f"not supported by the engine in service: {', '.join(named)}", param=named[0])
        return None
    grammar = ""
    if schema is not None or request.demands_call:
        grammar = turn_grammar(served.renderer, served.marks, before, request.offered, schema)
        if schema is not None and not grammar:
            form = request.own_names("response_format")
            said = f"this model cannot be bound to {form}" + " beside tools" * bool(request.offered)
            raise GatewayError(400, said, param=form)
    rule = DrawRule(grammar, request.top_p, top)
    return None if rule == DrawRule() else rule


def changes(rule: DrawRule | None) -> bool:
    """True if a rule changes the distribution that a turn is drawn from."""
    return rule is not None and (bool(rule.grammar) or rule.top_p < 1)


def require_form(request: ChatRequest, text: str) -> None:
    """Raises GatewayError for a complete answer that cannot be read as JSON although one was asked for: the parser of
    its grammar gave up."""
    if request.response_format.schema_ is None:
        return
    try:
        strict_json.read(text.strip(), _ANSWER)
    except NotJsonError as error:
        form = request.own_names("response_format")
        raise GatewayError(
            400, f"the answer does not fit {form} ({error}): use a simpler schema", param=form
        ) from error


def logprobs_of(turn: Turn, renderer: Renderer) -> list[dict[str, Any]]:
    """Returns the log-probabilities of a turn's tokens in OpenAI's shape, without the stop token."""
    stops = (renderer.stop, *renderer.other_stops)
    count = len(turn.ids) - (bool(turn.ids) and turn.ids[-1] in stops)
    tops = turn.top or ((),) * len(turn.ids)
    return [
        {**_token(token, value, renderer), "top_logprobs": [_token(*one, renderer) for one in top]}
        for token, value, top in zip(turn.ids[:count], turn.logprobs, tops, strict=False)
    ]


def _token(token: int, value: float, renderer: Renderer) -> dict[str, Any]:
    text = renderer.text([token])
    return {"token": text, "logprob": value, "bytes": None if "\ufffd" in text else list(text.encode())}
