"""Sentences about a subject, for texts of a required length without repetition."""

from __future__ import annotations

from random import Random

SUBJECTS = (
    "the old bridge", "the village library", "the harbour market", "the school garden", "the night train",
    "the new theatre", "the hill path", "the town archive", "the repair shop", "the river ferry",
)  # fmt: skip
SENTENCES = (
    "Most people who live nearby know {s} from their childhood and speak of it with warmth.",
    "In the early morning a few neighbours meet there and talk about the weather.",
    "Visitors often arrive without a plan and stay longer than they had meant to.",
    "A small group of volunteers looks after {s} in every season.",
    "They keep a notebook in which each of them writes down what still has to be repaired.",
    "Some of the work is dull, and nobody pretends that it is anything else.",
    "Children ask questions that the adults have stopped asking.",
    "Nobody can say with certainty who first had the idea.",
    "An old photograph shows how different the place looked before the war.",
    "Rain has done more damage than all the storms together.",
    "The council has promised help more than once, and some of it has even come.",
    "Money is short, so every decision takes a good deal of patience.",
    "On warm evenings one hears music from the other side of the street.",
    "A retired carpenter explains to anyone who listens why good joints need no nails.",
    "The students measured every beam and drew a careful plan.",
    "What looks like an accident is often the result of a long argument.",
    "Shops close early here, which gives the square a quiet of its own.",
    "Letters in the local paper complain about noise and then about silence.",
    "It would be easy to replace {s} by something cheaper.",
    "Yet cheap things have a way of becoming expensive later.",
    "A teacher from the next valley brings her class each spring.",
    "They draw, they count, and they argue about what they have seen.",
    "Winter is the hardest time, because the pipes freeze and the paths turn to ice.",
    "Still the lamps are lit each night, even when no one comes.",
    "The first repair failed because the mortar had been mixed in a hurry.",
    "After that the builders took their time and asked for advice.",
    "Advice was plentiful, although little of it agreed.",
    "In the end a simple solution turned out to be the strongest.",
    "Everyone who took part remembers the day on which the scaffolding came down.",
    "A baker gave away the bread that he had not sold.",
    "The mayor made a short speech and forgot the name of the architect.",
    "Since then the number of guests has grown slowly but without a break.",
    "Careful records help whoever has to decide about the next step.",
    "Trust grows where mistakes are admitted early.",
    "A map on the wall marks the places that still need attention.",
    "Those who know {s} well would change almost nothing.",
    "Others would begin with the roof and leave the rest for later.",
    "Both sides have good reasons, and both are willing to listen.",
    "Next year a new committee will look at the plans again.",
    "Until then the doors stay open for anyone who cares to walk in.",
)  # fmt: skip
WHO = (
    "the caretaker", "an old sailor", "the youngest member", "a visiting engineer", "the baker's daughter",
    "the postman", "the retired judge", "a passing cyclist", "the night porter", "the second violinist",
)  # fmt: skip
DID = (
    "remembers", "has described", "wants to repair", "keeps a drawing of", "once painted", "asks about", "has measured",
    "writes letters about", "tells strangers about", "would never sell",
)  # fmt: skip
OF = (
    "the crooked doorway", "a bell without a rope", "the blue benches", "the cellar stairs", "every cracked window",
    "the tall chimney", "a forgotten staircase", "the iron railings", "the painted ceiling", "the narrow courtyard",
)  # fmt: skip
WHEN = (
    "on quiet afternoons", "whenever the rain stops", "before the market opens", "after the last train",
    "in the weeks around harvest", "while others are asleep", "since the flood", "at the first sign of frost",
    "during the long summer", "between two meetings",
)  # fmt: skip


class SentencePool:
    """Pool of sentences about a subject, each used once."""

    def __init__(self, subject: str, rng: Random) -> None:
        self._subject = subject
        self._left = [one.format(s=subject) for one in rng.sample(SENTENCES, len(SENTENCES))]

    def take(self) -> str:
        """Removes the next sentence from the pool and returns it. Raises IndexError when all are used."""
        return self._left.pop()

    def words(self, count: int) -> str:
        """Takes sentences from the pool; returns them as a paragraph of at least `count` words."""
        taken: list[str] = []
        while sum(len(one.split()) for one in taken) < count:
            taken.append(self.take())
        return " ".join(taken)


class LongPool(SentencePool):
    """Pool of sentences for long texts: after its fixed sentences it composes others, a thousand at most."""

    def __init__(self, subject: str, rng: Random) -> None:
        super().__init__(subject, rng)
        self._turns = [(rng.randrange(10), rng.randrange(10)) for _ in range(3)]
        self._made = 0

    def take(self) -> str:
        if self._left:
            return super().take()
        turn, self._made = self._made, self._made + 1
        parts = (WHO, DID, OF, WHEN)
        places = [turn % 10, (turn // 10 + turn) % 10, (turn // 100 + 3 * turn) % 10, (turn // 10 + 7 * turn) % 10]
        who, did, of, when = (part[place] for part, place in zip(parts, places, strict=True))
        sentence = f"{who} {did} {of} {when}"
        return f"{sentence[0].upper()}{sentence[1:]}."
