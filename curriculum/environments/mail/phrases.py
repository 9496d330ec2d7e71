"""Names for mailboxes, and sentences that decide something in a message. Their order is part of every task.

`{s}` is the subject (a project, a company or a person) and `{v}` the value. All sentences of a matter mean the same; an
oracle reads them back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from random import Random
from typing import NamedTuple


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = _words(
    "Ada Amir Anna Boris Carla Chen Clara David Dina Elif Emil Erik Fatma Felix Greta Hugo Ines Ivan Jana Jonas Karim"
    " Katya Lena Luca Malik Marta Mila Nadia Nils Olga Omar Paula Petra Rosa Samir Selma Sven Tara Timo Vera Yara Zoe"
)
LAST = _words(
    "Abel Adler Bauer Berg Castro Costa Dahl Diaz Ekman Farid Fischer Gallo Haas Hansen Ivers Jansen Kaya Keller"
    " Kovac Lang Lindt Lopez Maier Moreau Nagy Novak Olsen Orlov Pavic Petit Quinn Rahm Rossi Sato Silva Stein Tanaka"
    " Toth Ulrich Vargas Weber Winter Yilmaz Zeman"
)
PROJECTS = _words(
    "Acorn Alder Amber Anchor Aspen Badger Basalt Beacon Birch Bison Cedar Cobalt Comet Coral Crane Delta Dune Ember"
    " Falcon Fern Fjord Flint Garnet Glacier Granite Harbor Hazel Heron Indigo Iris Ivory Jasper Juniper Kestrel"
    " Lagoon Lantern Larch Laurel Lotus Lynx Maple Marble Meadow Nimbus Oasis Onyx Orchid Osprey Otter Pebble Pine"
    " Plover Quartz Raven Reed Saffron Sage Sierra Slate Sparrow Spruce Summit Thistle Thunder Topaz Tundra Umber"
    " Velvet Walnut Willow Zephyr"
)
COMPANIES = _words(
    "Arvo Belmar Cintra Dorvan Elvista Fenwick Galtera Hollis Inverra Jaltech Kestor Lumenta Morvale Nordex Oprima"
    " Pelican Quorum Rivella Santor Tervola Ultima Veltro Wexley Xandria Yorvik Zentera Altamar Brenwood Corvane"
    " Delmont Estrado Florian"
)
FIRST_DAY = date(2025, 1, 6)
DAYS = 540
"""Days covered by a mailbox."""


class Matter(NamedTuple):
    """Fact about a subject that messages decide, and that can be asked."""

    title: str
    of: str
    """Kind of the subject: `project`, `company` or `person`."""
    says: Sequence[str]
    phrase: str
    """Wording in a question."""
    form: str
    """Form of the answer, for the question."""
    value: Callable[[Random], str]


def a_day(rng: Random) -> str:
    return (FIRST_DAY + timedelta(days=rng.randrange(DAYS, DAYS + 400))).isoformat()


def a_room(rng: Random) -> str:
    return f"{rng.choice('ABCDEFGH')}-{rng.randrange(101, 700)}"


def an_amount(rng: Random) -> str:
    return str(rng.randrange(1_010, 99_000))


def a_code(rng: Random) -> str:
    return f"{rng.randrange(100_000, 1_000_000)}"


def a_person(rng: Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def a_company(rng: Random) -> str:
    return rng.choice(COMPANIES)


def a_project(rng: Random) -> str:
    return rng.choice(PROJECTS)


def an_extension(rng: Random) -> str:
    return str(rng.randrange(1_000, 10_000))


_DATE, _NAME = "a date such as 2026-03-14", "a name"
MATTERS: dict[str, Matter] = {
    "review": Matter(
        "review", "project",
        ("The review of {s} is on {v}.", "We hold the {s} review on {v}, in the morning.",
         "Please note the day for the review of {s}: {v}."),
        "the day of the review of {s}", _DATE, a_day,
    ),
    "room": Matter(
        "room", "project",
        ("The team of {s} meets in room {v}.", "Room {v} is booked for the {s} meetings.", "For {s} we have room {v}."),
        "the room in which the team of {s} meets", "a room such as B-214", a_room,
    ),
    "budget": Matter(
        "budget", "project",
        ("The budget of {s} is {v} euros.", "{s} has a budget of {v} euros.", "For {s} the board grants {v} euros."),
        "the budget of {s} in euros", "a whole number such as 4200", an_amount,
    ),
    "code": Matter(
        "access code", "project",
        ("The access code of the {s} archive is {v}.", "To open the {s} archive use the access code {v}.",
         "{s} archive, access code: {v}."),
        "the access code of the archive of {s}", "six digits", a_code,
    ),
    "delivery": Matter(
        "delivery", "project",
        ("The delivery for {s} is due on {v}.", "{s} will be delivered on {v}.", "The {s} delivery comes on {v}."),
        "the day of the delivery for {s}", _DATE, a_day,
    ),
    "supplier": Matter(
        "supplier", "project",
        ("The supplier of {s} is {v}.", "{v} supplies the parts for {s}.", "We buy the parts for {s} from {v}."),
        "the supplier of {s}", _NAME, a_company,
    ),
    "successor": Matter(
        "follow-up", "project",
        ("{s} is continued as {v}.", "The follow-up of {s} is called {v}.", "What comes after {s} is {v}."),
        "the project that continues {s}", _NAME, a_project,
    ),
    "contact": Matter(
        "contact", "company",
        ("At {s} our contact is {v}.", "{v} answers for {s}.", "Who needs something of {s} asks {v}."),
        "our contact at {s}", _NAME, a_person,
    ),
    "extension": Matter(
        "extension", "person",
        ("The extension of {s} is {v}.", "To call {s} dial extension {v}.", "{s} can be reached under extension {v}."),
        "the extension of {s}", "four digits", an_extension,
    ),
}  # fmt: skip
"""Matters by name; those of projects come first."""
CHANGES = ("", "A correction.", "This has changed.", "An update.", "Decided today.")
PROPOSALS = (
    "Nothing is decided, but some would like it so:", "A mere proposal, which the board has not seen:",
    "I only heard this in the kitchen, and nobody has confirmed it:", "A rumour, please do not count on it:",
)  # fmt: skip
CANCELS = ("Cancelled for {s}: the {title}. There is none for now.", "The {title} of {s} is off, with nothing instead.")
RESTORES = (
    "For the {title} of {s}, what held at the end of {day} holds again.",
    "We go back: the {title} of {s} is once more as it was at the end of {day}.",
)
RETRACTS = (
    "Please ignore what was written on {day} about the {title} of {s}.",
    "What the message of {day} says of the {title} of {s} was a mistake: please treat it as never sent.",
)
FORWARD = "---- forwarded message of {day}, from {sender} ----"
QUOTE = "On {day} {sender} wrote:"
CHATTER = (
    "Thank you for the notes on {s}; I have read them twice, and the second time I even understood the tables.",
    "Could somebody send the slides about {s} again, because the link in the calendar leads to an empty folder?",
    "The coffee machine near the {s} people works again, and the cups have been counted by the porter.",
    "I am away on Friday; for {s} please write to the whole team, since the telephone is not always answered.",
    "The photographs of the {s} evening are in the shared folder, together with the recipe for the soup.",
    "A visitor asked yesterday what {s} is about, and nobody at the table could say it in one sentence.",
    "The printer on the second floor has eaten the {s} handbook again, pages and cover and all.",
    "There was a long talk about {s} on the train, which ended when the conductor came by.",
    "Legal has read the contract for {s} and found two commas too many, but nothing of weight.",
    "Everybody agrees that the {s} meetings are too long, and nobody wants to be the one who leaves first.",
    "The parcel for {s} was opened at the gate, checked, counted, and closed again with red tape.",
    "I have cleaned up the {s} folder, so old links may be broken; please tell me if you miss something.",
)
GREETINGS = ("Hello,", "Dear all,", "Good morning,", "Hi,", "To whom it concerns,")
CLOSINGS = ("Best regards", "Kind regards", "Thanks", "Yours", "See you")


def around(text: str, sender: str, rng: Random) -> str:
    """Returns an e-mail's body: a greeting, the text, and the sender."""
    return f"{rng.choice(GREETINGS)}\n\n{text}\n\n{rng.choice(CLOSINGS)}\n{sender}"
