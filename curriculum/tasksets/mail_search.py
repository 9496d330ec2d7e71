"""Asks what a mailbox decides, in threads whose later messages correct, cancel, take back and restore what was decided.

In the manner of ART-E (OpenPipe, 2025). Invariants: the task's own messages decide the answer, and no other message
names their subjects (`curriculum.environments.mail.environment`); what holds follows from them by `decisions`.
Admitting ignorance fails, but scores more than a wrong answer; absence is an answer of its own, which must also name
the newest message's date, so it takes a search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.environments.mail import phrases
from curriculum.environments.mail.decisions import Act, decided, drawn_acts, held
from curriculum.environments.mail.environment import READ, SEARCH, Mail, day_number, setup_of
from curriculum.environments.mail.phrases import COMPANIES, MATTERS, PROJECTS
from curriculum.environments.mail.threads import Letter, act_line, paragraphs, thread
from verifiers.exact.spec import ExactSpec

OTHERS = (400, 800, 1_500, 2_500, 4_000)
"""Messages of a mailbox besides the task's own, by level."""
_MESSAGES = (4, 8, 14, 26, 56)
"""Messages of the threads that the question is about."""
_LINES = (2, 4, 8, 13, 14)
"""Lines of a message besides its act."""
_LOST = (0.0, 0.0, 0.1, 0.2, 0.2)
"""Share of these messages that the mailbox has only as quotations."""
_THREAD = 14
"""Messages of one thread at most."""
_TURNS = (16, 30, 50, 90, 180)
UNKNOWN = "unknown"
INTRODUCTION = (
    "You have a mailbox that you can search and read. What was decided last holds; proposals and rumours decide "
    "nothing, and what one is told to ignore counts as never written. What is cancelled is not in force. Some messages "
    "are left only as quotations in others; what is quoted or forwarded counts from its own day."
)
FORM = (
    "Put the answer into \\boxed{{}}, as {form}. If you cannot find out, answer \\boxed{{unknown}}: that is worth less "
    "than a right answer and more than a wrong one."
)
ABSENT = (
    "If nothing was ever decided on it, answer `absent` and, behind a blank, the date of the newest message that names "
    "the project, such as \\boxed{absent 2025-03-14}."
)
_PLAIN = ("review", "room", "budget", "code", "delivery")
"""Matters of projects whose values are no names."""
_OTHER_FIRST = ("Adele", "Bernd", "Cora", "Dario", "Edith", "Franz", "Gesa", "Henry")
"""First names of people with the surname of one who is asked about; nobody else has them."""


class _Subject(NamedTuple):
    """Matter of a subject that threads are about."""

    name: str
    matter: str
    acts: Sequence[Act]


