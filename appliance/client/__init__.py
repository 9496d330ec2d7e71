"""Typed client and messages of the control API; the CLI and the TUI use nothing else.

  api = ApiClient(socket_path)
  status = api.status()

Open `api_client.py` first: it is the table of endpoints, which `endpoints.py` reads. `messages.py` has their types;
`signing.py` and `person_keys.py` sign decisions. All names are exported from `appliance.client.exports`, which is
loaded on first use of one of them: importing one module of this package loads no other. Names needed before the first
request are loaded alone.
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
