"""What a person can do about models and jobs: approve, reject, roll back, submit, call off. Each asks in a dialog.

What always holds: nothing happens before it was typed; a decision is signed over the very text that is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from appliance.client import (
    ApiClient,
    KeyFileError,
    Status,
    SubmitJob,
    find_key,
    keys_folder,
    login_name,
    signed_approval,
    unlock,
)
from tui.decisions import decision_detail
from tui.dialogs import Dialog, SubmitDialog, TypedConfirmation
from tui.text import DIM, plain, short

Client = Callable[[], ApiClient]


def judging(
    verdict: Literal["approve", "reject"], status: Status, client: Client, signs: tuple[Path | None, str | None]
) -> Dialog | str:
    """Approves or rejects the candidate, with a signature over the decision that is shown; or why that cannot be."""
    candidate, decision = status.aliases.get("candidate"), status.decision
    if candidate is None:
        return "There is no candidate that waits for a decision."
    if decision is None or decision.candidate != candidate:
        return f"There is no decision about {short(candidate)} yet: its evaluation is not done."
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
    return TypedConfirmation(f"{verdict.capitalize()} this candidate", candidate, body, act, key=str(key.path))


def rolling_back(status: Status, client: Client) -> Dialog | str:
    """Takes the canary out of service; where there is none, the previous champion returns."""
    aliases = status.aliases
    canary, previous = aliases.get("canary"), aliases.get("previous")
    if canary is not None:
        heading, digest = "Take the canary out of service", canary
        effect = f"{short(canary)} is tried beside the champion, which then answers every job."
        done = f"{short(canary)} is out of service."
    elif previous is not None:
        heading, digest = "Roll back to the previous champion", previous
        effect = f"{short(aliases.get('champion'))} leaves service; the model above returns."
        done = f"{short(previous)} is in service again."
    else:
        return "There is no previous champion to go back to."

    def act(_passphrase: str) -> str:
        client().rollback(login_name(), "from the terminal program")
        return done

    return TypedConfirmation(heading, digest, plain(effect), act)


def submitting(client: Client) -> Dialog:
    def submit(request: SubmitJob) -> str:
        return f"{client().submit(request).id} is queued."

    return SubmitDialog(submit)
