"""The configuration: which layer wins, where a value came from, and what is said about a mistake."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS

from appliance.config import reference as config_reference
from appliance.config.configuration import Settings
from appliance.learning.recipes.recipe import Recipe
from appliance.settings.config_layers import ConfigError
from curriculum.registry import CALCULATORS, TASKSETS
from runtime.sandbox import Limits


class Places:
    """An /etc/assay, an XDG folder and an environment of a test's own."""

    def __init__(self, folder: Path) -> None:
        self.etc, self.xdg = folder / "etc", folder / "xdg"
        self.etc.mkdir()
        self.xdg.mkdir()
        self.environ = {"HOME": str(folder / "home")}

    def load(self, flags: dict[str, Any] | None = None) -> Settings:
        return Settings.load(flags, self.environ, self.etc, self.xdg)

    def error(self, flags: dict[str, Any] | None = None) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(flags)
        assert caught.value.hint
        return caught.value


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_without_any_layer_the_defaults_hold(places: Places) -> None:
    settings = places.load()
    assert settings.data == Path(places.environ["HOME"]) / ".local/share/assay"
    assert settings.socket_path == settings.data / "run/assay.sock"
    assert settings.model.path is None
    assert settings.schedule.enabled
    assert settings.sandbox.limits() == Limits()
    assert set(settings.origins().values()) == {"default"}


def test_each_layer_wins_over_the_one_before_and_leaves_the_rest(places: Places) -> None:
    key = "sandbox.pids"
    file = "[sandbox]\npids = {}\nmemory_mib = 512\n"
    expected = [(128, "default")]
    assert (places.load().sandbox.pids, places.load().origins()[key]) == expected[0]
    (places.etc / "config.toml").write_text(file.format(100))
    assert (places.load().sandbox.pids, places.load().origins()[key]) == (100, str(places.etc / "config.toml"))
    (places.xdg / "config.toml").write_text("sandbox.pids = 90\n")
    assert (places.load().sandbox.pids, places.load().origins()[key]) == (90, str(places.xdg / "config.toml"))
    places.environ["ASSAY_SANDBOX__PIDS"] = "80"
    assert (places.load().sandbox.pids, places.load().origins()[key]) == (80, "ASSAY_SANDBOX__PIDS")
    settings = places.load({"sandbox.pids": 70, "data": None})
    assert (settings.sandbox.pids, settings.origins()[key]) == (70, "--sandbox-pids")
    assert (settings.sandbox.memory_mib, settings.origins()["sandbox.memory_mib"]) == (
        512,
        str(places.etc / "config.toml"),
    )


def test_the_data_folder_is_named_by_flag_variable_or_xdg(places: Places) -> None:
    places.environ["XDG_DATA_HOME"] = "/x"
    assert places.load().data == Path("/x/assay")
    places.environ["ASSAY_DATA"] = "/y"
    assert places.load().data == Path("/y")
    assert places.load({"data": Path("/z")}).data == Path("/z")
    assert places.load({"data": "here"}).data == Path.cwd() / "here"
    assert places.load({"data": "~/here"}).data == Path.home() / "here"


def test_the_environment_of_the_process_is_read_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("ASSAY_JOBS__ATTEMPTS", "3")
    (tmp_path / "assay").mkdir()
    (tmp_path / "assay" / "config.toml").write_text("threads = 2\n")
    settings = Settings.load(etc_dir=tmp_path / "none")
    assert (settings.jobs.attempts, settings.threads) == (3, 2)


def test_every_number_of_the_recipe_can_be_set(places: Places) -> None:
    (places.xdg / "config.toml").write_text('[recipe.training]\nsteps = 3\nselector = "uniform"\n')
    places.environ["ASSAY_RECIPE__WARM_START__LEARNING_RATE"] = "1e-3"
    settings = places.load()
    assert settings.recipe.training.steps == 3
    assert settings.recipe.training.selector == "uniform"
    assert settings.recipe.training.keep == 8
    assert settings.recipe.warm_start.learning_rate == 1e-3


def test_an_empty_variable_counts_as_not_set_and_the_installers_own_are_passed_over(places: Places) -> None:
    places.environ |= {"ASSAY_THREADS": "", "ASSAY_PYTHON": "/usr/bin/python3", "ASSAYER": "x"}
    assert places.load().threads is None


