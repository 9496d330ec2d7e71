"""The probe sees a way that is open, and takes nothing but a denial for one."""

from __future__ import annotations

import ast
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.worker.evaluation.egress_probe import DENIED, LINKS, NETWORK, ROUTES, TRIES, probe, probed, report_of
from policies.contract.decision import GateOutcome
from policies.contract.evidence import Evidence, Measurements, ProbeReport
from policies.contract.rules import Section
from policies.gates.egress import judge
from policies.gates.gate import AskedGates, GateContext
from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, CallStatus, Tier

HELD = {name: way[3][0] for name, way in ROUTES.items()}


def outcome(report: ProbeReport) -> GateOutcome:
    """Of the gate, on evidence that holds nothing else."""
    digests = dict.fromkeys(("candidate", "champion", "in_service", "candidate_asked", "champion_asked"), "a" * 64)
    found = judge(
        Evidence(
            evaluation="e",
            sealed_set="d" * 64,
            candidate_temperature=1.0,
            champion_temperature=1.0,
            items=(),
            evaluated_at="2026-01-02T03:00:00+00:00",
            measurements=Measurements(egress=report),
            **digests,
        ),
        Section(),
        GateContext(AskedGates(), "2026-01-02T03:00:00+00:00"),
    )
    return found.outcome


def ended(status: CallStatus, output: str = "") -> CallResult:
    return CallResult(status=status, output=output, seconds=1.0, tier=Tier.SANDBOX, sandbox="a")


def probe_report(**endings: object) -> ProbeReport:
    return report_of(json.dumps({**HELD, **{name.replace("_", " "): end for name, end in endings.items()}}))


def test_outside_of_any_sandbox_the_probe_finds_what_is_open(tmp_path: Path) -> None:
    """A socket on loopback, one of the file system, and one that nobody has bound."""
    place = f"/tmp/{tmp_path.name}-{id(tmp_path)}.sock"
    with socket.create_server(("127.0.0.1", 0)) as near, socket.socket(socket.AF_UNIX) as local:
        local.bind(place)
        local.listen()
        ways = {
            "loopback": ("tcp", "127.0.0.1", near.getsockname()[1], NETWORK),
            "datagram": ("udp", "127.0.0.1", near.getsockname()[1], NETWORK),
            "nobody there": ("tcp", "127.0.0.1", 1, NETWORK),
            "socket": ("unix", place, 0, DENIED),
            "no socket": ("unix", f"{place}.none", 0, (*DENIED, "ENOENT")),
        }
        found = subprocess.run(
            [sys.executable, "-c", probe(ways)], capture_output=True, text=True, timeout=120, check=True
        )
    Path(place).unlink()
    report = report_of(found.stdout, ways)
    assert (report.open, report.held) == (("loopback", "datagram", "nobody there", "socket"), 1)
    assert outcome(report) is GateOutcome.FAILED


def test_in_a_sandbox_every_way_is_denied(context) -> None:
    with context.sessions.open(tier=Tier.SANDBOX, caller="test") as session:
        result = session.run(probe())
    assert result.status is CallStatus.OK, result
    report = report_of(result.output)
    assert (report.open, report.unknown, report.held) == ((), (), len(ROUTES))
    assert outcome(report) is GateOutcome.PASSED


@pytest.mark.parametrize("end", ["nobody answered", "ETIMEDOUT", "ValueError", "loopback only", None, 3, "\x1b[2J"])
def test_what_is_no_denial_is_not_known_and_does_not_pass(end: object) -> None:
    report = probe_report(udp=end)
    assert (report.held, report.open, len(report.unknown)) == (len(ROUTES) - 1, (), 1)
    assert "\x1b" not in report.unknown[0]
    assert outcome(report) is GateOutcome.UNDECIDED


def test_no_route_is_a_denial_only_where_there_is_no_network() -> None:
    assert probe_report(udp="EHOSTUNREACH").unknown == ()
    networked = probe_report(udp="EHOSTUNREACH", network_interfaces="open")
    assert (networked.open, networked.unknown) == ((LINKS,), ("udp (EHOSTUNREACH)",))
    assert outcome(networked) is GateOutcome.FAILED


def test_a_machine_that_leaves_no_time_for_all_routes_is_asked_for_one_after_the_other() -> None:
    ran: list[str] = []

    def run(program: str) -> CallResult:
        ran.append(program)
        asked = ast.literal_eval(program.partition("\n")[0].removeprefix("ROUTES = "))
        late = len(asked) > 1 or "udp" in asked or (len(ran) == 2)
        output = json.dumps({name: HELD[name] for name in asked})
        return ended(CallStatus.TIMEOUT) if late else ended(CallStatus.OK, output)

    report = probed(run)
    assert (report.held, report.open, report.unknown) == (len(ROUTES) - 1, (), ("udp (no ending)",))
    assert len(ran) == 1 + len(ROUTES) + 1 + (TRIES - 1)
    with pytest.raises(InfrastructureError, match="ended with memory"):
        probed(lambda _: ended(CallStatus.MEMORY))


@pytest.mark.parametrize("output", ["", "[]", "{", "3"])
def test_no_report_is_a_failure_of_the_infrastructure(output: str) -> None:
    with pytest.raises(InfrastructureError):
        report_of(output)
