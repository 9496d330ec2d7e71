"""Egress probe: code in a sandbox tries each network and socket route and reports the outcome.

Invariants: a route counts as held only if the system denied it with an error expected for that route. A route is open
if anything answered. Every other outcome (timeout, unexpected error, incomplete report) is unknown, and unknown never
passes the gate, so a slow machine decides nothing. The probe uses reserved addresses and names (RFC 5737, RFC 3849, RFC
2606, the unused part of the link-local range), so a leak reaches nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import TypeAdapter

from policies.contract.evidence import ProbeReport
from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, CallStatus

DENIED = ("EACCES", "EPERM", "EAFNOSUPPORT", "EPROTONOSUPPORT")
"""Errors for a missing right or an unsupported socket type."""
NETWORK = (*DENIED, "ENETUNREACH")
ALONE = ("EHOSTUNREACH", "EAI_AGAIN", "EAI_FAIL", "EAI_NONAME")
"""Errors for a missing route (in gVisor), and for a name lookup without one. A real network may return the same errors,
so they count as denials only without a network: no interface but loopback, or no right to list interfaces."""
FILES = (*DENIED, "ENOENT", "ENOTDIR")
ANSWERED = ("open", "ECONNREFUSED", "ECONNRESET")
"""Outcomes that prove a peer exists, if only to refuse the connection."""
LINKS = "network interfaces"
TRIES = 4
"""Attempts per route when a busy machine times the probe out."""

Routes = Mapping[str, tuple[str, str, int, Sequence[str]]]

ROUTES: Routes = {
    LINKS: ("links", "", 0, (*DENIED, "loopback only")),
    "tcp to an address": ("tcp", "198.51.100.1", 443, (*NETWORK, *ALONE)),
    "tcp to an ipv6 address": ("tcp6", "2001:db8::1", 443, (*NETWORK, *ALONE)),
    "tcp to another network": ("tcp", "203.0.113.1", 22, (*NETWORK, *ALONE)),
    "tcp to a link-local address": ("tcp", "169.254.0.1", 80, (*NETWORK, *ALONE)),
    "udp": ("udp", "198.51.100.1", 53, (*NETWORK, *ALONE)),
    "names": ("name", "name.invalid", 80, (*NETWORK, *ALONE)),
    "raw packets": ("raw", "", 0, DENIED),
    "docker": ("unix", "/var/run/docker.sock", 0, FILES),
    "dbus": ("unix", "/run/dbus/system_bus_socket", 0, FILES),
}
"""Route by name: method, address, port, and the outcomes that are denials."""

_GUEST = """
import errno, json, socket
def attempt(how, place, port):
    if how == "links":
        return "open" if [name for _, name in socket.if_nameindex() if name != "lo"] else "loopback only"
    if how == "name":
        socket.getaddrinfo(place, port)
        return "open"
    family = {"tcp": socket.AF_INET, "udp": socket.AF_INET, "tcp6": socket.AF_INET6, "unix": socket.AF_UNIX,
              "raw": socket.AF_PACKET}[how]
    kind = {"udp": socket.SOCK_DGRAM, "raw": socket.SOCK_RAW}.get(how, socket.SOCK_STREAM)
    with socket.socket(family, kind) as s:
        s.settimeout(0.5)
        if how != "raw":
            s.connect(place if how == "unix" else (place, port))
        if how == "udp":
            s.send(b"x")
    return "open"
def ending(how, place, port):
    try:
        return attempt(how, place, port)
    except socket.gaierror as error:
        names = [n for n in dir(socket) if n.startswith("EAI_") and getattr(socket, n) == error.errno]
        return names[0] if names else "gaierror"
    except TimeoutError:
        return "nobody answered"
    except OSError as error:
        return errno.errorcode.get(error.errno, "OSError")
    except BaseException as error:
        return type(error).__name__
print(json.dumps({name: ending(*route) for name, route in ROUTES.items()}))
"""


def probe(routes: Routes = ROUTES) -> str:
    """Returns the Python program that tries every route out of a sandbox, to be run inside one."""
    tried = {name: route[:3] for name, route in routes.items()}
    return f"ROUTES = {tried!r}\n{_GUEST}"


def probed(run: Callable[[str], CallResult], routes: Routes = ROUTES) -> ProbeReport:
    """Runs the program that tries to leave the sandbox, each time in a fresh sandbox by `run`. If all routes together
    time out, each is probed alone; a route that times out `TRIES` times is unknown. Raises InfrastructureError if the
    probe fails or returns no report."""
    result = run(probe(routes))
    if result.status is not CallStatus.TIMEOUT:
        return report_of(_output(result), routes)
    endings: dict[str, object] = {}
    for name, route in routes.items():
        for _ in range(TRIES):
            result = run(probe({name: route}))
            if result.status is not CallStatus.TIMEOUT:
                endings |= _read(_output(result))
                break
    return _report(endings, routes)


def report_of(output: str, routes: Routes = ROUTES) -> ProbeReport:
    """Parses the egress probe's output, which the hostile guest wrote: only an expected denial counts as held. Raises
    InfrastructureError for malformed output."""
    return _report(_read(output), routes)


def _output(result: CallResult) -> str:
    if result.status is not CallStatus.OK:
        raise InfrastructureError(f"the sandbox probe ended with {result.status.value}", hint="run `assay doctor`")
    return result.output


def _read(output: str) -> dict[str, object]:
    try:
        return TypeAdapter(dict[str, object]).validate_json(output)
    except ValueError as error:
        raise InfrastructureError("the sandbox probe returned no report", hint="run `assay doctor`") from error


def _report(endings: Mapping[str, object], routes: Routes) -> ProbeReport:
    alone = endings.get(LINKS) in ROUTES[LINKS][3]
    held = [
        name
        for name, (_, _, _, denials) in routes.items()
        if endings.get(name) in denials and (alone or endings.get(name) not in ALONE)
    ]
    open_ = [name for name in routes if endings.get(name) in ANSWERED and name not in held]
    unknown = [f"{name} ({_plain(endings.get(name))})" for name in routes if name not in held and name not in open_]
    return ProbeReport(tried=len(routes), held=len(held), open=tuple(open_), unknown=tuple(unknown))


def _plain(ending: object) -> str:
    """Returns a guest's outcome if it has only ASCII letters, digits, spaces and underscores, else a fixed phrase.
    Truncates it to 40 characters."""
    text = ending if isinstance(ending, str) else "no ending"
    return text[:40] if text.isascii() and text.replace(" ", "").replace("_", "").isalnum() else "an unreadable ending"
