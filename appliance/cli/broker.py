"""`assay broker`: the broker alone, in the foreground, for a service manager; the daemon runs beside it without root.

What always holds: what the broker is told comes from the configuration and the policy as they are at its start; it is
handed over in a pipe, before this process becomes the broker. Whoever may use it is `service.user`, and root.
"""

from __future__ import annotations

import os

from appliance.config import Settings
from appliance.daemon.broker_process import command
from appliance.daemon.footing import make_broker_folder
from appliance.daemon.privileges import account
from appliance.places import broker_folder, broker_settings, broker_socket, load_policy


def run(settings: Settings) -> None:
    """Becomes the broker. Raises ConfigError, PolicyError or BrokenError when it cannot."""
    uid = account(settings.service.user).pw_uid
    make_broker_folder(broker_folder(settings, settings.data), for_others=uid != os.geteuid())
    told = broker_settings(settings, settings.data, load_policy(settings.data)).model_dump_json().encode()
    reading, writing = os.pipe()
    # Some hundred bytes: a pipe takes them all at once.
    os.write(writing, told)
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)
    program = command(broker_socket(settings, settings.data), uid)
    os.execv(program[0], program)  # noqa: S606 - a list, and no shell
