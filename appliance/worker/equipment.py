"""What a worker works with: one engine, one session pool, one checker, one policy; closed together."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from appliance.agent.dialect import Codec
from appliance.agent.loop import Agent
from appliance.learning.recipe import AgentBudget
from appliance.ledger.ledger import Ledger
from policies.isolation import backend_for
from policies.policy import Policy
from runtime.cluster.cluster_sessions import ClusterSessions
from runtime.cluster.settings import ClusterSettings
from runtime.profile import BackendName
from runtime.sandbox import SessionPool
from runtime.sessions.pool import Sessions
from runtime.settings import RuntimeSettings
from verifiers.checker import Checker

if TYPE_CHECKING:
    from appliance.inference.torch_engine import TorchEngine


def sessions(runtime: RuntimeSettings, cluster: ClusterSettings | None) -> SessionPool:
    """A pool on this machine, or over the cluster that it is in; the same limits and the same isolation."""
    if cluster is None:
        return Sessions(runtime)
    return ClusterSessions(cluster, runtime.limits, backend=runtime.backend)


class Equipment:
    """Context manager. The pool and the checker start their processes when they are first used, and the engine loads
    its libraries then; the checker runs programs in sessions of that pool, and holds our own tools in what the policy
    says. `threads` are the engine's: sampling and training give the same bits only under the same number of them."""

    def __init__(
        self,
        data: Path,
        ledger: Ledger,
        runtime: RuntimeSettings,
        budget: AgentBudget,
        policy: Policy,
        clock: Callable[[], float] = time.monotonic,
        *,
        cluster: ClusterSettings | None = None,
        threads: int | None = None,
    ) -> None:
        self.data = data
        self.ledger = ledger
        self.budget = budget
        self.policy = policy
        self.clock = clock
        self._threads = threads
        self.sessions: SessionPool = sessions(runtime, cluster)
        self.checker = Checker(runtime, sessions=self.sessions, tools_backend=BackendName(backend_for(policy, "tools")))

    @cached_property
    def engine(self) -> TorchEngine:
        import torch

        from appliance.inference.torch_engine import TorchEngine

        if self._threads is not None:
            torch.set_num_threads(self._threads)
        return TorchEngine(rows=self.budget.concurrent, slots=self.budget.max_tokens)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.checker.close()
        self.sessions.close()

    def agent(self, codec: Codec) -> Agent:
        return Agent(self.engine, self.sessions, codec, self.budget, self.clock)
