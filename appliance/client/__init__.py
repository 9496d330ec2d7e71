"""The control API as a program sees it: a typed client and the messages. The CLI and the TUI use nothing else.

api = ApiClient(socket_path)
status = api.status()

The names are those of `appliance.client.exports`, which is loaded when one of them is first used: importing one module
of this package loads none of the others. What a program needs before it has asked anything is loaded alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appliance.client.exports import *  # noqa: F403
else:
    _ALONE = {"printable": "appliance.text.printable"}
    _ALONE |= dict.fromkeys(("ApiError", "DaemonNotRunning", "DaemonSilent"), "appliance.client.failures")

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):  # the import system asks for such names of its own
            raise AttributeError(name)
        return getattr(importlib.import_module(_ALONE.get(name, "appliance.client.exports")), name)
