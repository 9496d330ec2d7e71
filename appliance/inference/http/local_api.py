"""A model behind an OpenAI-compatible API on this machine: how it is reached, and what it may not do.

What always holds: the API is one on this machine. No proxy of the environment is used and no redirection followed, so
no question leaves it. An answer has so many bytes and takes so long at most, whatever is sent. Whoever asks treats what
comes back as hostile.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runtime.errors import HintedError, InfrastructureError
from runtime.service_manager import credential

if TYPE_CHECKING:
    from openai import OpenAI

SECONDS = 600.0
"""That one answer may take."""
MOST_BYTES = 1 << 24
"""Of one answer."""
KEY = "ASSAY_TEACHER_KEY"
"""The environment variable with the API's key, where it wants one."""
CREDENTIAL = "teacher-key"
"""The same as a credential of the service manager."""


class EndpointError(HintedError):
    """An address that no question is sent to."""

    exit_code = 2


def require_local(base_url: str) -> None:
    """Raises EndpointError unless the URL is one on this machine: no policy lets questions go elsewhere."""
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
    """Says that a conversation is longer than the model reads; it answers others."""


class LocalApi:
    """Context manager, safe to use from several threads. One model at one address."""

    def __init__(self, base_url: str, model: str) -> None:
        """Raises EndpointError for a URL that leaves this machine."""
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
        """One choice of the chat API: its `message` and `finish_reason`. Raises InfrastructureError without one,
        TooLongError where these messages alone get none."""
        from openai import APIConnectionError, OpenAIError

        ask: Any = self._client.chat.completions.create  # its overloads know no plain mappings
        sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
        offered = {"tools": list(tools)} if tools else {}
        try:
            answer = ask(model=self.model, messages=list(messages), **sampling, **offered)
            choice = answer.choices[0]
            _require_message(choice.message)
        except (OpenAIError, LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
            # "Connection error." says nothing; what it came from does.
            reason = error.__cause__ if isinstance(error, APIConnectionError) and error.__cause__ else error
            said = f"the model at {self.base_url} gives no answer: {str(reason)[:300] or type(reason).__name__}"
            if _is_too_long(error):
                raise TooLongError(said, hint="ask for fewer tokens a turn, or serve it with more context") from error
            raise InfrastructureError(
                said, hint=f"start it, or correct its address and name; its key is read from {KEY}"
            ) from error
        return choice


def _is_too_long(error: Exception) -> bool:
    """Whether a server says that it reads fewer tokens: all name the context, in words of their own."""
    status = getattr(error, "status_code", None)
    return status == 413 or (status == 400 and "context" in str(error).lower())


def _require_message(message: Any) -> None:
    """Raises TypeError or ValueError for one whose text is no text, or whose calls are no calls."""
    if not isinstance(message.content, str | None):
        raise TypeError("its message is no text")
    calls = message.tool_calls
    if not isinstance(calls, list | None) or not all(hasattr(one, "id") for one in calls or ()):
        raise TypeError("its calls are no list of calls")
    json.dumps(message.model_dump(warnings=False), ensure_ascii=False).encode()
