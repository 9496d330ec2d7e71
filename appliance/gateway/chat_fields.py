"""Fields of a chat request without an effect here: which are harmless, and which are refused.

Invariants: a field that would change the sampled distribution, or that a client relies on, is refused unless it has the
value that changes nothing; all refused fields are named in one sentence. A harmless field is listed in the reply as
`assay.unused`. Null means absent, as with OpenAI.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from pydantic_core import PydanticCustomError

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
}
"""Values of unsupported fields that change nothing."""
UNUSED = frozenset(
    {
        *("user", "metadata", "store", "safety_identifier"),  # for the provider's own records
        *("service_tier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),  # for its prices
        *("reasoning_effort", "verbosity"),  # wishes that no model has to fulfil
    }
)
SPOKEN = frozenset({"role", "content", "tool_calls", "tool_call_id"})
"""Fields of a message that have an effect."""
BESIDE = frozenset(
    {
        *("name", "refusal", "annotations", "parsed"),
        *("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "provider_specific_fields"),
    }
)
"""Fields of a message that client libraries add. Thoughts are not read again."""
MOST_MESSAGES = 1_000
"""Messages of a request; one with more is not read further."""
MOST_NAMED, NAME_CHARS = 20, 60


def supported(value: Any, known: Set[str], told: Iterable[str] = (), refused: Iterable[str] = ()) -> Any:
    """Returns the fields of a chat request that have an effect, in one form, with the names of the others in `unused`.
    `told` and `refused` are more names without an effect and unsupported ones, from another format. Raises
    PydanticCustomError that names every unsupported field."""
    if not isinstance(value, dict):
        return value
    given = {name: one for name, one in value.items() if one is not None}
    unused = {*told, *(name for name in given if name in UNUSED)}
    messages = given.get("messages")
    is_read = isinstance(messages, list) and len(messages) <= MOST_MESSAGES
    spoken = [_message(one, unused) for one in messages or ()] if is_read else []
    choice = given.get("tool_choice", "auto")
    if isinstance(choice, dict):
        given["tool_choice"] = _chosen(choice)
    refused = [*refused]
    refused += [name for name, one in given.items() if name not in known | UNUSED and not _changes_nothing(name, one)]
    refused += [name for one in spoken for name in one.get("refused", ())]
    if refused:
        names = [name[:NAME_CHARS] for name in dict.fromkeys(refused)][: MOST_NAMED + 1]
        shown = [name if name.isprintable() else ascii(name)[1:-1] for name in names[:MOST_NAMED]]
        told = ", ".join(shown + ["and more"] * (len(names) > MOST_NAMED))
        raise PydanticCustomError("not_supported", "not supported here: {names}", {"names": told})
    if isinstance(given.get("stop"), str):
        given["stop"] = [given["stop"]]
    kept = {name: one for name, one in given.items() if name in known}
    if is_read:
        kept["messages"] = [one["message"] for one in spoken]
    return {**kept, "unused": tuple(sorted(unused))}


def _message(value: Any, unused: set[str]) -> dict[str, Any]:
    """Returns a message in one form, and its unsupported fields; adds harmless ones to `unused`."""
    if not isinstance(value, dict):
        return {"message": value}
    given = {name: one for name, one in value.items() if one not in (None, [])}
    unused |= {f"messages.{name}" for name in given if name in BESIDE}
    refused = [f"messages.{name}" for name in given if name not in SPOKEN | BESIDE]
    parts = given.get("content")
    if isinstance(parts, list):
        refused += [f"messages.content.{kind}" for kind in _kinds(parts) if kind != "text"]
        found = [part.get("text") if isinstance(part, dict) else None for part in parts]
        texts = [text for text in found if isinstance(text, str)]
        if len(texts) == len(parts):
            given["content"] = "\n".join(texts)
    return {"message": {name: one for name, one in given.items() if name in SPOKEN}, "refused": refused}


def kind_of(value: dict[str, Any], usual: str = "") -> str:
    """Returns the `type` of an object from a client as a short text, `usual` without one."""
    kind = value.get("type", usual)
    return kind[:NAME_CHARS] if isinstance(kind, str) else type(kind).__name__


def _kinds(parts: list[Any]) -> Iterator[str]:
    yield from (str(part.get("type"))[:NAME_CHARS] for part in parts if isinstance(part, dict))


def _chosen(choice: dict[str, Any]) -> Any:
    """Returns the name of the tool in a `tool_choice`; any other choice unchanged, which is then no text."""
    function = choice.get("function")
    if choice.get("type") == "function" and isinstance(function, dict):
        return function.get("name", choice)
    return choice


def _changes_nothing(name: str, value: Any) -> bool:
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in NEUTRAL.get(name, ()))
