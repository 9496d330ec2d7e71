"""Removes secrets from text: known values, and text that looks like a secret.

Invariants: a given secret value appears in no result, whatever surrounds it, not even in base64 or with JSON escapes.
Other secrets are removed by patterns, which cannot know every form.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from appliance.backup.create import is_secret
from appliance.nights.settings import ReportSettings
from appliance.system.durable_file import expanded

REMOVED = "[removed]"
_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_OF_A_KEY = re.compile(r"[A-Za-z0-9+/=]{1,80}\r?\n")
SHORTEST = 6
"""Minimum length of a secret in characters; shorter ones would remove ordinary words."""
LARGEST_BYTES = 64 << 10
SECRET_NAME = re.compile(
    r"(pass(word|phrase|wd)?|secret|token(?!s)|api[_-]?key|credential|authorization|cookie|webhook|ntfy|private"
    r"|redact(?!ed)|pwd|(access|signing|encryption)[_-]?key)",
    re.IGNORECASE,
)
_NAMED = (
    r"(?:pass(?:word|phrase|wd)|secret|token(?!s|iz)|credential|(?:api|private|access|signing|encryption)[_-]?key"
    r"|(?<=[_-])pass(?![\w-])|(?<![A-Za-z])pwd(?=\s*[=:]\s*[^/\s]))[\w-]{0,40}"
)
"""End of a name that denotes a secret, from the telling word on."""
_QUOTED = r"""(?P<quote>\\*["'])(?:(?!(?P=quote))(?:\\.|[^\\\n]))+(?:(?P=quote))?"""
"""Quoted text up to the matching quotation mark or the end of the line; inner marks have one more backslash."""
_PATTERNS = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    r"(?P<kept>\b(?:authorization|cookie)\\*[\"']?\s*[=:]\s*\\*[\"']?)[^\n\"'\\]{3,}",
    r"(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}",
    r"\b(?:sk|pk|rk)(?:-|_live_|_test_)[A-Za-z0-9_-]{12,}",
    r"\b(?:gh[oprsu]_[A-Za-z0-9]|github_pat_\w|hf_[A-Za-z0-9]|npm_[A-Za-z0-9]|gl(?:pat|rt|dt|cbt|ptt)-[\w-])[\w-]{12,}",
    r"\b(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{8,}|\bA(?:KI|SI)A[0-9A-Z]{16}\b|\bAIza[\w-]{20,}|\bya29\.[\w.-]{10,}",
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}|\bpypi-Ag[\w-]{16,}|\bdo[opr]_v1_\w{20,}|\bAGE-SECRET-KEY-1\w{16,}",
    r"(?P<kept>\b(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/)[^\s\"'<>]+",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"(?P<kept>[a-z][a-z0-9+.-]{1,20}://)(?:[^\s/@]{0,200}:[^\s/]{1,200}|[^\s/@:]{12,200})@",
    r"(?P<kept>[?&](?:sig|signature|key|code|auth|x-(?:amz|goog)-signature)=)[^\s&#\"']{4,}",
    r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}\b",
    rf"""(?P<kept>{_NAMED}\\*["']?\s*(?::=|=>|[=:]|%3[ad])\s*(?:[|>][+-]?\s+)?b?)(?:{_QUOTED}|[^\s,;}}"']{{3,}})""",
    rf"""(?P<kept>{_NAMED}\\*["']\s*,\s*b?){_QUOTED}""",
    rf"(?P<kept>(?<!-)--(?=\w)[\w-]{{0,40}}?{_NAMED}\s+)[^\s-]\S{{2,}}|(?P<kept2><[\w:-]{{0,40}}?{_NAMED}>)[^<\n]+",
    r"(?P<kept>\blogin\s+\S{1,200}\s+password\s+)\S+",
)
LOOKS = tuple(re.compile(one, re.IGNORECASE if "kept" in one else 0) for one in _PATTERNS)
"""Patterns of secrets: private keys, headers, service keys, addresses with a password, mail, and values of telling
names."""


class Redactor:
    """Removes from text these `secrets` and text that looks like one; `home` becomes `~`."""

    def __init__(self, secrets: Iterable[str], home: str = "") -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        self._secrets = sorted(forms, key=lambda form: (-len(form), form))
        self._home = home if len(home) > 1 else ""

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REMOVED)
        text = _without_ends_of_keys(LOOKS[0].sub(REMOVED, text))  # whole keys first
        for look in LOOKS[1:]:
            text = look.sub(_removed, text)
        return text.replace(self._home, "~") if self._home else text

    def value(self, value: Any, name: str = "") -> Any:
        """Redacts a JSON value; a string whose key names a secret is removed whole, numbers stay."""
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(one, f"{name}.{key}") for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(one, name) for one in value]
        if isinstance(value, str):
            return REMOVED if value and SECRET_NAME.search(name) else self.text(value)
        return value

    def found_in(self, content: bytes) -> bool:
        """True if a known secret remains in these bytes."""
        return any(secret.encode() in content for secret in self._secrets)


def _without_ends_of_keys(text: str) -> str:
    """Removes the remaining lines of a private key whose beginning is missing or malformed."""
    parts, taken = [], 0
    for end in _END.finditer(text):
        start = end.start()
        while start > taken:
            line = text.rfind("\n", taken, start - 1) + 1 or taken
            if not _OF_A_KEY.fullmatch(text, line, start):
                break
            start = line
        if start < end.start():
            parts += [text[taken:start], REMOVED]
            taken = end.end()
    return "".join([*parts, text[taken:]])


def _removed(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return f"{groups.get('kept') or groups.get('kept2') or ''}{REMOVED}"


def known_secrets(data: Path, environ: Mapping[str, str], more: Iterable[Path] = ()) -> set[str]:
    """Returns the secret values of this appliance, which a bug report must not contain. They are the lines of its key
    and token files and of the files `more`, and variables with a telling name. Unreadable files are skipped."""
    found = {value for name, value in environ.items() if SECRET_NAME.search(name) or name.upper().endswith("_KEY")}
    for path in (*_secret_files(data), *more):
        try:
            text = path.read_bytes()[:LARGEST_BYTES].decode(errors="replace")
        except OSError:
            continue
        found |= {line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-----")}
    return {one for one in found if len(one) >= SHORTEST}


def secrets_of_reports(report: ReportSettings, environ: Mapping[str, str]) -> tuple[set[str], list[Path]]:
    """Returns the secret URLs that receive night reports, and the paths of the files with their tokens and password."""
    found: list[Path] = []
    for place in filter(None, (report.webhook_token, report.ntfy_token, report.email.password)):
        if "/" in place:
            found.append(expanded(place))
        elif folder := environ.get("CREDENTIALS_DIRECTORY"):
            found.append(Path(folder, place))
    return {one for one in (report.webhook, report.ntfy) if one}, found


def _secret_files(data: Path) -> Iterable[Path]:
    for folder in (data, data / "keys"):
        if folder.is_dir():
            yield from (Path(one.path) for one in os.scandir(folder) if one.is_file() and is_secret(one.name))


def _forms(secret: str) -> set[str]:
    """Returns the forms in which a secret may appear in text: plain, escaped for JSON or URLs, base64, hexadecimal."""
    raw = secret.encode()
    coded = {code(raw).decode().rstrip("=") for code in (base64.b64encode, base64.urlsafe_b64encode)}
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), raw.hex(), *coded}
