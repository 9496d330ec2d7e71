"""Recipients of night reports, configured in `[report]`; secrets are given by location, never by value."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from runtime.model import FrozenModel, UnitName


class EmailSettings(FrozenModel):
    host: str = ""
    """SMTP server; empty sends no e-mail."""
    port: Annotated[int, UnitName("TCP port")] = Field(587, ge=1, le=65_535)
    """Port of the SMTP server."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """Protection of the connection. `none` is only for a server on this machine, or without a password."""
    sender: str = ""
    """Sender address."""
    to: tuple[str, ...] = ()
    """Recipient addresses."""
    user: str = ""
    """User name for the server; empty skips the login."""
    password: str = ""
    """Location of the password: a file, or the name of a systemd credential."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.host and not (self.sender and self.to):
            raise ValueError("e-mail needs a sender and at least one address in `to`")
        if self.user and not self.password:
            raise ValueError("a user needs a password: name the file, or the credential, that has it")
        if self.security == "none" and self.user and not is_local(self.host):
            raise ValueError("a password is never sent unprotected: set security to starttls or tls")
        return self


class ReportSettings(FrozenModel):
    webhook: str = ""
    """URL that receives a POST with JSON after each night; empty disables it."""
    webhook_token: str = ""
    """Location of the webhook's bearer token: a file, or the name of a systemd credential; empty sends none."""
    ntfy: str = ""
    """URL of an ntfy topic, such as https://ntfy.example.org/nights; empty disables it."""
    ntfy_token: str = ""
    """Location of the ntfy access token: a file, or the name of a systemd credential; empty sends none."""
    email: EmailSettings = EmailSettings()
    timeout: Annotated[float, UnitName("seconds")] = Field(20.0, gt=0, le=120)
    """Time limit per notice, in seconds."""

    @field_validator("webhook", "ntfy")
    @classmethod
    def _is_url(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write a URL that begins with https:// or http://")
        if parts.username or parts.password:
            raise ValueError("leave the password out of the URL: name a file that has it, as the token")
        return url

    @model_validator(mode="after")
    def _tokens_are_protected(self) -> Self:
        for url, token in ((self.webhook, self.webhook_token), (self.ntfy, self.ntfy_token)):
            parts = urlsplit(url)
            if token and parts.scheme == "http" and not is_local(parts.hostname or ""):
                raise ValueError("a token is never sent over http to another machine: write https://")
        return self


def is_local(host: str) -> bool:
    """True if the host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
