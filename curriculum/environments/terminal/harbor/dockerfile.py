"""Reads a Dockerfile into a recipe: packages to install, files to copy, commands to run, and what cannot be reproduced.

Pure. Invariants: every instruction is part of the recipe, has no effect on a task, or is named in `notes` or `lost`.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import NamedTuple

from curriculum.contract.errors import CurriculumError

BASES = re.compile(r"(debian|ubuntu|python|busybox|bash|alpine|t-bench)")
"""Images, by the beginning of their last name, that a shell with small programs and Python replaces."""
WITHOUT_EFFECT = ("CMD", "LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "SHELL", "VOLUME", "HEALTHCHECK")
IDLE = ("", "bash", "sh", "tail", "sleep", "python3", "python")
NETWORK = re.compile(
    r"\b(apk|dnf|yum|npm|npx|yarn|pnpm|cargo|rustup|go get|go install|gem|conda|curl|wget|git clone|lake|"
    r"add-apt-repository|apt-key|git\+https?|install\.packages|BiocManager|https?://\S+)"
)
QUIET = re.compile(
    r"(apt-get|apt)( -\S+)* (update|clean|autoclean|autoremove|upgrade|dist-upgrade)\b.*|"
    r"rm -r?f?r? (/var/lib/apt|/root/\.cache|/var/cache|~/\.cache)\S*( \S+)*|ln -s\S* \S*python3\S* \S*python|"
    r"true|:|set [-+]\w+( \w+)?|(python3? -m )?pip3? cache .*|"
    r"echo [^>|$`]*|export DEBIAN_FRONTEND=\S+"
)
USERS = re.compile(
    r"(useradd|adduser|groupadd|addgroup|usermod|chown|chgrp|chpasswd|passwd|ldconfig|locale-gen|update-locale|"
    r"update-alternatives|dpkg-reconfigure)\b"
)
PIP = re.compile(r"(?:(?:python3?|uv) (?:-m )?)?pip3? install\b(.*)", re.DOTALL)
APT = re.compile(r"(?:apt-get|apt)\b((?: -\S+)*) install\b(.*)", re.DOTALL)
APT_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*(?:=\S+)?")
WITH_VALUE = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-c", "--constraint", "--timeout",
              "--retries", "-t", "--target", "-o", "--trusted-host", "--default-timeout", "--prefix", "--platform",
              "--python-version", "--root-user-action"}  # fmt: skip
HERE = re.compile(r"<<-?\s*([\"']?)(\w+)\1")
SHELL_WORDS = re.compile(r"(^|[;&|\s])(for|while|until|if|case|function)\s|[({]")


class HarborError(CurriculumError):
    """A Harbor task folder cannot be used or written here; the message says why."""


class Copied(NamedTuple):
    sources: tuple[str, ...]
    """Patterns of paths below the build folder."""
    target: str
    """Absolute path; ends with a slash for a folder."""
    mode: str = ""
    text: str | None = None
    """Content that the Dockerfile itself gives."""


class Image(NamedTuple):
    base: str
    workdir: str
    copies: tuple[Copied, ...] = ()
    folders: tuple[str, ...] = ()
    """Absolute paths of the folders that it creates."""
    pip: tuple[str, ...] = ()
    """Requirements; `-r PATH` for a copied list of them."""
    apt: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """Commands to run, in order, once its files are there."""
    variables: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    """Parts that cannot be reproduced."""


class Installs(NamedTuple):
    """Packages that a script installs, and its commands that need a network for anything else."""

    pip: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class _Recipe:
    def __init__(self) -> None:
        self.base, self.workdir = "", "/"
        self.copies: list[Copied] = []
        self.folders: list[str] = []
        self.pip: list[str] = []
        self.apt: list[str] = []
        self.steps: list[str] = []
        self.notes: list[str] = []
        self.lost: list[str] = []
        self.given: dict[str, str] = {}
        self.variables: dict[str, str] = {}

    def path(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.workdir, path))

    def expand(self, text: str) -> str:
        """Replaces variables of ARG and ENV by their values; unknown ones become empty, as Docker does."""
        known = self.given | self.variables
        return re.sub(
            r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))", lambda hit: known.get(hit[1] or hit[3], hit[2] or ""), text
        )


def read(text: str) -> Image:
    """Parses a Harbor task's Dockerfile. Raises HarborError if it is not one, or builds in stages."""
    recipe = _Recipe()
    for word, rest, body in _instructions(text):
        if word == "FROM":
            if recipe.base:
                raise HarborError("its Dockerfile builds in stages", hint="use a single FROM")
            words = [one for one in recipe.expand(rest).split() if not one.startswith("--")]
            recipe.base = words[0] if words else ""
        elif word == "ARG":
            name, _, value = rest.partition("=")
            recipe.given.setdefault(name.strip(), value.strip().strip("\"'"))
        elif word == "ENV":
            _set_variables(recipe, rest)
        elif word == "WORKDIR":
            recipe.workdir = recipe.path(recipe.expand(rest).strip("\"'") or "/")
        elif word in ("COPY", "ADD"):
            _copy(recipe, rest, body)
        elif word == "RUN":
            _run(recipe, rest)
        elif word == "USER":
            if rest.split(":")[0] not in ("root", "0"):
                recipe.notes.append(f"commands run as the sandbox's ordinary user, not as {rest[:40]!a}")
        elif word == "ENTRYPOINT":
            if rest.strip("[]\"' ").split("/")[-1].split('"')[0].split(" ")[0] not in IDLE:
                recipe.lost.append(f"ENTRYPOINT {rest[:60]}: nothing is started ahead")
        elif word not in WITHOUT_EFFECT:
            raise HarborError(f"its Dockerfile has {word[:20]!a}, which is not supported")
    if not recipe.base:
        raise HarborError("its Dockerfile has no FROM")
    if not BASES.match(recipe.base.split("/")[-1].split("@")[0]) and "/t-bench/" not in recipe.base:
        recipe.lost.append(f"FROM {recipe.base[:60]}: its programs beyond a shell and Python")
    if not re.match(r"/([A-Za-z0-9_.][A-Za-z0-9_./-]*)?\Z", recipe.workdir):
        raise HarborError(f"its working folder {recipe.workdir[:60]!a} is not supported", hint="use one such as /app")
    return Image(
        recipe.base,
        recipe.workdir,
        tuple(recipe.copies),
        tuple(dict.fromkeys(recipe.folders)),
        tuple(dict.fromkeys(recipe.pip)),
        tuple(dict.fromkeys(recipe.apt)),
        tuple(recipe.steps),
        tuple(recipe.variables.items()),
        tuple(dict.fromkeys(recipe.notes)),
        tuple(dict.fromkeys(recipe.lost)),
    )