# mistakes
@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("[sandbox]\npid = 3\n", "sandbox.pid", "sandbox.pids"),
        ("dta = '/x'\n", "dta", "data"),
        ("[recipe.training]\nlearning_rat = 1\n", "recipe.training.learning_rat", "recipe.training.learning_rate"),
        ("[shedule]\ncron = '* * * * *'\n", "shedule", "schedule"),
    ],
)
def test_an_unknown_key_in_a_file_names_the_file_the_key_and_the_nearest(
    places: Places, text: str, key: str, meant: str
) -> None:
    file = places.xdg / "config.toml"
    file.write_text(text)
    error = places.error()
    assert str(error) == f"{file}: unknown key {key}"
    assert error.hint == f"did you mean {meant}?"


def test_an_unknown_variable_or_flag_is_named_as_it_was_written(places: Places) -> None:
    assert str(places.error({"sandbox.pid": 1})).startswith("--sandbox-pid: unknown key")
    places.environ["ASSAY_LOG__LEVL"] = "debug"
    error = places.error()
    assert str(error) == "ASSAY_LOG__LEVL: unknown key log.levl"
    assert "log.level" in error.hint


def test_a_key_that_resembles_none_is_answered_with_those_that_there_are(places: Places) -> None:
    (places.etc / "config.toml").write_text("[jobs]\nzzzzzz = 1\n")
    assert "attempts" in places.error().hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sandbox]\npids = 3\n", "sandbox.pids = 3: Input should be greater than or equal to 16"),
        ("[sandbox]\ncpus = 'many'\n", "sandbox.cpus = 'many'"),
        ("[schedule]\ncron = 'at night'\n", "Wrong number of fields"),
        ("[schedule]\ncron = '99 2 * * *'\n", "schedule.cron"),
        ("[schedule]\ntimezone = 'Mars/Olympus'\n", "unknown time zone"),
        ("[log]\nformat = 'xml'\n", "'console' or 'json'"),
        ("sandbox = 3\n", "sandbox is a section, not a value"),
        ("[threads]\nmany = 3\n", "threads is a value, not a section"),
        ("data = '~nobodyatall/x'\n", "unknown user"),
        ("data = ''\n", "data = '': not a file or folder name"),
        ('[api]\nsocket = "a\\u0000b"\n', "not a file or folder name"),
        ("[gateway]\nredact = ['a', 1]\n", "gateway.redact.1 = 1"),
        ("[recipe.training]\nlearning_rate = inf\n", "recipe.training.learning_rate = inf: Input should be a finite"),
        ("[sandbox]\ncpu_seconds = inf\n", "sandbox.cpu_seconds"),
        ("[schedule]\nweekdays = 'mon'\n", 'list, such as ["a", "b"]'),
    ],
)
def test_a_wrong_value_names_the_file_the_key_and_the_reason(places: Places, text: str, message: str) -> None:
    file = places.etc / "config.toml"
    file.write_text(text)
    error = places.error()
    assert str(error).startswith(f"{file}: ")
    assert message in str(error)


def test_a_wrong_variable_is_blamed_and_not_the_file_under_it(places: Places) -> None:
    (places.etc / "config.toml").write_text("[jobs]\nattempts = 4\n")
    places.environ["ASSAY_JOBS__ATTEMPTS"] = "four"
    assert str(places.error()).startswith("ASSAY_JOBS__ATTEMPTS: jobs.attempts:")


def test_every_key_that_has_a_default_can_be_set_by_its_variable_as_a_file_would_have_it(places: Places) -> None:
    written = {
        key.variable: key for key in config_reference.keys().values() if key.default is not None and key.name != "data"
    }
    places.environ |= {
        name: key.default if isinstance(key.default, str) else json.dumps(key.default) for name, key in written.items()
    }
    settings = places.load()
    for name, key in written.items():
        assert settings.leaves()[key.name] == key.default, name
        if places.environ[name]:
            assert settings.origins()[key.name] == name


def test_a_variable_with_a_list_is_written_as_in_a_file_and_a_wrong_one_is_blamed(places: Places) -> None:
    places.environ["ASSAY_GATEWAY__REDACT"] = r"""['falcon-\d+', "hunter"]"""
    assert places.load().gateway.redact == (r"falcon-\d+", "hunter")
    for wrong in ("mon, fri", '["mon"]\nkey = 3', '["mon"', "\udcff"):
        places.environ["ASSAY_SCHEDULE__WEEKDAYS"] = wrong
        error = places.error()
        assert str(error).startswith("ASSAY_SCHEDULE__WEEKDAYS: schedule.weekdays: ")
    places.environ["ASSAY_SCHEDULE__WEEKDAYS"] = "[" * 5000
    assert "ASSAY_SCHEDULE__WEEKDAYS" in str(places.error())


