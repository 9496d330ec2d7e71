"""Asks what a mailbox says: in one message, after corrections, over several messages, in sums, and what nobody says.

In the manner of ART-E (OpenPipe, 2025). Invariants: the task's own messages decide the answer, and no other message
names their subjects (`curriculum.environments.mail.environment`). Admitting ignorance fails, but scores more than a
wrong answer; absence is an answer of its own, which must also name the newest message's date, so it takes a search.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.environments.mail import phrases
from curriculum.environments.mail.environment import READ, SEARCH, Mail, day_number, setup_of
from curriculum.environments.mail.phrases import COMPANIES, MATTERS, PROJECTS, Matter
from verifiers.exact.spec import ExactSpec

OTHERS = (400, 800, 1_500, 2_500, 4_000)
"""Messages of a mailbox besides the task's own, by level."""
UNKNOWN = "unknown"
INTRODUCTION = (
    "You have a mailbox that you can search and read. What was written last holds; rumours do not count, and a "
    "forwarded message counts from its own day."
)
FORM = (
    "Put the answer into \\boxed{{}}, as {form}. If you cannot find out, answer \\boxed{{unknown}}: that is worth less "
    "than a right answer and more than a wrong one."
)
ABSENT = (
    "If no message says it, answer `absent` and, behind a blank, the date of the newest message that names the "
    "project, such as \\boxed{absent 2025-03-14}."
)


class Draft:
    """Collects the e-mails and reserved names of one mailbox task."""

    def __init__(self, level: int, rng: Random) -> None:
        self.level, self.rng = level, rng
        self.reserved: set[str] = set()
        self.mails: list[Mail] = []

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

    def days(self, count: int, first: int = 0, last: int = phrases.DAYS) -> list[int]:
        """Draws `count` different days for messages, in order."""
        return sorted(self.rng.sample(range(first, last), count))

    def write(self, day: int, subject: str, text: str, sender: str = "") -> None:
        sender = sender or phrases.a_person(self.rng)
        recipient, body = phrases.a_person(self.rng), phrases.around(text, sender, self.rng)
        self.mails.append(Mail(day_number(day), sender, recipient, subject, body))

    def chatter(self, project: str, count: int, last: int = phrases.DAYS) -> None:
        for day in self.days(count, last=last):
            self.write(day, f"About {project}", self.rng.choice(phrases.CHATTER).format(project=project))

    def says(self, matter: Matter, project: str, value: str) -> str:
        return self.rng.choice(matter.says).format(project=project, value=value)

    def item(self, question: str, form: str, answer: str, *more: str) -> Item:
        seed = self.rng.getrandbits(48)
        text = "\n".join([INTRODUCTION, question, FORM.format(form=form), *more])
        world = setup_of(seed, OTHERS[self.level], self.reserved, self.mails)
        return Item(
            text=text,
            key=f"{question} {seed}",
            spec=ExactSpec(expected=answer, abstention=UNKNOWN),
            answer=answer,
            world=world,
        )


def _said(level: int, rng: Random, *, absent: bool) -> Item:
    """Asks for a project's fact that one e-mail states; with `absent`, that no e-mail states."""
    draft = Draft(level, rng)
    project, wanted = draft.project(), rng.choice(list(MATTERS))
    matter, value = MATTERS[wanted], MATTERS[wanted].value(rng)
    draft.chatter(project, 2 + 2 * level)
    for other in rng.sample([name for name in MATTERS if name != wanted], min(level + 1, 4)):
        text = draft.says(MATTERS[other], project, MATTERS[other].value(rng))
        draft.write(rng.randrange(phrases.DAYS), f"{project}: {MATTERS[other].title}", text)
    if not absent:
        text, subject = draft.says(matter, project, value), f"{project}: {matter.title}"
        if level >= 3:
            beside = [draft.project(), draft.project()]
            lines = [text, *(draft.says(matter, one, matter.value(rng)) for one in beside)]
            text, subject = "\n".join(rng.sample(lines, 3)), "Minutes"
        draft.write(rng.randrange(phrases.DAYS), subject, text)
    answer = f"absent {max(mail.day for mail in draft.mails)}" if absent else value
    return draft.item(matter.asked.format(project=project), matter.form, answer, ABSENT)


def _facts(level: int, rng: Random) -> Item:
    return _said(level, rng, absent=False)


def _absences(level: int, rng: Random) -> Item:
    return _said(level, rng, absent=True)