class Draft:
    """Collects the e-mails and reserved names of one mailbox task."""

    def __init__(self, level: int, rng: Random) -> None:
        self.level, self.rng = level, rng
        self.reserved: set[str] = set()
        self.mails: list[Mail] = []
        self.subjects: list[_Subject] = []
        self._people = [self.name(phrases.a_person) for _ in range(6)]
        self._beside = [self.name(phrases.a_project) for _ in range(3)]

    def name(self, among: Callable[[Random], str]) -> str:
        """Draws a name that no other message of the mailbox uses, and reserves it."""
        while (found := among(self.rng)) in self.reserved:
            pass
        self.reserved.add(found)
        return found

    def project(self) -> str:
        return self.name(lambda rng: rng.choice(PROJECTS))

    def company(self) -> str:
        return self.name(lambda rng: rng.choice(COMPANIES))

    def person(self) -> str:
        return self.name(phrases.a_person)

    def days(self, counts: Sequence[int]) -> list[list[str]]:
        """Draws different days, so many for each subject, in order; the newest is in no foreseeable week."""
        every = self.rng.sample(range(self.rng.randrange(phrases.DAYS // 2, phrases.DAYS)), sum(counts))
        starts = [sum(counts[:at]) for at in range(len(counts))]
        return [sorted(map(day_number, every[at : at + count])) for at, count in zip(starts, counts, strict=True)]

    def subject(
        self,
        name: str,
        matter: str,
        days: Sequence[str],
        until: str,
        *,
        among: Sequence[str] = (),
        holds: bool = True,
        never: bool = False,
    ) -> _Subject:
        """Draws the history of a matter of a subject. At the end of the day `until` a value is in force, unless not
        `holds`; with `never`, none is ever decided. Values are drawn from `among`, or differ from each other."""
        while True:
            acts = drawn_acts(days, _values(matter, among, self.rng), self.rng, never=never)
            if not decided(acts, until) if never else bool(held(acts, until)) == holds:
                self.subjects.append(_Subject(name, matter, acts))
                return self.subjects[-1]

    def _lines(self, one: _Subject, act: Act) -> list[str]:
        """Writes the lines of a message: its act, and others of other matters and of subjects with similar names."""
        rng, row = self.rng, MATTERS[one.matter]
        count = _LINES[self.level]
        about = one.name if row.of == "project" else self._beside[0]
        lines = [text.format(s=about) for text in rng.sample(phrases.CHATTER, round(0.4 * count))]
        while len(lines) < count:
            name, subject = rng.choice([plain for plain in _PLAIN if plain != one.matter]), rng.choice(self._beside)
            if row.of == "project" and rng.random() < 0.4:
                subject = one.name
            elif rng.random() < 0.5:
                name, subject = self._alike(one)
            value = rng.choice(self._people) if name == "contact" else MATTERS[name].value(rng)
            said = Act(act.day, rng.choice(("set", "set", "set", "talk")), value)
            lines.append(act_line(said, MATTERS[name], subject, rng))
        lines.append(act_line(act, row, one.name, rng))
        rng.shuffle(lines)
        return lines

    def _alike(self, one: _Subject) -> tuple[str, str]:
        """Returns a matter and a subject with a similar name."""
        kind = MATTERS[one.matter].of
        if kind == "person":
            return one.matter, f"{self.rng.choice(_OTHER_FIRST)} {one.name.split()[1]}"
        if kind == "company":
            return one.matter, f"{one.name} North"
        return one.matter if one.matter in _PLAIN else "room", f"New {one.name}"

    def _written(self) -> None:
        """Writes the threads of all subjects."""
        for one in self.subjects:
            rng, title = self.rng, MATTERS[one.matter].title
            for start in range(0, len(one.acts), _THREAD):
                letters = []
                for act in one.acts[start : start + _THREAD]:
                    sender, recipient = rng.sample(self._people, 2)
                    own = phrases.around(paragraphs(self._lines(one, act), rng), sender, rng)
                    letters.append(Letter(act.day, sender, recipient, f"{one.name}: {title}", own))
                for at, (letter, body) in enumerate(thread(letters, rng, _LOST[self.level])):
                    subject = f"Re: {letter.subject}" if at else letter.subject
                    self.mails.append(Mail(letter.day, letter.sender, letter.recipient, subject, body))

    def item(self, question: str, form: str, answer: str, *more: str) -> Item:
        self._written()
        seed = self.rng.getrandbits(48)
        text = "\n".join([INTRODUCTION, question, FORM.format(form=form), *more])
        world = setup_of(seed, OTHERS[self.level], self.reserved, self.mails)
        return Item(
            text=text,
            key=f"{question} {seed}",
            spec=ExactSpec(expected=answer, abstention=UNKNOWN),
            answer=answer,
            world=world,
            turns=_TURNS[self.level],
        )


def _values(matter: str, among: Sequence[str], rng: Random) -> Callable[[], str]:
    """Returns a function that draws values of a matter: of `among`, or values that differ from each other."""
    used: set[str] = set()

    def value() -> str:
        drawn = rng.choice(among) if among else MATTERS[matter].value(rng)
        while not among and drawn in used:
            drawn = MATTERS[matter].value(rng)
        used.add(drawn)
        return drawn

    return value


def _until(days: Sequence[str], rng: Random) -> tuple[str, str]:
    """Returns a day by which what holds is asked, and its words; at times the end."""
    if rng.random() < 0.4:
        return "9", "now"
    day = sorted(days)[-1 - rng.randrange(1 + len(days) // 8)]
    return day, f"at the end of {day}"


def _phrase(matter: str, subject: str) -> str:
    return MATTERS[matter].phrase.format(s=subject)


def _fact(level: int, rng: Random, *, absent: bool) -> Item:
    """Asks for a project's fact that holds at a date, on the higher levels also how often it was decided anew; with
    `absent`, for one on which nothing was decided."""
    draft = Draft(level, rng)
    project, matter = draft.project(), rng.choice(_PLAIN)
    [days] = draft.days([_MESSAGES[level]])
    until, when = ("9", "now") if absent else _until(days, rng)
    one = draft.subject(project, matter, days, until, never=absent)
    question, form = f"What is {_phrase(matter, f'the project {project}')} {when}", MATTERS[matter].form
    value = held(one.acts, until)
    if level >= 2:
        question += ", and how many different values of it were decided on until then"
        form = f"number/value, where the value is {form}"
        value = f"{len(decided(one.acts, until))}/{value}"
    return draft.item(f"{question}?", form, f"absent {days[-1]}" if absent else value, ABSENT)


def _held(level: int, rng: Random) -> Item:
    return _fact(level, rng, absent=False)


def _absent(level: int, rng: Random) -> Item:
    return _fact(level, rng, absent=True)


def _budgets(level: int, rng: Random) -> Item:
    """Asks for the number and the sum of the budgets that some projects have at a date."""
    draft, count = Draft(level, rng), (2, 2, 3, 4, 5)[level]
    projects = [draft.project() for _ in range(count)]
    every = draft.days([_MESSAGES[level] // count] * count)
    until, when = _until([day for days in every for day in days], rng)
    until = max(until, *(days[1] for days in every))
    when = when if until == "9" else f"at the end of {until}"
    holding = [True, *(rng.random() < 0.6 for _ in projects[1:])]
    rng.shuffle(holding)
    values = [
        held(draft.subject(project, "budget", days, until, holds=holds).acts, until)
        for project, days, holds in zip(projects, every, holding, strict=True)
    ]
    named = f"{', '.join(projects[:-1])} and {projects[-1]}"
    question = f"How many of the projects {named} have a budget {when}, and how many euros do these come to altogether?"
    answer = f"{sum(map(bool, values))}/{sum(int(value or 0) for value in values)}"
    return draft.item(question, "count/total, such as 3/1250", answer)


def _linked(level: int, rng: Random) -> Item:
    """Asks for an extension found over two to four facts, each of which changes, as it holds at a date."""
    draft = Draft(level, rng)
    matters = (["contact"], ["contact"], ["supplier", "contact"], ["supplier", "contact"],
               ["successor", "supplier", "contact"])[level]  # fmt: skip
    first = draft.company() if matters[0] == "contact" else draft.project()
    names = {"contact": draft.person, "supplier": draft.company, "successor": draft.project}
    share = _MESSAGES[level] // (len(matters) + 1)
    every = draft.days([share, *[share, 2] * len(matters)])
    until, when = _until([day for days in every for day in days], rng)
    until = max([until, *(days[0] for days in every)])
    when = when if until == "9" else f"at the end of {until}"
    subject, days, left = first, every[0], every[1:]
    for at, matter in enumerate([*matters, "extension"]):
        if matter == "extension":
            one = draft.subject(subject, matter, days, until)
            break
        values = [names[matter]() for _ in range(3)]
        one = draft.subject(subject, matter, days, until, among=values)
        following = [*matters, "extension"][at + 1]
        decoy = next(value for value in values if value != held(one.acts, until))
        later = [names[following]() for _ in range(2)] if following != "extension" else ()
        draft.subject(decoy, following, left[1], until, among=later)
        subject, days, left = held(one.acts, until), left[0], left[2:]
    phrase = f"the {'company' if matters[0] == 'contact' else 'project'} {first}"
    for matter in [*matters, "extension"]:
        phrase = _phrase(matter, phrase)
    return draft.item(f"What is {phrase} {when}?", "four digits", held(one.acts, until))


MAIL_SEARCH = TopicTaskset(
    name="mail_search",
    version=3,
    makers={
        "held_messages": _held,
        "linked_messages": _linked,
        "budget_messages": _budgets,
        "absent_messages": _absent,
    },
    null_answers=(UNKNOWN, "absent", "0", "0/0", "absent 2025-01-06", "yes"),
    tools=(SEARCH.name, READ.name),
    environment="mail",
)
