"""A probe of a sandbox: code in it tries each way out, and says how the try ended.

What always holds: a way counts as held only when the system denied it in one of the ways in which a denial looks for
that way. It is open when somebody answered; anything else (a time-out, an error that nobody foresaw, a report that is
not whole) is not known, and what is not known never passes the gate. It asks for documentation addresses, so that a
hole reaches nobody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from policies.evidence import ProbeReport
from runtime.errors import InfrastructureError

DENIED = ("EACCES", "EPERM", "EAFNOSUPPORT", "EPROTONOSUPPORT")
"""No right, or no such kind of socket."""
NETWORK = (*DENIED, "ENETUNREACH")
ALONE = ("EHOSTUNREACH", "EAI_AGAIN", "EAI_FAIL", "EAI_NONAME")
"""How gVisor says that there is no route, and how a name is not found without one. A network may say the same, so they
are denials only where there is none: no interface but loopback, or no right to look."""
FILES = (*DENIED, "ENOENT", "ENOTDIR")
ANSWERED = ("open", "ECONNREFUSED", "ECONNRESET")
"""A refused connection was heard by somebody."""
LINKS = "network interfaces"

Ways = Mapping[str, tuple[str, str, int, Sequence[str]]]

WAYS: Ways = {
    LINKS: ("links", "", 0, (*DENIED, "loopback only")),
    "tcp to an address": ("tcp", "192.0.2.1", 443, (*NETWORK, *ALONE)),
    "tcp to an ipv6 address": ("tcp6", "2001:db8::1", 443, (*NETWORK, *ALONE)),
    "tcp to a private address": ("tcp", "10.0.0.1", 22, (*NETWORK, *ALONE)),
    "tcp to the cloud's metadata": ("tcp", "169.254.169.254", 80, (*NETWORK, *ALONE)),
    "udp": ("udp", "192.0.2.1", 53, (*NETWORK, *ALONE)),
    "names": ("name", "example.org", 80, (*NETWORK, *ALONE)),
    "raw packets": ("raw", "", 0, DENIED),
    "docker": ("unix", "/var/run/docker.sock", 0, FILES),
    "dbus": ("unix", "/run/dbus/system_bus_socket", 0, FILES),
}
"""By name: how, where to, and the endings that are denials."""

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
print(json.dumps({name: ending(*way) for name, way in WAYS.items()}))
"""


def probe(ways: Ways = WAYS) -> str:
    """The program that is run in the sandbox."""
    told = {name: way[:3] for name, way in ways.items()}
    return f"WAYS = {told!r}\n{_GUEST}"


def report_of(output: str, ways: Ways = WAYS) -> ProbeReport:
    """What the probe's output says. It is the guest's word: whatever is not a denial of that way is not held.

    Raises InfrastructureError for an output that is no report.
    """
    try:
        endings = json.loads(output)
    except ValueError as error:
        raise InfrastructureError("the probe of the sandboxes gave no report", hint="run `assay doctor`") from error
    if not isinstance(endings, dict):
        raise InfrastructureError("the probe of the sandboxes gave no report", hint="run `assay doctor`")
    alone = endings.get(LINKS) in WAYS[LINKS][3]
    held = [
        name
        for name, (_, _, _, denials) in ways.items()
        if endings.get(name) in denials and (alone or endings.get(name) not in ALONE)
    ]
    open_ = [name for name in ways if endings.get(name) in ANSWERED and name not in held]
    unknown = [f"{name} ({_plain(endings.get(name))})" for name in ways if name not in held and name not in open_]
    return ProbeReport(tried=len(ways), held=len(held), open=tuple(open_), unknown=tuple(unknown))


def _plain(ending: object) -> str:
    """An ending as it may be shown: the guest wrote it."""
    text = ending if isinstance(ending, str) else "no word"
    return text[:40] if text.isascii() and text.replace(" ", "").replace("_", "").isalnum() else "an odd word"
