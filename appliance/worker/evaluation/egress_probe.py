"""Probes a sandbox: code in it tries each way out, and says how the try ended.

What always holds: a way counts as held only when the system denied it in one of the ways in which a denial gives
that way. It is open when somebody answered; anything else (a time-out, an error that nobody foresaw, a report that is
not whole) is not known, and what is not known never passes the gate. That a machine is slow decides nothing. It asks
for addresses and a name that nobody has (RFC 5737, RFC 3849, RFC 2606, the unused part of the link-local range), so
that a hole reaches nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import TypeAdapter

from policies.contract.evidence import ProbeReport
from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, CallStatus

DENIED = ("EACCES", "EPERM", "EAFNOSUPPORT", "EPROTONOSUPPORT")
"""No right, or no such kind of socket."""
NETWORK = (*DENIED, "ENETUNREACH")
ALONE = ("EHOSTUNREACH", "EAI_AGAIN", "EAI_FAIL", "EAI_NONAME")
"""How gVisor says that there is no route, and how a name is not found without one. A network may say the same, so they
are denials only where there is none: no interface but loopback, or no right to look."""
FILES = (*DENIED, "ENOENT", "ENOTDIR")
ANSWERED = ("open", "ECONNREFUSED", "ECONNRESET")
"""Somebody was there to refuse the connection."""
LINKS = "network interfaces"
TRIES = 4
"""Of a route that finds no time."""

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
"""By name: how it is tried, where to, and the endings that are denials."""

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
    """Gives the program that is run in the sandbox."""
    tried = {name: route[:3] for name, route in routes.items()}
    return f"ROUTES = {tried!r}\n{_GUEST}"


def probed(run: Callable[[str], CallResult], routes: Routes = ROUTES) -> ProbeReport:
    """Runs the probe, each time by `run` in a sandbox of its own. Where a busy machine leaves no time for all routes
    they are tried one by one, and one that finds no time in `TRIES` is not known.

    Raises InfrastructureError where the probe ends otherwise, or gives no report."""
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
    """Reads the probe's output. The guest wrote it: whatever is not a denial of that route is not held.

    Raises InfrastructureError for an output that is no report.
    """
    return _report(_read(output), routes)


def _output(result: CallResult) -> str:
    if result.status is not CallStatus.OK:
        raise InfrastructureError(
            f"the probe of the sandboxes ended with {result.status.value}", hint="run `assay doctor`"
        )
    return result.output


def _read(output: str) -> dict[str, object]:
    try:
        return TypeAdapter(dict[str, object]).validate_json(output)
    except ValueError as error:
        raise InfrastructureError("the probe of the sandboxes gave no report", hint="run `assay doctor`") from error


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
    """Makes an ending fit to be shown: the guest wrote it."""
    text = ending if isinstance(ending, str) else "no ending"
    return text[:40] if text.isascii() and text.replace(" ", "").replace("_", "").isalnum() else "an unreadable ending"