def _corrections(level: int, rng: Random) -> Item:
    """Asks for a fact that e-mails correct once or more, with contradicting rumours and forwarded messages."""
    draft = Draft(level, rng)
    project, matter = draft.project(), MATTERS[rng.choice(list(MATTERS))]
    values: list[str] = []
    while len(values) < 3 + level // 2:
        if (value := matter.value(rng)) not in values:
            values.append(value)
    rumoured, *said = values
    days, sender, subject = draft.days(len(said), last=phrases.DAYS - 60), draft.person(), f"{project}: {matter.title}"
    texts = [draft.says(matter, project, value) for value in said]
    for place, (day, text) in enumerate(zip(days, texts, strict=True)):
        draft.write(day, subject, f"{rng.choice(phrases.CHANGES)} {text}" if place else text, sender)
    draft.chatter(project, 2 + level)
    after = draft.days(2, days[-1] + 1)
    if level >= 1:
        rumour = f"{rng.choice(phrases.RUMOURS)} {draft.says(matter, project, rumoured)}"
        draft.write(after[0], f"Re: {subject}", rumour)
    if level >= 2:
        draft.write(after[1], f"Fwd: {subject}", phrases.FORWARDS.format(day=day_number(days[0]), text=texts[0]))
    return draft.item(matter.asked.format(project=project), matter.form, said[-1])


def _hops(level: int, rng: Random) -> Item:
    """Asks for a fact found over two to four e-mails, each naming a link to the next; others mislead."""
    draft = Draft(level, rng)
    asked: list[tuple[str, str, str, str, str]] = []
    for _ in range(1 + (level + 1) // 2):
        project, company, lead, contact = draft.project(), draft.company(), draft.person(), draft.person()
        former, extensions = draft.person(), [str(number) for number in rng.sample(range(1_000, 10_000), 3)]
        named = {"project": project, "company": company}
        days = draft.days(2)
        for day, person in zip(days, (former, lead), strict=True):
            draft.write(day, project, rng.choice(phrases.LEADS).format(person=person, **named))
        draft.write(rng.randrange(phrases.DAYS), f"Parts for {project}", rng.choice(phrases.SUPPLIES).format(**named))
        draft.write(rng.randrange(phrases.DAYS), company, rng.choice(phrases.CONTACTS).format(person=contact, **named))
        for person, extension in zip((former, lead, contact), extensions, strict=True):
            says = rng.choice(phrases.EXTENSIONS).format(person=person, value=extension)
            draft.write(rng.randrange(phrases.DAYS), "Telephone", says)
        draft.chatter(project, 1 + level)
        asked.append((project, company, lead, extensions[1], extensions[2]))
    project, company, lead, of_lead, of_contact = asked[0]
    question, answer = (
        (f"Under which extension can the lead of the project {project} be reached?", of_lead),
        (f"Under which extension can our contact at {company} be reached?", of_contact),
        (f"Under which extension can our contact at the supplier of the project {project} be reached?", of_contact),
        (f"Under which extension can the lead of the project that {company} supplies be reached?", of_lead),
        (
            f"Under which extension can our contact at the supplier of the project that {lead} leads be reached?",
            of_contact,
        ),
    )[level]
    return draft.item(question, "four digits", answer)


def _counts(level: int, rng: Random) -> Item:
    """Asks for the number and total of a company's invoices in a month, by a mailbox's messages."""
    draft = Draft(level, rng)
    company = draft.company()
    first = date.fromisoformat(day_number(rng.randrange(40, phrases.DAYS - 80)))
    inside = [day for day in range(phrases.DAYS) if day_number(day)[:7] == f"{first:%Y-%m}"]
    outside = [day for day in range(phrases.DAYS) if day not in inside]
    numbers = rng.sample(range(10_000, 100_000), 9 + 3 * level)
    amounts = [rng.randrange(100, 9_000) for _ in numbers]
    count = 3 + level + rng.randrange(2)
    for place, (number, value) in enumerate(zip(numbers, amounts, strict=True)):
        says = rng.choice(phrases.INVOICES).format(
            company=company, number=number, value=value, detail=rng.choice(phrases.DETAILS)
        )
        draft.write(rng.choice(inside if place < count else outside), f"Invoice {number}", says)
    for place in rng.sample(range(count), min(count, level)):
        says = rng.choice(phrases.REMINDERS).format(company=company, number=numbers[place], value=amounts[place])
        draft.write(rng.choice(inside), f"Reminder: invoice {numbers[place]}", says)
    question = (
        f"How many invoices of {company} came in {first:%Y-%m}, and how many euros do they come to altogether? "
        "A reminder is no invoice."
    )
    return draft.item(question, "count/total, such as 3/1250", f"{count}/{sum(amounts[:count])}")


MAIL_SEARCH = TopicTaskset(
    name="mail_search",
    version=2,
    makers={
        "single_messages": _facts,
        "corrected_messages": _corrections,
        "linked_messages": _hops,
        "invoice_totals": _counts,
        "absent_messages": _absences,
    },
    null_answers=(UNKNOWN, "absent", "0", "0/0", "absent 2025-01-06", "yes"),
    tools=(SEARCH.name, READ.name),
    environment="mail",
    turns=24,
)
