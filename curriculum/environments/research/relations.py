"""Relations of the corpus, and the sentences that state them.

Invariants: every relation has one value for each subject, and none follows from others, so only a reader of a page that
states a fact knows it. No sentence of one relation reads as one of another
(tests/curriculum/environments/test_research_corpus.py reads all pages again and finds the facts, no more and no fewer).
"""

from __future__ import annotations

from typing import NamedTuple

YEAR, COUNT = "year", "count"


class CorpusRelation(NamedTuple):
    name: str
    subject: str
    value: str
    """Kind of the value; or `year` or `count`, a number."""
    phrase: str
    """Wording of the value in a question; `{x}` is the subject."""
    told: tuple[str, ...]
    """Sentences on the subject's page; `{s}` is its name."""
    told_there: tuple[str, ...] = ()
    """Sentences on the value's page; `{v}` is its name, `{s}` links to the subject."""
    only: str = ""
    """Wording of the subject in a question, if it is the only one with the value `{x}`."""
    there: float = 0.0
    """Share of the facts that only the value's page states."""
    both: float = 0.0
    """Share of the facts that both pages state."""
    listed: str = ""
    """Line of a list page; `{s}` links to the subject."""


_ROWS = (
    CorpusRelation(
        "birthplace", "person", "place", "the town in which {x} was born",
        ("{s} was born in {o}.", "{s} came from {o}, and spoke its dialect for life.",
         "The parish book of {o} records the baptism of {s}."),
    ),
    CorpusRelation(
        "born", "person", YEAR, "the year in which {x} was born",
        ("The year of birth was {o}.", "The birth is dated to {o}.", "A letter gives {o} as year of birth."),
    ),
    CorpusRelation(
        "teacher", "person", "person", "the teacher of {x}",
        ("{s} was a pupil of {o}.", "The lessons of {o} shaped {s} early on.", "{s} learned the craft from {o}."),
        ("Among those whom {v} taught was {s}.", "{s} was taught by {v}."),
        "the only pupil of {x}", there=0.3, both=0.1,
    ),
    CorpusRelation(
        "school", "person", "institution", "the institution at which {x} studied",
        ("{s} studied at {o}.", "Student years at {o} followed.", "{s} took a degree at {o}."),
    ),
    CorpusRelation(
        "employer", "person", "institution", "the institution that {x} worked for",
        ("Later {s} worked for {o}.", "A post at {o} came after some years.", "{s} was employed by {o}."),
    ),
    CorpusRelation(
        "province", "place", "province", "the province in which {x} lies",
        ("{s} lies in the province {o}.", "The town belongs to {o}.", "It is administered from the capital of {o}."),
    ),
    CorpusRelation(
        "inhabitants", "place", COUNT, "the number of inhabitants of {x}",
        ("{s} has {o} inhabitants.", "At the last count {o} people lived there.", "The population is given as {o}."),
        listed="{s}: {o} inhabitants",
    ),
    CorpusRelation(
        "chartered", "place", YEAR, "the year in which {x} became a town",
        ("{s} became a town in {o}.", "The charter dates from {o}.", "Town rights were granted in {o}."),
    ),
    CorpusRelation(
        "mayor", "place", "person", "the mayor of {x}",
        ("The mayor of {s} is {o}.", "{o} was elected mayor.", "The office of mayor is held by {o}."),
        ("{v} became mayor of {s}.", "The people of {s} elected {v} as their mayor."),
        "the only town whose mayor is {x}", there=0.3, both=0.1,
    ),
    CorpusRelation(
        "capital", "province", "place", "the capital of {x}",
        ("The capital is {o}.", "{s} is governed from {o}, its capital."),
        ("{v} is the capital of {s}.",), "the province whose capital is {x}", there=0.3,
    ),
    CorpusRelation(
        "governor", "province", "person", "the governor of {x}",
        ("Its governor is {o}.", "{s} has {o} as governor."),
        ("{v} was named governor of {s}.",), "the province whose governor is {x}", there=0.4,
    ),
    CorpusRelation(
        "area", "province", COUNT, "the number of square miles that {x} covers",
        ("{s} covers {o} square miles.", "Its area is {o} square miles."),
    ),
    CorpusRelation(
        "seat", "institution", "place", "the town in which {x} has its seat",
        ("Its seat is in {o}.", "{s} has its house in {o}.", "The main building stands in {o}."),
        ("{s} has its seat here.", "Many a visitor comes for the house of {s}."),
        "the only institution with its seat in {x}", there=0.15, both=0.1,
    ),
    CorpusRelation(
        "founder", "institution", "person", "the founder of {x}",
        ("It was founded by {o}.", "{s} owes its existence to {o}.", "The founder of {s} was {o}."),
        ("{v} founded {s}.", "{s} was a foundation of {v}."),
        "the only institution that {x} founded", there=0.3, both=0.1,
    ),
    CorpusRelation(
        "founded", "institution", YEAR, "the year in which {x} was founded",
        ("The founding year is {o}.", "It opened its doors in {o}.", "{s} has existed since {o}."),
        listed="{s}: founded in {o}",
    ),
    CorpusRelation(
        "director", "institution", "person", "the director of {x}",
        ("The director of {s} is {o}.", "{o} directs it.", "It is led by {o}."),
        ("{v} directs {s}.", "The members of {s} chose {v} as director."),
        "the only institution whose director is {x}", there=0.3, both=0.1,
    ),
    CorpusRelation(
        "members", "institution", COUNT, "the number of members of {x}",
        ("{s} has {o} members.", "Its rolls list {o} members.", "Membership stands at {o}."),
    ),
    CorpusRelation(
        "author", "work", "person", "the author of {x}",
        ("The author is {o}.", "It is a book by {o}.", "{o} wrote it in one summer."),
        ("{v} is the author of {s}.", "Readers know {v} by {s}."),
        "the only book by {x}", there=0.25, both=0.1, listed="{s}, by {o}",
    ),
    CorpusRelation(
        "published", "work", YEAR, "the year in which {x} was published",
        ("It was published in {o}.", "The first edition is of {o}.", "{s} came out in {o}."),
    ),
    CorpusRelation(
        "dedicatee", "work", "person", "the person to whom {x} is dedicated",
        ("It is dedicated to {o}.", "A page at the front thanks {o}, to whom it is dedicated.",
         "The dedication names {o}."),
        ("{s} was dedicated to {v}.", "A dedication in {s} honours {v}."),
        "the only book that is dedicated to {x}", there=0.3, both=0.1,
    ),
    CorpusRelation(
        "printer", "work", "institution", "the institution that printed {x}",
        ("It was printed by {o}.", "{o} printed the sheets.", "The printing was done by {o}."),
    ),
    CorpusRelation(
        "setting", "work", "place", "the town in which {x} is set",
        ("The story is set in {o}.", "Its scenes take place in {o}.", "{o} is where it all happens."),
    ),
    CorpusRelation(
        "pages", "work", COUNT, "the number of pages of {x}",
        ("It has {o} pages.", "The volume runs to {o} pages.", "{s} fills {o} pages."),
    ),
    CorpusRelation(
        "venue", "event", "place", "the town in which {x} took place",
        ("It took place in {o}.", "The town of {o} gave it room.", "{s} was opened in {o}."),
        ("{s} took place here.",), "the only event that took place in {x}", there=0.2, both=0.1,
    ),
    CorpusRelation(
        "held", "event", YEAR, "the year in which {x} took place",
        ("The year was {o}.", "It was held in {o}.", "Posters announce it for {o}."),
    ),
    CorpusRelation(
        "host", "event", "institution", "the institution that organised {x}",
        ("It was organised by {o}.", "{o} sent out the invitations.", "The organiser was {o}."),
        ("{v} organised {s}.", "The rolls name {s} as a work of {v}."),
        "the only event that {x} organised", there=0.3, both=0.1,
    ),
    CorpusRelation(
        "winner", "event", "person", "the person who won the medal at {x}",
        ("The medal went to {o}.", "{o} won the medal.", "The jury gave its medal to {o}."),
        ("{v} won the medal at {s}.", "A medal of {s} was found among the papers of {v}."),
        "the only event at which {x} won the medal", there=0.4, both=0.1,
    ),
    CorpusRelation(
        "visitors", "event", COUNT, "the number of visitors of {x}",
        ("It had {o} visitors.", "The gates counted {o} visitors.", "{o} tickets were sold."),
    ),
)  # fmt: skip
RELATIONS = {row.name: row for row in _ROWS}
OF_KIND = {kind: tuple(row for row in _ROWS if row.subject == kind) for kind in {row.subject: 0 for row in _ROWS}}
"""Relations by kind of subject."""
TO_KIND = {kind: tuple(row for row in _ROWS if row.value == kind and row.only) for kind in OF_KIND}
"""Relations by kind of value, if a question may ask for the subject."""
