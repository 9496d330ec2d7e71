"""Kind `game`: a list of actions that wins a game whose rules the player had to discover."""

from __future__ import annotations

from random import Random

from verifiers.contract.kinds import AnswerForm, Kind, Lazy


def random_actions(rng: Random) -> str:
    return " ".join(rng.choice("123456") for _ in range(60))


GAME = Kind(
    name="game",
    about="Do these actions win the game, in few enough moves? 0 yes, 1 no.",
    job="game",
    spec=Lazy("verifiers.games.spec:GameSpec"),
    verifier=Lazy("verifiers.games.verifier:GameVerifier"),
    revision="1",
    explain=Lazy("verifiers.games.explain:explain"),
    parts=Lazy("verifiers.games.explain:parts"),
    examples=Lazy("verifiers.games.explain:examples"),
    answer_form=lambda _spec: AnswerForm.WORLD,
    asks_for=lambda _spec: "",
    random_answer=random_actions,
    suffix=".txt",
)
