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
from appliance.rendering.grammar_probe import TOO_COMPLEX, grammar_fault
from appliance.rendering.grammars import turn_grammar
from appliance.rendering.renderer import Ids, Renderer
from common import strict_json
from common.strict_json import Bounds, NotJsonError
from curriculum.worlds.tool_schema import misfit

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
        fault = grammar_fault(grammar) if grammar else "its format writes no such answer"
        if fault and schema is not None:
            form = request.own_names("response_format")
            said = f"this model cannot be bound to {form}" + " beside these tools" * bool(request.offered)
            raise GatewayError(400, f"{said}: {fault}", param=form)
        grammar = "" if fault else grammar
    rule = DrawRule(grammar, request.top_p, top)
    return None if rule == DrawRule() else rule


def changes(rule: DrawRule | None) -> bool:
    """True if a rule changes the distribution that a turn is drawn from."""
    return rule is not None and (bool(rule.grammar) or rule.top_p < 1)


def require_form(request: ChatRequest, rule: DrawRule | None, text: str, *, called: bool) -> None:
    """Raises GatewayError for a complete turn that is not what its grammar demands: its parser gave up."""
    if rule is None or not rule.grammar or called:
        return
    schema = None if request.demands_call else request.response_format.schema_
    if schema is None:
        raise GatewayError(400, f"the call that tool_choice demands: {TOO_COMPLEX}", param="tool_choice")
    try:
        fault = misfit(schema, strict_json.read(text.strip(), _ANSWER))
    except NotJsonError as error:
        fault = str(error)
    if fault:
        form = request.own_names("response_format")
        raise GatewayError(400, f"the answer does not fit {form} ({fault[:200]}): use a simpler schema", param=form)


def unbound(request: ChatRequest, rule: DrawRule | None) -> list[str]:
    """Returns the fields of a request that its answer is not bound to."""
    free = request.demands_call and not (rule is not None and rule.grammar)
    form = request.demands_call and request.response_format.schema_ is not None
    return ["tool_choice"] * free + [request.own_names("response_format")] * form


def logprobs_of(turn: Turn, renderer: Renderer) -> list[dict[str, Any]]:
    """Returns the log-probabilities of all tokens of a turn in OpenAI's shape, without the stop token: those of calls,
    thoughts and what a stop text cut too."""
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
