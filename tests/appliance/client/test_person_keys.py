"""A person's key is encrypted on disk, opens with its passphrase alone, and OpenSSH's own programs read it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.client.person_keys import KeyFileError, find_key, keys_folder, make_key, own_keys, unlock
from appliance.client.ssh_agent import agent_signer
from policies.envelopes import open_envelope, sign_envelope

WORDS = "correct horse battery"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("keys")
    make_key(place, "ada", WORDS)
    return place


def test_a_key_is_encrypted_and_for_its_owner_alone(folder) -> None:
    path = folder / "ada"
    assert path.stat().st_mode & 0o777 == 0o600
    key = find_key(folder, None, None)
    signer = unlock(key, WORDS)
    assert (key.person, signer.public) == ("ada", key.public)
    assert open_envelope(sign_envelope(b"{}", "x/y", signer)).signed_by(key.public)
    with pytest.raises(KeyFileError, match="passphrase"):
        unlock(key, "wrong")


def test_a_key_that_others_may_read_or_that_is_not_encrypted_is_not_used(folder, tmp_path) -> None:
    for name in ("ada", "ada.pub"):
        shutil.copy(folder / name, tmp_path / name)
    (tmp_path / "ada").chmod(0o644)
    with pytest.raises(KeyFileError, match="readable by others"):
        unlock(find_key(tmp_path, None, None), WORDS)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "open"], check=True, capture_output=True
    )
    with pytest.raises(KeyFileError, match="not encrypted"):
        unlock(find_key(tmp_path, tmp_path / "open", None), "")


def test_the_two_halves_have_to_belong_together(folder, tmp_path) -> None:
    shutil.copy(folder / "ada", tmp_path / "ada")
    other = make_key(tmp_path, "bob", WORDS)
    (tmp_path / "ada.pub").write_text((tmp_path / "bob.pub").read_text())
    with pytest.raises(KeyFileError, match="two halves"):
        unlock(find_key(tmp_path, tmp_path / "ada", None), WORDS)
    assert other.path.name == "bob"


def test_no_key_is_written_over_another_and_none_without_a_passphrase(folder) -> None:
    before = (folder / "ada").read_bytes()
    for name, phrase, message in (
        ("ada", WORDS, "already"),
        ("eve", "short", "8 characters"),
        ("../x", WORDS, "invalid name"),
    ):
        with pytest.raises(KeyFileError, match=message):
            make_key(folder, name, phrase)
    assert (folder / "ada").read_bytes() == before
    assert [key.person for key in own_keys(folder)] == ["ada"]


def test_which_key_is_meant_is_said_or_is_the_only_one(folder, tmp_path) -> None:
    with pytest.raises(KeyFileError, match="no key in") as met:
        find_key(tmp_path / "nowhere", None, None)
    assert "assay key new" in met.value.hint
    assert find_key(folder, folder / "ada.pub", None).path == folder / "ada"
    assert keys_folder({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == Path("/c/assay/keys")
    assert keys_folder({"HOME": "/h"}) == Path("/h/.config/assay/keys")


def listens(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(place)) == 0


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A real ssh-agent that dies with the test."""
    place = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL) as process:
        while not listens(place):
            assert process.poll() is None
            time.sleep(0.02)
        yield {"SSH_AUTH_SOCK": str(place)}
        process.terminate()


@pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="there is no OpenSSH here")
def test_a_real_agent_signs_with_a_key_that_it_was_given_and_with_no_other(folder, agent, tmp_path) -> None:
    asks = tmp_path / "ask"
    asks.write_text(f"#!/bin/sh\necho '{WORDS}'\n")
    asks.chmod(0o700)
    environ = os.environ | agent | {"SSH_ASKPASS": str(asks), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
    key = find_key(folder, None, "ada")
    with pytest.raises(KeyFileError, match="did not sign"):
        sign_envelope(b"{}", "x/y", agent_signer(key.public, agent))
    subprocess.run(["ssh-add", "-q", str(key.path)], env=environ, check=True, capture_output=True, timeout=120)
    assert open_envelope(sign_envelope(b"{}", "x/y", agent_signer(key.public, agent))).signed_by(key.public)
    with pytest.raises(KeyFileError, match="SSH_AUTH_SOCK"):
        agent_signer(key.public, {})
    silent = agent_signer(key.public, {"SSH_AUTH_SOCK": str(tmp_path / "nobody")})
    with pytest.raises(KeyFileError, match="does not answer"):
        silent.sign(b"x")
