"""Client of a model behind an OpenAI-compatible API on this machine.

Invariants: the API is on this machine. No proxy is used and no redirect followed, so no question leaves the machine. An
answer is bounded in bytes and time. Callers treat answers as hostile.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from common.errors import HintedError
from runtime.errors import InfrastructureError
from runtime.service_manager import credential

if TYPE_CHECKING:
    from openai import OpenAI

SECONDS = 600.0
"""Maximum seconds of one answer."""
MOST_BYTES = 1 << 24
"""Maximum bytes of one answer."""
KEY = "ASSAY_TEACHER_KEY"
"""Environment variable with the API's key, if needed."""
CREDENTIAL = "teacher-key"
"""Name of the key as a credential of the service manager."""


class EndpointError(HintedError):
    """Address that questions must not be sent to."""

    exit_code = 2


def require_local(base_url: str) -> None:
    """Raises EndpointError unless the URL is on this machine: no policy allows questions to leave it."""
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname or "", parts.port
        local = parts.scheme in ("http", "https")
        local = local and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        local = False
    if not local:
        raise EndpointError(
            f"the model at {base_url!r} is not on this machine",
            hint="name http://127.0.0.1:PORT/v1; for one elsewhere, forward a port to it (ssh -L)",
        )


class TooLongError(InfrastructureError):
    """The conversation exceeds the model's context; shorter ones work."""


class LocalApi:
    """Context manager: client of one model's API at one address; thread-safe."""

    def __init__(self, base_url: str, model: str) -> None:
        """Creates the client of a model's chat API. Raises EndpointError for a URL that leaves this machine."""
        require_local(base_url)
        self.base_url, self.model = base_url, model

    def __enter__(self) -> LocalApi:
        from openai import DefaultHttpxClient, OpenAI

        from appliance.inference.http.bounded_answers import BoundedTransport

        plain = DefaultHttpxClient(
            trust_env=False,
            follow_redirects=False,
            timeout=SECONDS,
            transport=BoundedTransport(seconds=SECONDS, most=MOST_BYTES),
            headers={"accept-encoding": "identity"},
        )
        key = credential(CREDENTIAL, KEY) or "none"
        self._client: OpenAI = OpenAI(base_url=self.base_url, api_key=key, http_client=plain, max_retries=2)
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def say(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        temperature: float,
        max_tokens: int,
        seed: int,
        tools: Sequence[dict[str, Any]] = (),
    ) -> Any:
        """Sends a conversation to the model's chat API; returns one choice with `message` and `finish_reason`. Raises
        InfrastructureError without one, TooLongError if only these messages fail."""
        from openai import APIConnectionError, OpenAIError

        ask: Any = self._client.chat.completions.create  # its overloads know no plain mappings
        sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
        offered = {"tools": list(tools)} if tools else {}
        try:
            answer = ask(model=self.model, messages=list(messages), **sampling, **offered)
            choice = answer.choices[0]
            _require_message(choice.message)
        except (OpenAIError, LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
            # "Connection error." is uninformative; its cause is not.
            reason = error.__cause__ if isinstance(error, APIConnectionError) and error.__cause__ else error
            said = f"the model at {self.base_url} does not answer: {str(reason)[:300] or type(reason).__name__}"
            if _is_too_long(error):
                raise TooLongError(said, hint="ask for fewer tokens a turn, or serve it with more context") from error
            raise InfrastructureError(
                said, hint=f"start it, or correct its address and name; set its key in {KEY}"
            ) from error
        return choice


def _is_too_long(error: Exception) -> bool:
    """True if a server reports a context overflow: all mention the context, in different words."""
    status = getattr(error, "status_code", None)
    return status == 413 or (status == 400 and "context" in str(error).lower())


def _require_message(message: Any) -> None:
    """Raises TypeError or ValueError if the API's message, or a tool call in it, is malformed."""
    if not isinstance(message.content, str | None):
        raise TypeError("its message is not text")
    calls = message.tool_calls
    if not isinstance(calls, list | None) or not all(hasattr(one, "id") for one in calls or ()):
        raise TypeError("its calls are not a list of calls")
    json.dumps(message.model_dump(warnings=False), ensure_ascii=False).encode()
