"""Nothing of a cluster starts without a token that only its owner can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.cluster import settings
from runtime.errors import RefusedError


def test_a_new_token_is_its_owners_alone_and_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "cluster" / "token"
    settings.make_token(path)
    first = path.read_text()
    settings.make_token(path)
    assert (path.read_text(), len(first), path.stat().st_mode & 0o777) == (first, 64, 0o600)
    settings.check_token(path)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("a" * 64, 0o640, "other users can read"),
        ("a" * 64, 0o604, "other users can read"),
        ("short", 0o600, "has no valid token"),
        ("", 0o600, "has no valid token"),
        ("two words " * 8, 0o600, "has no valid token"),
        ("\x00" * 64, 0o600, "has no valid token"),
    ],
)
def test_a_token_that_protects_nothing_is_refused(tmp_path: Path, content: str, mode: int, why: str) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(RefusedError, match=why) as caught:
        settings.ray_environment({}, path)
    assert caught.value.hint


def test_no_token_is_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be read"):
        settings.check_token(tmp_path / "token")
    with pytest.raises(RefusedError):
        settings.check_token(tmp_path)


def test_what_a_shell_says_about_ray_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "token"
    settings.make_token(path)
    shell = {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "mine", "RAY_ADDRESS": "elsewhere:1", "PATH": "/bin"}
    environ = settings.ray_environment(shell, path, ASSAY_HOST="a")
    assert {name: environ.get(name) for name in (*shell, "RAY_AUTH_TOKEN_PATH", "ASSAY_HOST")} == {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": None,
        "RAY_ADDRESS": None,
        "PATH": "/bin",
        "RAY_AUTH_TOKEN_PATH": str(path),
        "ASSAY_HOST": "a",
    }
    assert environ["RAY_USAGE_STATS_ENABLED"] == "0"
