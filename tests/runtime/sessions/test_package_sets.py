"""Sets of packages for guests: exact versions, found by digest alone, refused where they are not."""

from __future__ import annotations

import os
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from runtime.backends.packages import find_set
from runtime.backends.rootfs import inspect_python
from runtime.errors import RefusedError
from runtime.package_sets import InstalledSet, extend_set, install_set, installed_names, pip, set_named
from runtime.package_sets.pip import resolve
from runtime.profile import PackageSet, Profile
from runtime.sandbox import Tier
from runtime.sessions import Sessions
from runtime.settings import RuntimeSettings

DIGEST = "0123456789abcdef"


def finished(sets: Path, digest: str, says: str | None = None) -> None:
    (sets / digest).mkdir(parents=True)
    (sets / digest / "digest").write_text(f"{says or digest}\n")


def test_a_set_is_found_by_its_digest_and_only_when_it_was_finished(tmp_path: Path) -> None:
    finished(tmp_path, DIGEST)
    assert find_set(DIGEST, tmp_path) == tmp_path / DIGEST
    (tmp_path / ("a" * 16)).mkdir()
    finished(tmp_path, "b" * 16, says=DIGEST)
    for unfinished in ("a" * 16, "b" * 16, "c" * 16):
        with pytest.raises(RefusedError, match="no package set"):
            find_set(unfinished, tmp_path)


def test_a_name_points_to_an_installed_set_or_to_none(tmp_path: Path) -> None:
    assert set_named("mcp", tmp_path) is None
    (tmp_path / "mcp.name").write_text(DIGEST)
    assert set_named("mcp", tmp_path) is None
    finished(tmp_path, DIGEST)
    assert set_named("mcp", tmp_path) == DIGEST


