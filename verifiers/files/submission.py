"""Parser of the submitted files: untrusted JSON. Pure."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from verifiers.files.spec import FILE_CHARS, FilesSpec

MAX_CHARACTERS = 1 << 18
MODE = re.compile(r"[0-7]{3}\Z")


class SubmittedFile(NamedTuple):
    text: str
    mode: str


def read(spec: FilesSpec, submission: str) -> dict[str, SubmittedFile] | str:
    """Parses a submission into its files by path; returns a sentence that describes the problem if it is invalid."""
    if len(submission) > MAX_CHARACTERS:
        return f"longer than {MAX_CHARACTERS} characters"
    try:
        data = json.loads(submission)
    except (ValueError, RecursionError):
        return "not valid JSON"
    if not isinstance(data, dict):
        return "not a JSON object of files"
    if undeclared := sorted(set(data) - set(spec.declared)):
        return f"{undeclared[0][:60]!a} is not a declared file"
    found: dict[str, SubmittedFile] = {}
    for path in spec.declared:
        if path not in data and not (spec.files or spec.commands):
            continue  # a foreign test reports missing files itself
        if path not in data:
            return f"{path} is missing"
        one = data[path]
        if isinstance(one, dict) and set(one) == {"problem"}:
            return f"{path} cannot be judged: {str(one['problem'])[:80]!a}"
        if not isinstance(one, dict) or set(one) != {"text", "mode"}:
            return f"{path} is not a file with a text and a mode"
        text, mode = one["text"], one["mode"]
        if not isinstance(text, str) or not isinstance(mode, str) or not MODE.match(mode):
            return f"{path} is not a file with a text and a mode"
        if len(text) > FILE_CHARS or not _is_text(text):
            return f"{path} is longer than {FILE_CHARS} characters, or not text"
        found[path] = SubmittedFile(text, mode)
    return found


def same_lines(one: str, other: str) -> bool:
    """True if two texts have the same lines, ignoring trailing blanks and trailing empty lines."""
    return _lines(one) == _lines(other)


def _lines(text: str) -> list[str]:
    return [line.rstrip(" \t\r") for line in text.rstrip().split("\n")]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
