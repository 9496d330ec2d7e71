"""Reads a Dockerfile that a terminal here can replace, and refuses others with the reason. Pure."""

from __future__ import annotations

import json
import re
import shlex
from typing import NamedTuple

from curriculum.contract.errors import CurriculumError

BASES = re.compile(
    r"(?:docker\.io/)?(?:library/)?(debian|ubuntu|python|busybox|bash|alpine)(?::[\w.-]+)?(?:@sha256:[0-9a-f]+)?\Z"
)
NETWORK = re.compile(
    r"\b(apt-get|apt|apk|dnf|yum|pip3?|uvx?|npm|npx|yarn|cargo|go get|go install|gem|conda|curl|wget|git clone)\b"
)
WITHOUT_EFFECT = ("CMD", "ENTRYPOINT", "LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "SHELL")


class HarborError(CurriculumError):
    """A Harbor task folder cannot be used or written here; the message says why."""


class Copied(NamedTuple):
    source: str
    target: str


class Image(NamedTuple):
    base: str
    workdir: str
    copies: tuple[Copied, ...]
    folders: tuple[str, ...] = ()
    """Folders that it creates and leaves empty, as named: they do not exist at the start."""


def read(text: str) -> Image:
    """Parses a Harbor task's Dockerfile. Raises HarborError for anything that the sandbox's userland cannot replace."""
    base, workdir = "", "/"
    copies: list[Copied] = []
    folders: list[str] = []
    for line in _lines(text):
        word, _, rest = line.partition(" ")
        word, rest = word.upper(), rest.strip()
        if word == "FROM":
            if base:
                raise HarborError("its Dockerfile builds in stages", hint="use a single FROM")
            base = rest.split()[0] if rest else ""
            if not BASES.match(base):
                raise HarborError(
                    f"its image is {base[:60]!a}, which this machine does not have",
                    hint="use an image such as debian or python: a shell with small programs and Python replaces it",
                )
        elif word == "WORKDIR":
            workdir = rest if rest.startswith("/") else f"{workdir.rstrip('/')}/{rest}"
        elif word in ("COPY", "ADD"):
            copies.append(_copied(rest, workdir))
        elif word == "RUN":
            folders += _made_by(rest)
        elif word not in WITHOUT_EFFECT:
            raise HarborError(f"its Dockerfile has {word[:20]}, which is not supported")
    if not base:
        raise HarborError("its Dockerfile has no FROM")
    if not re.match(r"/[A-Za-z0-9_][A-Za-z0-9_/-]*\Z", workdir) or workdir in ("/tmp", "/tests", "/logs"):  # noqa: S108
        raise HarborError(f"its working folder {workdir[:60]!a} is not supported", hint="use a WORKDIR such as /app")
    return Image(base, workdir.rstrip("/"), tuple(copies), tuple(folders))


def refuse_network(text: str, what: str) -> None:
    """Raises HarborError if a script calls a program that needs a network; `what` names the script."""
    lines = (line.partition("#")[0] for line in text.splitlines())
    found = next((hit for line in lines if (hit := NETWORK.search(line))), None)
    if found:
        raise HarborError(
            f"{what} calls {found.group(1)}: sandboxes have no network", hint="put what it installs into the folder"
        )


def _made_by(command: str) -> list[str]:
    """Returns the folders that a RUN command creates. Raises HarborError for any command but `mkdir` and `true`."""
    refuse_network(command, "its Dockerfile")
    if not re.fullmatch(r"mkdir (-p )?[\w./ -]+|true", command):
        raise HarborError(f"its Dockerfile runs {command[:60]!a}, which is not supported", hint="add files by COPY")
    return [word for word in command.split()[1:] if word != "-p"]


def _copied(rest: str, workdir: str) -> Copied:
    try:
        words = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    except (ValueError, RecursionError) as error:
        raise HarborError("a COPY of its Dockerfile cannot be read") from error
    if not all(isinstance(word, str) for word in words):
        raise HarborError("a COPY of its Dockerfile has a name that is not text", hint='write COPY ["from", "to"]')
    words = [word for word in words if not word.startswith("--chown")]
    if len(words) != 2 or any(word.startswith("--") or "*" in word or "://" in word for word in words):
        raise HarborError("a COPY of its Dockerfile has more than one source, an option or a pattern")
    source, target = words
    if ".." in source.split("/") or source.startswith("/"):
        raise HarborError("a COPY of its Dockerfile has a source outside its folder")
    return Copied(source.removeprefix("./") or ".", target if target.startswith("/") else f"{workdir}/{target}")


def _lines(text: str) -> list[str]:
    joined = re.sub(r"\\\s*\n", " ", text)
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]
