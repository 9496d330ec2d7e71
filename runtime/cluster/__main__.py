"""Entry point of a node, `python -m runtime.cluster`: reads NodeSettings from standard input, runs until a signal."""

from __future__ import annotations

import sys

from runtime.cluster.node import NodeSettings, run_node
from runtime.shutdown import Shutdown

if __name__ == "__main__":
    node = NodeSettings.model_validate_json(sys.stdin.buffer.read())
    run_node(node, Shutdown(), lambda what: print(what, flush=True))
