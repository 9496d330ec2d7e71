"""Adapters: what they pin, and what is said where they are not installed."""

from __future__ import annotations

import pytest

from curriculum.adapters import ADAPTERS, AdapterSummary, adapter_named
from curriculum.contract.errors import CurriculumError
from runtime.package_sets import PIN


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_pins_exact_versions_once_and_what_it_imports_is_among_them(name: str) -> None:
    adapter = ADAPTERS[name]
    assert all(PIN.fullmatch(pin) for pin in adapter.pins)
    assert len({pin.partition("==")[0] for pin in adapter.pins}) == len(adapter.pins)
    assert AdapterSummary.of(adapter).packages == len(adapter.pins)


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_that_is_not_installed_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curriculum.adapters.set_named", lambda _name: None)
    assert ADAPTERS[name].installed() is None
    assert f"assay curriculum adapter install {name}" in ADAPTERS[name].missing()


def test_an_adapter_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(CurriculumError) as caught:
        adapter_named("nothing")
    assert caught.value.hint == f"choose one of {', '.join(ADAPTERS)}"