def installs(script: str) -> Installs:
    """Returns the packages that a test or a solution installs when it runs, and its other uses of a network."""
    pip: list[str] = []
    apt: list[str] = []
    lost: list[str] = []
    joined = re.sub(r"\\\s*\n", " ", script)
    for line in joined.splitlines():
        for command in _commands(line.partition(" #")[0].strip()):
            if command.startswith("#"):
                continue
            if found := PIP.search(command):
                pip += _requirements(shlex_words(found[1]), lost)
            elif found := APT.search(command):
                apt += _apt_names(found[2], lost)
            elif found := re.match(r"uvx\b(.*)|uv tool run\b(.*)", command):
                words = shlex_words(found[1] or found[2])
                pip += [value for option, value in pairwise(words) if option in ("-w", "--with", "--from")]
            elif found := re.match(r"uv add\b(.*)", command):
                pip += _requirements(shlex_words(found[1]), lost)
            elif NETWORK.search(command) and not re.match(r"(curl|wget)\b.*astral\.sh/uv", command):
                used = NETWORK.search(command)
                assert used
                if not used[1].startswith("http"):
                    lost.append(command[:80])
    return Installs(tuple(dict.fromkeys(pip)), tuple(dict.fromkeys(apt)), tuple(dict.fromkeys(lost)))


