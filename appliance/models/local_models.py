"""Finds models on this machine: registered bases, and those that Ollama, LM Studio and the Hugging Face cache keep.

Invariants: nothing is downloaded or changed. A store is untrusted: names and digests in its files are matched against
strict patterns before they become part of a path, a link may not lead out of its store, and every file read here has a
bound. An Ollama layer that is not understood is refused, because the model without it is another model.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from appliance.errors import UsageError
from appliance.system.durable_file import expanded
from common.strict_json import Bounds, NotJsonError, read
from common.toml_files import beginning
from runtime.model import FrozenModel

BASES = "bases"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A registered model's name."""
SMOLLM2 = "smollm2"
"""Source of the small model that `install.sh --with smollm2` puts beside the environment."""
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_REPOSITORY = re.compile(rf"{_PART}/{_PART}")
_OLLAMA = re.compile(rf"(?:(?:({_PART})/)?({_PART})/)?({_PART})(?::({_PART}))?")
_REVISION = re.compile(rf"{_PART}(?:/{_PART}){{0,3}}")
_FILE = re.compile(r"[^/\x00-\x1f]{1,255}\.gguf", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_LAYER = "application/vnd.ollama.image."
_DROPPED = {
    "template": "Ollama's chat template, which is a program in Go (the model's own template is used)",
    "params": "Ollama's sampling parameters",
    "system": "Ollama's system message",
    "messages": "Ollama's example messages",
}
"""Layers that do not change the model itself."""
_MOST_MANIFEST = Bounds(1 << 20, values=10_000)
_MOST_TEXT = 1 << 20
_MOST_LAYERS = 64
"""A published model has five; each licence text is in memory."""
_MOST_FOUND, _MOST_SEEN = 1000, 10_000
"""Models listed, and entries looked at, of each kind."""


@dataclass(frozen=True)
class Stores:
    """Folders in which other programs keep models; later ones are tried after earlier ones."""

    ollama: Sequence[Path]
    hub: Path
    lmstudio: Sequence[Path]
    smollm2: Path


@dataclass(frozen=True)
class LocatedModel:
    name: str
    """Its name, if none is given."""
    path: Path
    """Model folder, archive or GGUF file."""
    license: bytes = b""
    """Licence text kept apart from the file."""
    dropped: tuple[str, ...] = ()
    """Parts of the source that an import leaves out."""
    finish: str = ""
    """Hint for a model of which files are missing."""


class ImportableModel(FrozenModel):
    source: str
    """Argument of `assay model import`."""
    bytes: int
    """Size of its weights."""


def stores(environ: Mapping[str, str], home: Path) -> Stores:
    """Returns the folders of models on this machine, as the programs' own environment variables name them."""
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    hub = Path(environ.get("HF_HOME") or cache / "huggingface") / "hub"
    own = [Path(environ["OLLAMA_MODELS"])] if environ.get("OLLAMA_MODELS") else []
    return Stores(
        [*own, home / ".ollama/models", Path("/usr/share/ollama/.ollama/models")],
        Path(environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or hub),
        [home / ".lmstudio/models", cache / "lm-studio/models"],
        Path(f"{sys.prefix}-{SMOLLM2}"),
    )


def find_base(name: str, data: Path) -> Path | None:
    """Returns the folder of a registered base model, or None."""
    folder = data / BASES / name
    return folder if NAME.fullmatch(name) and folder.is_dir() else None


def registered_bases(data: Path) -> list[str]:
    """Lists the names of the registered base models."""
    with suppress(FileNotFoundError):
        return sorted(one.name for one in (data / BASES).iterdir() if NAME.fullmatch(one.name) and one.is_dir())
    return []


def locate(source: str, places: Stores) -> LocatedModel:
    """Finds the model of `[NAME@]SOURCE`. Raises UsageError for an invalid or unknown source, an unsupported part or an
    incomplete download."""
    path = expanded(source)
    name, at, rest = source.partition("@")
    if not at or path.exists() or name.partition(":")[0] in _KINDS:
        name, rest = "", source
    kind, colon, what = rest.partition(":")
    if rest == SMOLLM2 and not path.exists():
        found = _in_folder(places.smollm2, SMOLLM2, "run `./install.sh --with smollm2` first")
    elif colon and kind in _KINDS and not expanded(rest).exists():
        found = _KINDS[kind](what, places)
    else:
        path = expanded(rest)
        stem = path.resolve().name
        for ending in ("gz", "tar", "tgz", "gguf"):
            stem = re.sub(rf"(?i)\.{ending}$", "", stem)
        found = LocatedModel(stem, path)
    if not NAME.fullmatch(name or found.name):
        raise UsageError(
            f"invalid model name {name or found.name!r}: use at most 64 letters, digits, dots, dashes and underscores",
            "put a name before the source: NAME@SOURCE",
        )
    return LocatedModel(name or found.name, found.path, found.license, found.dropped, found.finish)


def find_models(places: Stores) -> list[ImportableModel]:
    """Lists the models in the stores on this machine, the first thousand of each kind."""
    found = []
    if places.smollm2.is_dir():
        found += [ImportableModel(source=SMOLLM2, bytes=_size(one)) for one in _ggufs(places.smollm2)]
    for find in (_in_ollama, _in_hub, _in_lmstudio):
        with suppress(OSError):
            found += islice(find(places), _MOST_FOUND)
    return found


def _gguf(what: str, places: Stores) -> LocatedModel:
    path = expanded(what)
    return LocatedModel(re.sub(r"(?i)\.gguf$", "", path.name), path)


def _ollama(what: str, places: Stores) -> LocatedModel:
    parts = _OLLAMA.fullmatch(what)
    if parts is None:
        raise UsageError(f"invalid Ollama model {what!a:.80}", "write MODEL or MODEL:TAG, as `ollama list` shows it")
    host, space, model, tag = parts[1] or "registry.ollama.ai", parts[2] or "library", parts[3], parts[4] or "latest"
    below = Path("manifests", host, space, model, tag)
    store = next((one for one in places.ollama if (one / below).is_file()), None)
    if store is None:
        looked = ", ".join(str(one) for one in places.ollama)
        raise UsageError(
            f"Ollama has no model {model}:{tag} in {looked}",
            "`assay model import` without arguments lists the models of this machine; nothing is downloaded",
        )
    layers = _layers(_within(store / below, store))
    weights, texts, dropped = [], [], []
    for kind, digest, size in layers:
        short = kind.removeprefix(_LAYER)
        if short == "model":
            weights.append((digest, size))
        elif short == "license":
            blob = _blob(store, digest, size)
            texts.append(blob.read_bytes() if size <= _MOST_TEXT else b"")
        elif short in _DROPPED:
            dropped.append(_DROPPED[short])
        else:
            raise UsageError(
                f"{model}:{tag} has a layer of type {kind!a:.80}, which cannot be imported",
                "import a plain text model: one without adapter, projector or split weights",
            )
    if len(weights) != 1:
        raise UsageError(f"{model}:{tag} has {len(weights)} weight files instead of one", "import another model")
    name = model if tag == "latest" else f"{model}-{tag}"
    return LocatedModel(name, _blob(store, *weights[0]), b"\n\n".join(texts), tuple(dict.fromkeys(dropped)))


def _layers(manifest: Path) -> list[tuple[str, str, int]]:
    """Reads an Ollama manifest's layers: media type, digest and size. Raises UsageError."""
    try:
        listed = read(beginning(manifest, _MOST_MANIFEST.size), _MOST_MANIFEST)["layers"]
        layers = [(one["mediaType"], one["digest"], one["size"]) for one in listed]
    except (NotJsonError, KeyError, TypeError) as error:
        raise UsageError(f"{manifest} is not an Ollama manifest", "pull the model again with Ollama") from error
    if len(layers) > _MOST_LAYERS:
        raise UsageError(f"{manifest} has more than {_MOST_LAYERS} layers", "import another model")
    for kind, digest, size in layers:
        if not (isinstance(kind, str) and type(size) is int and isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            raise UsageError(f"{manifest} has an invalid layer", "pull the model again with Ollama")
    return layers


def _blob(store: Path, digest: str, size: int) -> Path:
    """Returns a blob of Ollama's store whose content has its digest. Raises UsageError."""
    path = store / "blobs" / digest.replace(":", "-")
    if not path.is_file() or path.stat().st_size != size:
        why = "is missing" if not path.is_file() else "is incomplete"
        raise UsageError(f"{path} {why}: the model is only half downloaded", "pull the model again with Ollama")
    with _within(path, store).open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != digest.partition(":")[2]:
            raise UsageError(f"{path} does not have its digest: it is damaged", "pull the model again with Ollama")
    return path


def _hub(what: str, places: Stores) -> LocatedModel:
    name, at, revision = what.partition("@")
    if not _REPOSITORY.fullmatch(name) or (at and not _REVISION.fullmatch(revision)):
        raise UsageError(f"invalid model of the hub {what!a:.120}", "write ORG/NAME or ORG/NAME@REVISION")
    finish, short = f"finish the download: `hf download {name}`", name.partition("/")[2]
    snapshot = _snapshot(name, revision or "main", places.hub)
    for entry in snapshot.iterdir():
        _within(entry, snapshot.parents[1])
        if not entry.exists():
            raise UsageError(f"{entry.name} of {name} is only half downloaded", finish)
    if not list(snapshot.glob("*.safetensors")) and list(_ggufs(snapshot)):
        return _in_folder(snapshot, short, finish)
    return LocatedModel(short, snapshot, finish=finish)


def _snapshot(name: str, revision: str, cache: Path) -> Path:
    """Returns the folder of a repository's revision in the Hugging Face cache. Raises UsageError."""
    folder, commit = cache / f"models--{name.replace('/', '--')}", revision
    if not _COMMIT.fullmatch(revision):
        with suppress(OSError):
            commit = beginning(_within(folder / "refs" / revision, folder), 64).decode("ascii", "replace").strip()
    snapshot = folder / "snapshots" / commit
    if not _COMMIT.fullmatch(commit) or not snapshot.is_dir():
        raise UsageError(
            f"{name} at revision {revision} is not in the Hugging Face cache {cache}",
            f"nothing is downloaded here: run `hf download {name}`, or set HF_HUB_CACHE to the cache's folder",
        )
    return snapshot


def _lmstudio(what: str, places: Stores) -> LocatedModel:
    publisher, _, rest = what.partition("/")
    name, slash, file = rest.partition("/")
    if not _REPOSITORY.fullmatch(f"{publisher}/{name}") or (slash and not _FILE.fullmatch(file)):
        raise UsageError(
            f"invalid model of LM Studio {what!a:.120}", "write PUBLISHER/REPOSITORY or PUBLISHER/REPOSITORY/FILE.gguf"
        )
    folder = next((one / publisher / name for one in places.lmstudio if (one / publisher / name).is_dir()), None)
    if folder is None:
        looked = ", ".join(str(one) for one in places.lmstudio)
        raise UsageError(f"LM Studio has no {publisher}/{name} in {looked}", "`assay model import` lists what is there")
    if slash:
        return LocatedModel(re.sub(r"(?i)\.gguf$", "", file), folder / file)
    return _in_folder(folder, name, "write PUBLISHER/REPOSITORY/FILE.gguf")


_KINDS = {"gguf": _gguf, "ollama": _ollama, "hub": _hub, "lmstudio": _lmstudio}


def _in_folder(folder: Path, name: str, hint: str) -> LocatedModel:
    """Returns the only GGUF file in a folder. Raises UsageError for none or several."""
    found = sorted(_ggufs(folder)) if folder.is_dir() else []
    if len(found) != 1:
        listed = ": " + ", ".join(one.name for one in found[:5]) if found else ""
        several = f"import one of them by its path, as in gguf:{found[0]}" if found else hint
        raise UsageError(f"{folder} has {len(found)} GGUF files instead of one{listed}", several)
    return LocatedModel(name, found[0])


def _within(path: Path, store: Path) -> Path:
    """Returns the path if it does not lead out of the store. Raises UsageError."""
    if not path.resolve().is_relative_to(store.resolve()):
        raise UsageError(f"{path} is a link to {path.resolve()}, outside {store}", "check who may write to that folder")
    return path


def _ggufs(folder: Path) -> Iterator[Path]:
    for one in folder.iterdir():
        if _FILE.fullmatch(one.name) and not one.name.startswith("mmproj") and one.is_file():
            yield one


def _in_ollama(places: Stores) -> Iterator[ImportableModel]:
    for store in places.ollama:
        for manifest in sorted(islice((store / "manifests").glob("*/*/*/*"), _MOST_SEEN)):
            host, space, model, tag = manifest.parts[-4:]
            short = f"{space}/{model}:{tag}" if space != "library" else f"{model}:{tag}"
            short = short if host == "registry.ollama.ai" else f"{host}/{space}/{model}:{tag}"
            with suppress(UsageError, OSError):
                sizes = [size for kind, _, size in _layers(manifest) if kind == f"{_LAYER}model"]
                if sizes and _OLLAMA.fullmatch(short):
                    yield ImportableModel(source=f"ollama:{short}", bytes=sum(sizes))


def _in_hub(places: Stores) -> Iterator[ImportableModel]:
    for folder in sorted(islice(places.hub.glob("models--*--*"), _MOST_SEEN)):
        name = "/".join(folder.name.split("--", 2)[1:])
        with suppress(UsageError, OSError):
            snapshot = _snapshot(name, "main", places.hub)
            plain, files = sum(map(_size, snapshot.glob("*.safetensors"))), sorted(_ggufs(snapshot))
            if plain or len(files) == 1:
                yield ImportableModel(source=f"hub:{name}", bytes=plain or _size(files[0]))
            else:
                yield from (ImportableModel(source=f"gguf:{one}", bytes=_size(one)) for one in files)


def _in_lmstudio(places: Stores) -> Iterator[ImportableModel]:
    for store in places.lmstudio:
        for folder in sorted(islice(store.glob("*/*/"), _MOST_SEEN)):
            if _REPOSITORY.fullmatch("/".join(folder.parts[-2:])):
                for one in sorted(_ggufs(folder)):
                    yield ImportableModel(source=f"lmstudio:{'/'.join(one.parts[-3:])}", bytes=_size(one))


def _size(path: Path) -> int:
    return path.stat().st_size