def test_bad_toml_names_the_file_and_the_line(places: Places) -> None:
    file = places.xdg / "config.toml"
    file.write_text("threads = 2\ndata = /no/quotes\n")
    error = places.error()
    assert str(file) in str(error)
    assert "line 2" in str(error)


def test_a_file_that_is_no_text_or_no_file_is_reported(places: Places) -> None:
    (places.etc / "config.toml").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in str(places.error())
    (places.etc / "config.toml").unlink()
    (places.etc / "config.toml").mkdir()
    assert "cannot be read" in str(places.error())


@pytest.mark.parametrize("text", ["threads = " + "[" * 50_000, f"threads = {'9' * 5_000}"])
def test_a_file_that_no_reader_can_hold_is_refused_with_its_name(places: Places, text: str) -> None:
    (places.etc / "config.toml").write_text(text)
    assert f"{places.etc / 'config.toml'} is not TOML" in str(places.error())


def test_a_file_without_an_end_is_refused_and_not_waited_for(places: Places) -> None:
    file = places.etc / "config.toml"
    os.mkfifo(file)
    assert "not a regular file" in str(places.error())
    file.unlink()
    file.symlink_to("/dev/zero")
    assert "not a regular file" in str(places.error())
    file.unlink()
    file.write_bytes(b"#" * ((1 << 20) + 1))
    assert "larger than 1048576 bytes" in str(places.error())


def test_variables_that_contradict_each_other_are_reported(places: Places) -> None:
    places.environ |= {"ASSAY_SANDBOX": "x", "ASSAY_SANDBOX__PIDS": "64"}
    assert "ASSAY_SANDBOX" in str(places.error())


keys = st.text(min_size=1) | st.sampled_from(["data", "sandbox", "sandbox.pids", "sandbox.pids.x", "schedule.cron"])


@settings(max_examples=FROM_STRANGERS)
@given(st.dictionaries(keys, st.integers() | st.text() | st.dictionaries(st.text(), st.integers())))
def test_flags_whatever_they_are_give_settings_or_an_error_with_a_hint(flags: dict[str, Any]) -> None:
    nowhere = Path("/nonexistent")
    try:
        settings = Settings.load(flags, {"HOME": "/h"}, nowhere, nowhere)
    except ConfigError as error:
        hint = error.hint
    else:
        hint = settings.render()
    assert hint


# rendering
def test_the_text_is_toml_and_names_every_origin(places: Places) -> None:
    places.environ["ASSAY_THREADS"] = "2"
    text = places.load().render(origins=True)
    lines = [line for line in text.splitlines() if "(not set)" not in line]
    parsed = tomllib.loads("\n".join(lines))
    assert parsed["threads"] == 2
    assert parsed["recipe"]["training"]["clip_high"] == 0.28
    assert all("  # " in line for line in text.splitlines())
    assert "# ASSAY_THREADS" in text
    shorter = [line for line in text.splitlines() if line.index("  # ") <= 44]
    assert len(shorter) > 0.9 * len(text.splitlines())  # one long value does not push the others off the screen
    assert "#" not in places.load().render()


def test_the_json_has_value_and_origin_of_every_key(places: Places) -> None:
    shown = json.loads(places.load({"data": "/d"}).render_json())
    assert shown["data"] == {"value": "/d", "origin": "--data"}
    assert shown["model.path"] == {"value": None, "origin": "default"}
    assert shown["sandbox.pids"]["value"] == 128


def test_settings_survive_the_way_to_a_worker_process(places: Places) -> None:
    settings = places.load({"recipe.training.steps": 2})
    received = Settings.model_validate_json(settings.model_dump_json())
    assert received.model_dump() == settings.model_dump()


def test_the_constructor_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/wrong")
    monkeypatch.setenv("THREADS", "64")
    assert Settings(data=Path("/d")).threads is None


def test_the_tasksets_of_the_default_recipe_are_calculators_of_the_registry() -> None:
    assert Recipe().tasksets == CALCULATORS
    assert set(CALCULATORS) < set(TASKSETS)