def matches(copied: Copied, names: Sequence[str]) -> Mapping[str, str]:
    """Returns the target path of every file that a COPY takes, by its name below the build folder."""
    found: dict[str, str] = {}
    for source in (one.strip("/") or "." for one in copied.sources):
        for name in names:
            if source == "." or name.startswith(f"{source}/"):
                found[name] = posixpath.join(copied.target, name if source == "." else name[len(source) + 1 :])
            elif fnmatchcase(name, source) and name.count("/") == source.count("/"):
                many = copied.target.endswith("/") or len(copied.sources) > 1 or "*" in source
                found[name] = posixpath.join(copied.target, posixpath.basename(name)) if many else copied.target
            elif "*" in source and name.count("/") > source.count("/"):
                above = "/".join(name.split("/")[: source.count("/") + 1])
                if fnmatchcase(above, source):
                    found[name] = posixpath.join(copied.target, name[len(above) + 1 :])
    return found


def shlex_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _instructions(text: str) -> list[tuple[str, str, str]]:
    """Returns a Dockerfile's instructions: the word, the rest of its line, and the body of a here-document."""
    found: list[tuple[str, str, str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        while stripped.endswith("\\"):
            following = next((one for one in lines if not one.strip().startswith("#")), "").strip()
            stripped = f"{stripped[:-1].rstrip()} {following}".strip()
        word, _, rest = stripped.partition(" ")
        word, rest, body = word.upper(), rest.strip(), ""
        if word in ("RUN", "COPY", "ADD") and (here := HERE.search(rest)):
            inner = []
            for one in lines:
                if one.strip() == here[2]:
                    break
                inner.append(one)
            body = "\n".join(inner) + "\n"
            if word == "RUN":
                whole = rest.strip() == here[0]
                rest = body if whole else f"{rest}\n{body}{here[2]}\n"
        found.append((word, rest, body))
    return found


def _set_variables(recipe: _Recipe, rest: str) -> None:
    if re.match(r"\w+\s+[^=\s]", rest) and "=" not in rest.split()[0]:
        name, _, value = rest.partition(" ")
        pairs = [(name, value)]
    else:
        pairs = [(name, value) for name, found, value in (w.partition("=") for w in shlex_words(rest)) if found]
    for name, value in pairs:
        if not re.fullmatch(r"[A-Za-z_]\w{0,80}", name) or "\0" in value:
            raise HarborError(f"its Dockerfile sets a variable of an invalid name ({name[:40]!a})")
        if name == "PATH":
            before = value.replace("${PATH}", "").replace("$PATH", "").strip(":")
            recipe.variables[name] = f"{recipe.expand(before)[:4_000]}:/usr/bin:/bin"
        else:
            recipe.variables[name] = recipe.expand(value)[:4_000]


def _copy(recipe: _Recipe, rest: str, body: str) -> None:
    try:
        words = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    except (ValueError, RecursionError) as error:
        raise HarborError("a COPY of its Dockerfile cannot be read") from error
    if not all(isinstance(word, str) for word in words):
        raise HarborError("a COPY of its Dockerfile has a name that is not text", hint='write COPY ["from", "to"]')
    words = [recipe.expand(word) for word in words]
    options, words = [one for one in words if one.startswith("--")], [one for one in words if one[:2] != "--"]
    if any(one.startswith("--from") for one in options):
        raise HarborError("its Dockerfile builds in stages", hint="use a single FROM")
    mode = next((one.partition("=")[2].lstrip("0") for one in options if one.startswith("--chmod=")), "")
    if len(words) < 2:
        raise HarborError("a COPY of its Dockerfile has no target")
    *sources, target = words
    if any("://" in source or source.startswith("git@") for source in sources):
        recipe.lost.append(f"ADD {' '.join(sources)[:60]}: it comes from the network")
        return
    if any(".." in source.split("/") for source in sources):
        raise HarborError("a COPY of its Dockerfile has a source outside its folder")
    folder = target.endswith("/") or target in (".", "..") or len(sources) > 1
    path = recipe.path(target)
    folder = folder or path == recipe.workdir or path in recipe.folders
    text = body if sources[0].startswith("<<") else None
    names = tuple(posixpath.normpath(source.lstrip("/")) for source in sources) if text is None else ()
    mode = mode if re.fullmatch(r"[0-7]{3}", mode) else ""
    recipe.copies.append(Copied(names, f"{path.rstrip('/')}/" if folder else path, mode, text))


def _run(recipe: _Recipe, rest: str) -> None:
    rest = re.sub(r"^(--\w+=\S+\s+)+", "", rest)
    if rest.startswith("["):
        try:
            rest = shlex.join([str(word) for word in json.loads(rest)])
        except (ValueError, TypeError, RecursionError) as error:
            raise HarborError("a RUN of its Dockerfile cannot be read") from error
    kept: list[str] = []
    for command in _commands(rest):
        if QUIET.fullmatch(command):
            continue
        if found := re.fullmatch(r"mkdir (?:-p |-m \d+ |--parents )*([\w./ -]+)", command):
            recipe.folders += [recipe.path(word) for word in found[1].split() if not word.startswith("-")]
        elif found := PIP.match(command):
            recipe.pip += _requirements(shlex_words(recipe.expand(found[1])), recipe.lost, recipe.path)
        elif found := APT.match(command):
            recipe.apt += _apt_names(recipe.expand(found[2]), recipe.lost)
        elif USERS.match(command):
            recipe.notes.append(f"not run, because the sandbox has one ordinary user: {command[:80]}")
        elif NETWORK.search(command) or re.match(r"(service|systemctl)\b", command):
            recipe.lost.append(f"RUN {' '.join(command.split())[:90]}")
        else:
            kept.append(command)
    if kept and any(not command.startswith("cd ") for command in kept):
        recipe.steps.append(f"cd {shlex.quote(recipe.workdir)} && {' && '.join(kept)}")


def _requirements(words: Sequence[str], lost: list[str], path: object = None) -> list[str]:
    found: list[str] = []
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("|", "||", "&&", ";", ">", "2>&1") or word.startswith((">", "2>", "|")):
            break
        if word in ("-r", "--requirement") and words:
            listed = words.pop(0)
            found.append(f"-r {path(listed) if callable(path) else listed}")
        elif word in ("-e", "--editable") and words:
            lost.append(f"pip install -e {words.pop(0)[:60]}")
        elif word in WITH_VALUE and words:
            words.pop(0)
        elif word.startswith("-") or word in ("pip", "setuptools", "wheel", "uv"):
            continue
        elif re.search(r"[/$@]", word) or word == ".":
            lost.append(f"pip install {word[:80]}")
        else:
            found.append(word)
    return found


def _apt_names(text: str, lost: list[str]) -> list[str]:
    found: list[str] = []
    for word in text.split():
        if word in ("|", "||", ">", "&") or word.startswith((">", "2>")):
            break
        if word.startswith("-"):
            continue
        if APT_NAME.fullmatch(word):
            found.append(word.partition("=")[0])
        else:
            lost.append(f"apt-get install {word[:60]}")
    return found


def _commands(text: str) -> list[str]:
    """Splits a shell text into its simple commands, at `&&`, `;` and line ends. Control structures and here-documents
    stay whole. What follows `||` is dropped, because a first command that succeeds needs no other."""
    if HERE.search(text) or SHELL_WORDS.search(re.sub(r"'[^']*'|\"[^\"]*\"|\$\{[^}]*\}", "", text)):
        return [text.strip()] if text.strip() else []
    found: list[str] = []
    now, quote, at, dropped = "", "", 0, False
    while at < len(text):
        letter, two = text[at], text[at : at + 2]
        if letter == "\\" and quote != "'":
            now, at = now + two, at + 2
            continue
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif two in ("&&", "||") or letter in ";\n":
            if not dropped:
                found.append(now)
            now, dropped = "", two == "||"
            at += 2 if two in ("&&", "||") else 1
            continue
        now, at = now + letter, at + 1
    if not dropped:
        found.append(now)
    stripped = (re.sub(r"^(sudo |env )?(\w+=\S* )*", "", one.strip()).strip() for one in found)
    return [one for one in stripped if one]
