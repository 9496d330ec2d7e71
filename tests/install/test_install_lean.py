"""What --with lean=PLACE takes for a Lean, and what it leaves when it takes none; that Lean is three lines of shell."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "install.sh"


def toolchain(folder: Path, version: str = "4.1.0", *, works: bool = True) -> Path:
    """A folder that looks like a toolchain; its program reads what it is given and says so."""
    for name in ("bin", "lib/lean"):
        (folder / name).mkdir(parents=True)
    (folder / "lib" / "lean" / "Init.olean").write_bytes(b"olean\x02" + b"\0" * 60)
    (folder / "lib" / "lean" / "libleanshared.so").write_bytes(b"library")
    does = 'cat -- "$1" >/dev/null' if works else "echo no such symbol; exit 127"
    program = folder / "bin" / "lean"
    program.write_text(f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "Lean {version}"; exit; }}\n{does}\n')
    program.chmod(0o755)
    return folder


def archive(folder: Path, to: Path) -> tuple[Path, str]:
    """Packs it as releases are, with one folder at the top."""
    with tarfile.open(to, "w:gz") as file:
        file.add(folder, folder.name)
    return to, hashlib.sha256(to.read_bytes()).hexdigest()


def install(place: Path, wanted: str, more: str = "lean_toolchain") -> subprocess.CompletedProcess[str]:
    """Calls what install.sh calls, for an environment in `place`; 4 GB need not be free for it."""
    source = SCRIPT.read_text().removesuffix('main "$@"\n')
    library = (ROOT / "install" / "lean.sh").read_text().replace("LEAN_DISK_MIB=6000", "LEAN_DISK_MIB=1")
    script = f"{source}\n{library}\nVENV='{place}/.venv'\nPY=python3\nlean_place '{wanted}'\n{more}\n"
    environ = {"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place)}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False, env=environ, cwd=place
    )


def test_an_archive_is_taken_once_and_another_one_in_its_place(tmp_path: Path) -> None:
    own = tmp_path / ".venv-lean"
    first, sum_of_first = archive(toolchain(tmp_path / "lean-4.1.0-linux"), tmp_path / "lean-4.1.0.tar.gz")
    done = install(tmp_path, f"lean-4.1.0.tar.gz#sha256={sum_of_first}")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Lean 4.1.0; it compiled a theorem" in done.stdout
    assert (own / "lib" / "lean" / "Init.olean").is_file(), "without the folder at the archive's top"
    assert sorted(path.name for path in own.iterdir()) == [".assay", "bin", "lib"]
    again = install(tmp_path, f"{first}#sha256={sum_of_first}")
    assert (again.returncode, "is what" in again.stdout, "compiled" in again.stdout) == (0, True, False)

    second, sum_of_second = archive(toolchain(tmp_path / "lean-4.2.0-linux", "4.2.0"), tmp_path / "lean-4.2.0.tar.gz")
    Path(f"{second}.sha256").write_text(f"{sum_of_second}  lean-4.2.0.tar.gz\n")
    assert install(tmp_path, str(second)).returncode == 0, "the sum may lie beside it"
    assert (own / ".assay" / "version").read_text() == "Lean 4.2.0\n"

    broken, sum_of_broken = archive(toolchain(tmp_path / "lean-4.3.0-linux", works=False), tmp_path / "broken.tar.gz")
    refused = install(tmp_path, f"{broken}#sha256={sum_of_broken}")
    assert (refused.returncode, "could not compile a theorem: no such symbol" in refused.stdout) == (5, True)
    assert (own / ".assay" / "version").read_text() == "Lean 4.2.0\n", "what was there before still is"
    own.rename(tmp_path / ".venv-lean.old")
    back = install(tmp_path, str(second))
    assert (back.returncode, "is what" in back.stdout) == (0, True), "killed between two renames"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("another sum", "and not 0000"),
        ("no sum", "if its publisher says the same, put #sha256="),
        ("cut", "its SHA-256 is"),
        ("no toolchain", "it has no lib/lean/Init.olean"),
        ("no archive", "no Lean was taken"),
    ],
)
def test_what_is_not_what_it_should_be_is_not_taken(tmp_path: Path, what: str, said: str) -> None:
    folder = tmp_path / "lean"
    if what == "no toolchain":
        (folder / "bin").mkdir(parents=True)
    else:
        toolchain(folder)
    file, digest = archive(folder, tmp_path / "lean.tar.gz")
    if what == "cut":
        file.write_bytes(file.read_bytes()[:-10])
    if what == "no archive":
        file.write_bytes(b"<html>not found</html>")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    suffix = {"another sum": f"#sha256={'0' * 64}", "no sum": ""}.get(what, f"#sha256={digest}")
    result = install(tmp_path, f"{file}{suffix}")
    code = 2 if what == "no sum" else 5
    assert (result.returncode, said in result.stdout + result.stderr) == (code, True), result.stdout + result.stderr
    assert not list(tmp_path.glob(".venv-lean*"))


def test_a_folder_is_copied_with_what_its_links_lead_to(tmp_path: Path) -> None:
    folder = toolchain(tmp_path / "elan" / "toolchains" / "mine")
    library = folder / "lib" / "lean" / "libleanshared.so"
    library.rename(tmp_path / "elsewhere.so")
    library.symlink_to(tmp_path / "elsewhere.so")
    assert install(tmp_path, str(folder)).returncode == 0
    copied = tmp_path / ".venv-lean" / "lib" / "lean" / "libleanshared.so"
    assert (copied.is_symlink(), copied.read_bytes()) == (False, b"library")
    (tmp_path / ".venv-lean" / ".assay" / "made").unlink()
    refused = install(tmp_path, str(folder))
    assert (refused.returncode, "made by someone else" in refused.stderr) == (5, True)


def test_an_address_is_fetched_and_held_against_its_sum(tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    _, digest = archive(toolchain(tmp_path / "lean-4.1.0-linux"), served / "lean.tar.gz")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        assert install(tmp_path, f"{address}/lean.tar.gz#sha256={digest}").returncode == 0
        wrong = install(tmp_path, f"{address}/none.tar.gz#sha256={digest}")
        server.shutdown()
    assert (wrong.returncode, "404" in wrong.stdout) == (5, True)
    assert (tmp_path / ".venv-lean" / ".assay" / "version").read_text() == "Lean 4.1.0\n"


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "/nowhere/lean.tar.gz",
        "https://localhost/lean.tar.zst",
        ".#md5=1",
        ".#sha256=12",
        "https://localhost/l#sha256=",
    ],
)
def test_a_place_that_cannot_be_one_is_usage(tmp_path: Path, wanted: str) -> None:
    result = install(tmp_path, wanted, "echo went on")
    assert (result.returncode, result.stdout) == (2, "")
    assert "what to do:" in result.stderr


def test_a_second_kernel_is_copied_and_another_one_replaces_it(tmp_path: Path) -> None:
    def installed(name: str) -> subprocess.CompletedProcess[str]:
        return install(tmp_path, ".", f"WITH_KERNEL='{name}'\nkernel_place\nlean_kernel")

    for name in ("nanoda_bin", "other"):
        (tmp_path / name).write_text(f"#!/bin/sh\n# {name}\n")
        assert (installed(name).returncode, "is no program" in installed(name).stderr) == (2, True)
        (tmp_path / name).chmod(0o700)
        assert installed(name).returncode == 0
        own = tmp_path / ".venv-kernel"
        assert sorted(path.name for path in own.iterdir()) == [".assay", name]
        assert ((own / name).stat().st_mode & 0o777, own.stat().st_mode & 0o777) == (0o755, 0o755)
    (own / ".assay" / "made").unlink()
    assert "made by someone else" in installed("other").stderr
