"""Which weights answer a job, as the ledger has it at that moment: the champion's, or the canary's for its share.

What always holds: the answer follows from the aliases, the canary's record and the job's id alone, so a job that was
begun before a kill is gone on with by the same weights, unless those were taken out of service meanwhile.
"""

from __future__ import annotations

from appliance.ledger.ledger import Ledger
from appliance.promotion import CANARY, CHAMPION, PREVIOUS
from appliance.records import CanaryState, Job
from policies.canary import arm


def weights_for(job: Job, ledger: Ledger) -> str | None:
    """The digest of the weights that answer it; None where no model is in service."""
    champion, canary = ledger.alias(CHAMPION), ledger.alias(CANARY)
    newest = ledger.canaries(limit=1) if canary is not None else []
    if not newest or newest[0].candidate != canary or newest[0].state.ended:
        return champion
    if job.replay_of is not None:
        return canary
    known = newest[0]
    if known.state is not CanaryState.SHARE or job.created < known.share_since:
        return champion
    return canary if arm(job.id, known.rules.share, known.id) == "canary" else champion


def withdrawn(weights: str, ledger: Ledger) -> str:
    """Why work by these weights is to be stopped, and the job put back into the queue; empty while they may go on.

    A champion that another one followed in good order ends what it began.
    """
    if weights in {ledger.alias(name) for name in (CHAMPION, CANARY, PREVIOUS)}:
        return ""
    return f"the model {weights[:12]} was taken out of service"
