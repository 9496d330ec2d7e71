"""Names for mailboxes, and sentences that state a fact in a message. Their order is part of every task.

`{project}`, `{company}` and `{person}` are the subjects, `{value}` is the fact. All sentences of a matter mean the
same; tests read them back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

FIRST = (
    *(
        "Ada",
        "Amir",
        "Anna",
        "Boris",
        "Carla",
        "Chen",
        "Clara",
        "David",
        "Dina",
        "Elif",
        "Emil",
        "Erik",
        "Fatma",
        "Felix",
    ),
    *(
        "Greta",
        "Hugo",
        "Ines",
        "Ivan",
        "Jana",
        "Jonas",
        "Karim",
        "Katya",
        "Lena",
        "Luca",
        "Malik",
        "Marta",
        "Mila",
        "Nadia",
    ),
    *(
        "Nils",
        "Olga",
        "Omar",
        "Paula",
        "Petra",
        "Rosa",
        "Samir",
        "Selma",
        "Sven",
        "Tara",
        "Timo",
        "Vera",
        "Yara",
        "Zoe",
    ),
)
LAST = (
    *(
        "Abel",
        "Adler",
        "Bauer",
        "Berg",
        "Castro",
        "Costa",
        "Dahl",
        "Diaz",
        "Ekman",
        "Farid",
        "Fischer",
        "Gallo",
        "Haas",
    ),
    *(
        "Hansen",
        "Ivers",
        "Jansen",
        "Kaya",
        "Keller",
        "Kovac",
        "Lang",
        "Lindt",
        "Lopez",
        "Maier",
        "Moreau",
        "Nagy",
        "Novak",
    ),
    *(
        "Olsen",
        "Orlov",
        "Pavic",
        "Petit",
        "Quinn",
        "Rahm",
        "Rossi",
        "Sato",
        "Silva",
        "Stein",
        "Tanaka",
        "Toth",
        "Ulrich",
    ),
    *("Vargas", "Weber", "Winter", "Yilmaz", "Zeman"),
)
PROJECTS = (
    *("Acorn", "Alder", "Amber", "Anchor", "Aspen", "Badger", "Basalt", "Beacon", "Birch", "Bison", "Cedar", "Cobalt"),
    *(
        "Comet",
        "Coral",
        "Crane",
        "Delta",
        "Dune",
        "Ember",
        "Falcon",
        "Fern",
        "Fjord",
        "Flint",
        "Garnet",
        "Glacier",
        "Granite",
    ),
    *(
        "Harbor",
        "Hazel",
        "Heron",
        "Indigo",
        "Iris",
        "Ivory",
        "Jasper",
        "Juniper",
        "Kestrel",
        "Lagoon",
        "Lantern",
        "Larch",
    ),
    *("Laurel", "Lotus", "Lynx", "Maple", "Marble", "Meadow", "Nimbus", "Oasis", "Onyx", "Orchid", "Osprey", "Otter"),
    *("Pebble", "Pine", "Plover", "Quartz", "Raven", "Reed", "Saffron", "Sage", "Sierra", "Slate", "Sparrow", "Spruce"),
    *("Summit", "Thistle", "Thunder", "Topaz", "Tundra", "Umber", "Velvet", "Walnut", "Willow", "Zephyr"),
)
COMPANIES = (
    *("Arvo", "Belmar", "Cintra", "Dorvan", "Elvista", "Fenwick", "Galtera", "Hollis", "Inverra", "Jaltech", "Kestor"),
    *(
        "Lumenta",
        "Morvale",
        "Nordex",
        "Oprima",
        "Pelican",
        "Quorum",
        "Rivella",
        "Santor",
        "Tervola",
        "Ultima",
        "Veltro",
    ),
    *("Wexley", "Xandria", "Yorvik", "Zentera", "Altamar", "Brenwood", "Corvane", "Delmont", "Estrado", "Florian"),
)


FIRST_DAY = date(2025, 1, 6)
DAYS = 540
"""Days covered by a mailbox."""


class Matter(NamedTuple):
    """Fact that messages state about a project, and that can be asked."""

    title: str
    says: Sequence[str]
    asked: str
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


MATTERS: dict[str, Matter] = {
    "review": Matter(
        "review",
        (
            "The review of {project} is on {value}.",
            "We hold the {project} review on {value}, in the morning.",
            "Please note the day for the review of {project}: {value}.",
        ),
        "On which day is the review of the project {project}?",
        "a date such as 2026-03-14",
        a_day,
    ),
    "room": Matter(
        "room",
        (
            "The team of {project} meets in room {value}.",
            "Room {value} is booked for the {project} meetings.",
            "For {project} we have room {value} from now on.",
        ),
        "In which room does the team of the project {project} meet?",
        "a room such as B-214",
        a_room,
    ),
    "budget": Matter(
        "budget",
        (
            "The budget of {project} is {value} euros.",
            "{project} has a budget of {value} euros.",
            "For {project} the board has granted {value} euros.",
        ),
        "What is the budget of the project {project} in euros?",
        "a whole number such as 4200",
        an_amount,
    ),
    "code": Matter(
        "access code",
        (
            "The access code of the {project} archive is {value}.",
            "To open the {project} archive use the access code {value}.",
            "{project} archive, access code: {value}.",
        ),
        "What is the access code of the archive of the project {project}?",
        "six digits",
        a_code,
    ),
    "delivery": Matter(
        "delivery",
        (
            "The delivery for {project} is due on {value}.",
            "{project} will be delivered on {value}.",
            "The date for the {project} delivery is {value}.",
        ),
        "On which day is the delivery for the project {project} due?",
        "a date such as 2026-03-14",
        a_day,
    ),
}
LEADS = (
    "{person} leads the project {project} now.",
    "The project {project} is led by {person}.",
    "{person} has taken over the lead of the project {project}.",
)
SUPPLIES = (
    "The supplier of {project} is {company}.",
    "{company} supplies the parts for {project}.",
    "We have signed with {company} as the supplier of {project}.",
)
CONTACTS = (
    "At {company} our contact is {person}.",
    "{person} answers for {company} from this week on.",
    "Whoever needs something of {company} asks {person}.",
)
EXTENSIONS = (
    "{person} can be reached under extension {value}.",
    "The extension of {person} is {value}.",
    "To call {person} dial extension {value}.",
)
INVOICES = (
    "Invoice {number} of {company} is attached. {detail} The amount to be paid is {value} euros.",
    "{company} sends invoice {number}. {detail} Total, taxes included: {value} euros.",
    "Please pay invoice {number} of {company}. {detail} Amount due: {value} euros.",
)
DETAILS = (
    "The goods were delivered as ordered, and all parts were checked and counted at the gate on arrival.",
    "Payment is due within thirty days from the date of this message, without any deduction for early payment.",
    "It covers the work that we agreed on by telephone, with travel and material, as listed on the second page.",
    "A copy went to the bookkeeping department by post, together with the signed delivery note and the warranty card.",
)
"""Sentences between the name and the amount of an invoice: a search shows fewer words."""
REMINDERS = (
    "Reminder: invoice {number} of {company} over {value} euros is still open.",
    "We have not yet received {value} euros for invoice {number} ({company}).",
)
CHANGES = ("A correction.", "This has changed.", "What I wrote before does not hold any more.", "An update.")
RUMOURS = (
    "I only heard this in the kitchen, nobody has confirmed it, and I may be wrong:",
    "This is a mere rumour, please do not count on it:",
)
FORWARDS = "I found this in my old messages.\n\n---- forwarded message of {day} ----\n{text}"
CHATTER = (
    "Thank you for the notes on {project}. I will read them tonight.",
    "Could somebody send me the slides about {project}?",
    "The coffee machine near the {project} team works again.",
    "I am away on Friday; for {project} please write to the team.",
    "We should speak about {project} when everybody is back.",
    "The photographs of the {project} evening are in the shared folder.",
)
GREETINGS = ("Hello,", "Dear all,", "Good morning,", "Hi,", "To whom it concerns,")
CLOSINGS = ("Best regards", "Kind regards", "Thanks", "Yours", "See you")


def around(text: str, sender: str, rng: Random) -> str:
    """Returns an e-mail's body: a greeting, the text, and the sender."""
    return f"{rng.choice(GREETINGS)}\n\n{text}\n\n{rng.choice(CLOSINGS)}\n{sender}"
