"""Dialogs for a person's actions: approve, reject, roll back and submit.

Invariants: nothing happens before the confirmation was typed; a decision is signed over exactly the text shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from appliance.client import (
    TAKE_IT_OUT,
    ApiClient,
    KeyFileError,
    Rollback,
    Status,
    SubmitJob,
    find_key,
    keys_folder,
    login_name,
    signed_approval,
    taking_back,
    unlock,
)
from tui.widgets.dialogs import Dialog, SubmitDialog, TypedConfirmation
from tui.widgets.signs import decision_detail
from tui.widgets.text import DIM, plain, short

Client = Callable[[], ApiClient]


def judging(
    verdict: Literal["approve", "reject"], status: Status, client: Client, signs: tuple[Path | None, str | None]
) -> Dialog | str:
    """Returns a dialog that approves or rejects the candidate with a signature over the decision shown, or an error
    message."""
    candidate, decision = status.aliases.get("candidate"), status.decision
    if candidate is None:
        return "No candidate waits for a decision."
    if decision is None or decision.candidate != candidate:
        return f"No decision about {short(candidate)} yet: its evaluation has not finished."
    try:
        key = find_key(keys_folder(os.environ), *signs)
    except KeyFileError as error:
        return f"{error}: {error.hint}"

    def act(passphrase: str) -> str:
        signer = unlock(key, passphrase)
        api = client()
        judged = api.judge(verdict, candidate, signed_approval(decision, verdict, api.keys(), signer))
        if verdict == "reject":
            return f"{short(candidate)} is rejected."
        if judged.aliases.get("canary") == candidate:
            return f"{short(candidate)} is tried beside the champion."
        return f"{short(candidate)} is in service." if judged.aliases.get("champion") == candidate else "Recorded."

    body = decision_detail(decision)
    body.append_text(
        plain(f"decision digest  {decision.digest()}\npolicy digest    {decision.policy}\n", DIM, lines=True)
    )
    return TypedConfirmation(
        f"{verdict.capitalize()} this candidate", candidate, body, act, to=f"{verdict} it", key=str(key.path)
    )


def rolling_back(status: Status, client: Client) -> Dialog | str:
    """Returns a dialog that withdraws the canary, or else restores the previous champion. As with `assay rollback`, the
    person types digits of the model that leaves service."""
    taken = taking_back(status.aliases)
    if taken is None:
        return "No previous champion to roll back to."
    if taken.back is None:
        heading, done = "Take the canary out of service", f"{short(taken.going)} is out of service."
    else:
        heading, done = "Take the champion out of service", f"{short(taken.back)} is in service again."

    def act(_passphrase: str) -> str:
        client().rollback(Rollback(person=login_name(), reason="from the terminal program", going=taken.going))
        return done

    body = plain("\n".join(taken.effects), lines=True)
    return TypedConfirmation(heading, taken.going, body, act, to=TAKE_IT_OUT)


def submitting(client: Client) -> Dialog:
    def submit(request: SubmitJob) -> str:
        return f"{client().submit(request).id} is queued."

    return SubmitDialog(submit)