@pytest.mark.parametrize("pin", ["", "mcp", "mcp>=2", "--index-url=x==1", "mcp==2.3; x", "a @ file:///x", "../x==1"])
def test_what_is_no_exact_version_is_not_installed(tmp_path: Path, pin: str) -> None:
    with pytest.raises(RefusedError, match="not an exact version"):
        install_set("toy", [pin], ["toy"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_packages_that_cannot_be_had_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(RefusedError, match="No matching distribution found for annotated-types"):
        install_set("toy", ["annotated-types==0.0.0"], ["annotated_types"], tmp_path / "sets")
    assert list((tmp_path / "sets").iterdir()) == []


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, InstalledSet]:
    """A set of one package, which pip takes from a folder with its wheel; the folder of sets, and the set."""
    folder = tmp_path_factory.mktemp("toy")
    about = "toy_for_guests-1.0.dist-info"
    with zipfile.ZipFile(folder / "toy_for_guests-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("toy_for_guests.py", "print('imported ahead')\nANSWER = 42\n")
        wheel.writestr("evil.pth", "import os\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: toy-for-guests\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    sets = folder / "sets"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(folder))
        found = install_set("toy", ["toy-for-guests==1.0"], ["toy_for_guests"], sets)
        assert install_set("toy", ["toy-for-guests==1.0"], ["toy_for_guests"], sets) == found
    return sets, found


def test_what_is_installed_has_no_code_that_runs_by_itself_and_one_name(toy: tuple[Path, InstalledSet]) -> None:
    sets, found = toy
    assert set_named("toy", sets) == found.digest
    assert sorted(path.name for path in sets.iterdir()) == sorted([found.digest, "toy.name"])
    assert not list(found.folder.rglob("*.pth"))


def test_a_set_is_extended_by_files_and_by_nothing_that_it_has_already(toy: tuple[Path, InstalledSet]) -> None:
    sets, base = toy
    added = {"mine/__init__.py": b"raise SystemExit", "mine/run.pth": b"import os\n"}
    found = extend_set("toy-mine", base.folder, added, sets)
    assert found.digest != base.digest
    assert (found.folder / "toy_for_guests.py").read_bytes() == (base.folder / "toy_for_guests.py").read_bytes()
    assert not list(found.folder.rglob("*.pth"))
    assert extend_set("toy-mine", base.folder, added, sets) == found
    assert installed_names(sets) == ["toy", "toy-mine"]
    changed = extend_set("toy-mine", base.folder, {"mine/__init__.py": b"x = 1"}, sets)
    assert changed.digest != found.digest
    assert not found.folder.exists()
    for path in ("toy_for_guests.py", "../x.py", "/x.py", ""):
        with pytest.raises(RefusedError):
            extend_set("toy-other", base.folder, {path: b""}, sets)
    shutil.rmtree(changed.folder)
    (sets / "toy-mine.name").unlink()


def wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    about = f"{name}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as made:
        made.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        made.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{about}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pip's only source."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def test_a_lock_has_all_dependencies_by_hash_and_prefers_the_given_versions(wheels: Path, tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        wheel(wheels, "below", version)
    wheel(wheels, "above", "3.0", "below>=1", 'unseen; extra == "more"')
    python = inspect_python(None).version
    assert [(one.name, one.version) for one in resolve(["above"], [], python)] == [("above", "3.0"), ("below", "2.0")]
    kept = resolve(["above"], ["below==1.0"], python)
    assert [(one.name, one.version) for one in kept] == [("above", "3.0"), ("below", "1.0")]
    newer = resolve(["above", "below>1"], ["below==1.0"], python)
    assert newer[1].version == "2.0"  # what is preferred gives way to what is required
    found = install_set("locked", [one.line for one in kept], [], tmp_path / "sets")
    assert (found.folder / "below.py").read_text() == "VERSION = '1.0'\n"
    wheel(wheels, "below", "1.0", "other")  # another file by the same name and version
    with pytest.raises(RefusedError, match=r"(?i)hash"):
        install_set("locked", [one.line for one in kept], [], tmp_path / "others")


def test_an_installation_without_a_solution_shows_what_pip_says(wheels: Path) -> None:
    wheel(wheels, "above", "3.0", "below>=9")
    wheel(wheels, "below", "1.0")
    with pytest.raises(RefusedError, match=r"pip failed: .*below>=9"):
        resolve(["above"], [], inspect_python(None).version)


@pytest.mark.parametrize("asked", ["--index-url=x", "a @ file:///x", "../x", "a\n--pre", "git+https://x/y", "-r x"])
def test_only_names_and_versions_are_resolved(asked: str) -> None:
    with pytest.raises(RefusedError, match="not a requirement"):
        resolve([asked], [], "3.11.2")


def test_an_installer_is_ended_for_lack_of_progress_and_not_for_its_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip, "STALLED_SECONDS", 1.0)
    monkeypatch.setattr(pip, "LOOK_SECONDS", 0.1)
    writes = "for n in 1 2 3 4 5 6 7 8; do sleep .3; echo $n >> grown; done; echo done"
    assert "done" in pip.run_installer(["sh", "-c", writes], "it", [tmp_path], tmp_path)
    with pytest.raises(RefusedError, match=r"no progress for 1 s: before\\x1b\[2J"):
        pip.run_installer(["sh", "-c", "printf 'before\\033[2J\\n'; sleep 60"], "it", [tmp_path])


def test_an_installer_that_fetches_too_much_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "MOST_MIB", -1)
    with pytest.raises(RefusedError, match="more than -1 MiB"):
        pip.run_installer(["sleep", "60"], "it", [tmp_path])


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A set without a file, for those that are made of it."""
    finished(tmp_path / "sets", DIGEST)
    return tmp_path / "sets" / DIGEST


def test_several_that_install_at_once_wait_for_one_another(empty: Path) -> None:
    def extend(content: bytes) -> str:
        return extend_set("mine", empty, {"mine.py": content}, empty.parent).digest

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(extend, [b"x = 1"] * 4 + [b"x = 2"] * 2))
    assert set_named("mine", empty.parent) in found
    kept = {path.name for path in empty.parent.iterdir()}
    assert kept == {DIGEST, "mine.name", set_named("mine", empty.parent)}


def test_what_a_kill_left_is_no_set_and_goes_with_the_next_one(empty: Path) -> None:
    sets, added = empty.parent, {"mine.py": b"x = 1"}
    made = extend_set("mine", empty, added, sets)
    (made.folder / "digest").unlink()
    for left in ("new-half", "old-half"):
        (sets / left / "pip").mkdir(parents=True)
    assert extend_set("mine", empty, added, sets) == made
    assert {path.name for path in sets.iterdir()} == {DIGEST, "mine.name", made.digest}
    assert (made.folder / "mine.py").read_bytes() == b"x = 1"


def test_a_set_whose_removal_was_killed_is_found_by_nobody(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = extend_set("mine", empty, {"mine.py": b"x = 1"}, empty.parent)

    really = shutil.rmtree

    def killed(folder: Path, **_: object) -> None:
        first_files = [file for file in Path(folder).rglob("mine.py") if file.read_bytes() == b"x = 1"]
        for file in first_files:
            file.unlink()
        if first_files:
            raise SystemExit(9)
        really(folder, ignore_errors=True)

    with monkeypatch.context() as patch:
        patch.setattr("runtime.package_sets.shutil.rmtree", killed)
        with pytest.raises(SystemExit):
            extend_set("mine", empty, {"mine.py": b"x = 2"}, empty.parent)
    with pytest.raises(RefusedError, match="no package set"):
        find_set(first.digest, empty.parent)


def test_a_session_has_the_packages_that_it_asked_for_imported_ahead_and_others_do_not(
    toy: tuple[Path, InstalledSet], settings: RuntimeSettings, tmp_path: Path
) -> None:
    sets, found = toy
    own = settings.own.model_copy(update={"state_dir": tmp_path, "package_sets": sets})
    asked = PackageSet(digest=found.digest, preload=("toy_for_guests",))
    with (
        Sessions(settings.model_copy(update={"own": own})) as pool,
        pool.open(packages=asked) as session,
        pool.open(tier=Tier.SANDBOX) as other,
    ):
        assert session.run("import sys; print('toy_for_guests' in sys.modules)").output == "True\n"
        assert session.run("import toy_for_guests; x = toy_for_guests.ANSWER; print(x)").output == "42\n"
        assert session.run("open(toy_for_guests.__file__, 'a')").error.startswith("PermissionError")
        [branch] = session.fork(1)
        with branch:
            assert branch.run("print(x, toy_for_guests.ANSWER)").output == "42 42\n"
        assert other.run("import toy_for_guests").error.startswith("ModuleNotFoundError")


@pytest.mark.parametrize("digest", ["", "..", "../../etc", "0123456789ABCDEF", DIGEST + "0"])
def test_a_digest_is_never_a_path(digest: str) -> None:
    with pytest.raises(ValidationError):
        PackageSet(digest=digest)


def test_only_a_sandbox_of_its_own_has_packages_of_its_own() -> None:
    sizes = {"memory_mib": 64, "process_memory_mib": 64, "pids": 16, "cpus": 1, "tmp_mib": 1, "work_mib": 1}
    assert Profile(mode="sandbox", packages=DIGEST, output_bytes=64, **sizes).packages == DIGEST
    for wrong in ({"mode": "process"}, {"mode": "shared"}):
        with pytest.raises(ValidationError, match="packages need mode"):
            Profile.model_validate({**sizes, **wrong, "packages": DIGEST, "output_bytes": 64})


def test_a_session_with_a_set_that_is_not_installed_is_refused_at_its_first_call(pool: Sessions) -> None:
    with pool.open(packages=PackageSet(digest=DIGEST)) as session:
        assert session.tier is Tier.SANDBOX
        with pytest.raises(RefusedError, match="no package set"):
            session.run("1")
