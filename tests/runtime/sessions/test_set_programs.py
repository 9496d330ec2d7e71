"""Programs of package sets: what is unpacked of a distribution's packages, and what a guest's root gets of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from runtime.backends.packages import DIGEST, SYSTEM, Packages, link_into
from runtime.package_sets import system
from runtime.package_sets.system import SystemParts, add_system, merge, unpack

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
CONTROL = "Package: tool\nVersion: 1:2.0\nArchitecture: all\nMaintainer: us <us@example.org>\nDescription: a tool\n"
SCRIPT = """#!/bin/sh
touch {ran}
update-alternatives --install /usr/bin/editor editor \\
    /usr/bin/tool 50 --slave /usr/bin/ed ed /usr/bin/gone
"""


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A set with what is unpacked of one package."""
    source = tmp_path / "source"
    for name, text in {
        "DEBIAN/control": CONTROL,
        "DEBIAN/postinst": SCRIPT.format(ran=tmp_path / "ran"),
        "usr/bin/tool": "#!/bin/sh\n",
        "usr/sbin/admin": "#!/bin/sh\n",
        "lib/one/libtool.so.1.0": "",
        "usr/share/doc/tool/README": "long",
        "usr/lib/python3/dist-packages/tooling/__init__.py": "",
        "usr/lib/python3/dist-packages/evil.pth": "import os",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (source / "lib/one/libtool.so.1").symlink_to("libtool.so.1.0")
    (source / "usr/bin/tool").chmod(0o4755)
    (source / "DEBIAN/postinst").chmod(0o755)
    subprocess.run(["dpkg-deb", "-b", str(source), str(tmp_path / "tool_2.0_all.deb")], check=True, capture_output=True)
    found = tmp_path / "set"
    (found / SYSTEM).mkdir(parents=True)
    unpack(tmp_path / "tool_2.0_all.deb", tmp_path)
    merge(tmp_path / "tree", found / SYSTEM)
    return found


def test_a_package_is_unpacked_with_its_alternatives_and_none_of_its_scripts_runs(made: Path) -> None:
    inside = made / SYSTEM
    files = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file() or path.is_symlink())
    assert files == [
        f"{SYSTEM}/usr/bin/admin",
        f"{SYSTEM}/usr/bin/editor",
        f"{SYSTEM}/usr/bin/tool",
        f"{SYSTEM}/usr/lib/one/libtool.so.1",
        f"{SYSTEM}/usr/lib/one/libtool.so.1.0",
        "tooling/__init__.py",
    ]
    assert (inside / "usr/bin/tool").stat().st_mode & 0o7777 == 0o755
    assert (inside / "usr/bin/editor").readlink() == Path("/usr/bin/tool")
    assert not (made.parent / "ran").exists()


def test_a_root_keeps_its_own_files_and_nothing_is_written_through_its_links(made: Path, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "usr/bin", outside):
        folder.mkdir(parents=True)
    (root / "usr/bin/tool").write_text("ours")
    (root / "usr/lib").symlink_to(outside)
    (made / DIGEST).write_text("x")
    link_into(Packages(made, "x"), root)
    assert (root / "usr/bin/tool").read_text() == "ours"
    assert (root / "usr/bin/admin").exists()
    assert list(outside.iterdir()) == []
    assert (root / "opt/packages/tooling/__init__.py").exists()
    assert not (root / "opt/packages" / SYSTEM).exists()


def test_commands_of_packages_are_programs_and_installers_do_nothing(tmp_path: Path) -> None:
    about = tmp_path / "toy-1.dist-info"
    about.mkdir()
    rows = "toy = toy.cli:main\n../evil = toy:main\nbad = toy; rm:x\npip = toy:pip\n"
    (about / "entry_points.txt").write_text(f"[console_scripts]\n{rows}[other]\nx = y:z\n")
    add_system(tmp_path, SystemParts())
    programs = tmp_path / SYSTEM / "usr/bin"
    names = {path.name for path in programs.iterdir()}
    assert {"toy", "apt-get", "uvx", "python"} <= names
    assert "from toy.cli import main" in (programs / "toy").read_text()
    assert not {"evil", "bad"} & names
    for argv in (["pip", "install", "x"], ["apt-get", "update"], ["uv", "pip", "install", "x"]):
        subprocess.run(["sh", str(programs / argv[0]), *argv[1:]], check=True, capture_output=True)
    ran = ["sh", str(programs / "uvx"), "-p", "3.13", "-w", "pytest==8.4.1", "echo", "-w", "it"]
    assert subprocess.run(ran, check=True, capture_output=True).stdout == b"-w it\n"


def test_a_size_above_the_limit_is_refused_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"'http://x/big.deb' big_1_all.deb {2 << 30} SHA256:{'0' * 64}\n"
    monkeypatch.setattr(system, "run_installer", lambda *_, **__: line)
    with pytest.raises(Exception, match="take 2048 MiB"):
        system.resolve_debs(["big"])
