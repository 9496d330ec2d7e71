"""The policy in force decides what may load: at the daemon's start, from its signed log, and never from an edit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from plugin_kit.installed_plugin import Installed
from plugin_kit.installed_plugin import installed as installed
from plugin_kit.plugin_python import policy_with

from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError
from appliance.daemon.coordination.core import Core
from appliance.settings.policy_files import in_force_file, parse_policy
from common.plugins.allowed import admitted, allow
from common.plugins.installed import Pin, PluginError, read_plugin
from policies.decide import outcome_of
from policies.errors import PolicyError
from policies.policy import Policy, parse, plugins_in

GATE = """
from pydantic import Field
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateFigure
class Rules(Section):
    least: int = Field(ge=1)
def judge(evidence, rules, context):
    return GateFigure("add-on/many", 1.0, float(rules.least)).passed("enough")
MANY = Gate("add-on/many", Rules, judge)
"""
SECTION = '\n[gates."add-on/many"]\nleast = 1\n'


@pytest.fixture
def pin(installed: Installed) -> Pin:
    installed.put("addon/gates.py", GATE)
    installed.points("[assay.gates]\nmany = addon.gates:MANY\n")
    return read_plugin("add-on").pin


def parsed(pin: Pin | None, more: str = SECTION, *, outside: bool = True) -> Policy:
    return parse(policy_with(pin, more).encode(), "p", outside=outside)


def started(data: Path) -> Core:
    return Core(Settings(data=data), worker=[sys.executable, "-c", ""])


def test_a_gate_from_outside_has_a_section_like_any_other(pin: Pin) -> None:
    assert plugins_in(policy_with(pin, SECTION).encode()) == (pin,)
    assert "addon.gates" not in sys.modules
    allow([pin])
    for section in (SECTION, SECTION.replace('"add-on/many"', '"addon.gates:MANY"')):
        policy = parsed(pin, section)
        assert [gate.name for gate in policy.gates.asked][-1] == "add-on/many"
        assert outcome_of((), policy) == "hold"
    with pytest.raises(PolicyError, match=r"gates.add-on/many.least: Input should be greater"):
        parsed(pin, SECTION.replace("1", "0"))
    with pytest.raises(PolicyError, match="name the same gate"):
        parsed(pin, SECTION + SECTION.replace('"add-on/many"', '"addon.gates:MANY"'))
    rule = '{ when = "approval", is = "failed"'
    for name, known in (("add-on/many", True), ("add-on/few", False)):
        content = policy_with(pin, SECTION, (rule, rule.replace("approval", name)))
        if known:
            assert parse(content.encode(), "p").promotion.rules[0].when == name
        else:
            with pytest.raises(PolicyError, match="unknown gate 'add-on/few'"):
                parse(content.encode(), "p")


def test_a_name_counts_only_where_its_distribution_is_admitted_and_listed(pin: Pin, installed: Installed) -> None:
    with pytest.raises(PolicyError, match="no admitted distribution has this gate") as refused:
        parsed(pin)
    assert "[[plugins]] row first" in refused.value.hint
    assert "addon.gates" not in sys.modules
    allow([pin])
    with pytest.raises(PolicyError, match=r"\[\[plugins\]\] does not list its distribution"):
        parsed(None)
    installed.points("[assay.gates]\nmany = addon.gates:MANY\n[assay.tasksets]\nmore = addon.gates:MANY\n")
    pin = read_plugin("add-on").pin
    allow([pin])
    for row, known in ((pin, True), (None, False)):
        shares = policy_with(row, replaced=("[data.shares]", '[data.shares]\n"add-on/more" = 10.0')).encode()
        if known:
            assert parse_policy(shares, "p").data.shares == {"add-on/more": 10.0}
        else:
            with pytest.raises(PolicyError, match="add-on/more"):
                parse_policy(shares, "p")
    allow([])
    policy = parsed(pin, outside=False)
    assert all("/" not in gate.name for gate in policy.gates.asked), "who may not import it reads the rest"


def test_rows_are_exact_or_refused_with_their_line(pin: Pin) -> None:
    wrong = pin._replace(digest="abc")
    content = policy_with(pin, "\n".join(policy_with(wrong).splitlines()[-4:]))
    with pytest.raises(PolicyError, match=r"plugins.0.digest: String should match pattern") as refused:
        parse(content.encode(), "p")
    assert f"line {content.splitlines().index('[[plugins]]') + 1}:" in str(refused.value)
    with pytest.raises(PolicyError, match="plugins: invalid rows"):
        plugins_in(content.encode())


def test_the_daemon_loads_what_its_log_admits_and_refuses_what_was_altered(
    pin: Pin, installed: Installed, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "policy.toml").write_text(policy_with(pin, SECTION))
    with started(data) as core:
        assert list(admitted()) == ["add-on"]
        assert [gate.name for gate in core.policy.gates.asked][-1] == "add-on/many"
    installed.put("addon/gates.py", GATE + "# altered\n")
    with pytest.raises(PluginError, match="plug-in add-on: its files have the digest"), started(data):
        pass


def test_an_unsigned_edit_admits_nothing(pin: Pin, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data):
        assert not admitted()
    in_force_file(data).write_text(policy_with(pin, SECTION))
    with pytest.raises(BrokenError, match="differed from the signed policy"), started(data):
        pass
    (data / "policy.toml").write_text(policy_with(pin, SECTION))
    with started(data) as core:
        assert not admitted()
        assert all("/" not in gate.name for gate in core.policy.gates.asked)
    assert "addon.gates" not in sys.modules
