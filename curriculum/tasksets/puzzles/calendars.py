"""Dates and times: days between, weekdays, durations, schedules. The calendar is the Gregorian one throughout."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIRST = date(1990, 1, 1)


def _date(level: int, rng: Random) -> date:
    return _FIRST + timedelta(days=rng.randrange(365 * (20 + 20 * level)))


def _written(day: date, rng: Random) -> str:
    months = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ]
    return rng.choice(
        (
            day.isoformat(),
            f"{day.day} {months[day.month - 1]} {day.year}",
            f"{months[day.month - 1]} {day.day}, {day.year}",
        )
    )


_ISO = "Answer with the date as year-month-day, such as 2001-02-03."


def _shift(level: int, rng: Random) -> Item:
    """Asks for a date some days, weeks and working days later or earlier."""
    day = _date(level, rng)
    now, said = day, []
    for _ in range(1 + level):
        sort, number = rng.randrange(2 + (level > 0)), rng.randint(3, 40 + 60 * level)
        back = rng.random() < 0.3
        sign = -1 if back else 1
        word = "earlier" if back else "later"
        if sort == 0:
            now, unit = now + timedelta(days=sign * number), "days"
        elif sort == 1:
            number = rng.randint(2, 30)
            now, unit = now + timedelta(weeks=sign * number), "weeks"
        else:
            number, unit = rng.randint(2, 30), "working days, which are Monday to Friday,"
            left = number
            while left:
                now += timedelta(days=sign)
                left -= now.weekday() < 5
        said.append(f"{number} {unit} {word}")
    asked = rng.choice(("Which date is", "What is the date", "Which day is it", "What date do you reach"))
    then = ", and from there ".join(said)
    answer = now.isoformat()
    return Item(
        text=f"Begin with {_written(day, rng)}. {asked} {then}? {_ISO}",
        key=f"{day} {then}",
        spec=ExactSpec(expected=answer),
        answer=answer,
    )


def _between(level: int, rng: Random) -> Item:
    """Asks how many days lie between two dates, counting all or some weekdays."""
    one, two = sorted((_date(level, rng), _date(level, rng)))
    if one == two:
        two += timedelta(days=rng.randint(9, 99))
    kept = sorted(rng.sample(range(7), min(5, level))) if level else list(range(7))
    number = _count(one, two, kept)
    which = "days" if not level else " or ".join(f"{_DAYS[at]}s" for at in kept)
    asked = rng.choice(
        ("How many {} are there", "How many {} does one count", "How many {} lie", "What is the number of {}")
    ).format(which)
    text = (
        f"{asked} from {_written(one, rng)} on, this day included, until {_written(two, rng)}, that day not included?"
    )
    spec = AnswerSpec(expected=str(number))
    return Item(text=f"{text} Answer with the whole number.", key=f"{one} {two} {kept}", spec=spec, answer=str(number))


def _count(one: date, two: date, kept: list[int]) -> int:
    whole, rest = divmod((two - one).days, 7)
    return whole * len(kept) + sum((one.weekday() + at) % 7 in kept for at in range(rest))


def _nth(level: int, rng: Random) -> Item:
    """Asks for the date of a month's n-th weekday, from its start or end. Higher levels ask for several months."""
    year, weekday = rng.randint(1950, 2080), rng.randrange(7)
    months = sorted(rng.sample(range(1, 13), 1 + level))
    last = rng.random() < 0.4
    number = rng.randint(1, 4)
    found = []
    for month in months:
        days = [day for at in range(1, 32) if (day := _day(year, month, at)) is not None and day.weekday() == weekday]
        found.append(days[-1] if last else days[number - 1])
    which = "last" if last else ("first", "second", "third", "fourth")[number - 1]
    names = ", ".join(f"{year}-{month:02d}" for month in months)
    answer = " ".join(day.isoformat() for day in found)
    asked, mark = rng.choice(
        (
            *(("Give the date of the", "."), ("Find the date of the", ".")),
            *(("Which date is the", "?"), ("What is the", "?")),
        )
    )
    each = "each of these months: " if level else ""
    end = "" if level == 0 else " Give them in this order, with a blank between two of them."
    return Item(
        text=f"{asked} {which} {_DAYS[weekday]} of {each}{names}{mark} {_ISO}{end}",
        key=f"{which} {weekday} {names}",
        spec=ExactSpec(expected=answer),
        answer=answer,
    )


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _shifts(level: int, rng: Random) -> Item:
    """Asks for the total of working times with breaks, some past midnight."""
    rows, total = [], 0
    for _ in range(2 + 2 * level):
        start, length = rng.randrange(24 * 60), rng.randint(61, 700)
        pause = rng.choice((0, 15, 20, 30, 45))
        end = (start + length) % (24 * 60)
        total += length - pause
        rested = f"break {pause} minutes" if pause else "no break"
        rows.append(f"from {start // 60:02d}:{start % 60:02d} to {end // 60:02d}:{end % 60:02d}, {rested}")
    answer = f"{total // 60}:{total % 60:02d}"
    said = "\n".join(rows)
    opening = rng.choice(
        ("Times of work", "Somebody worked at these times", "These shifts were worked", "A time sheet has these lines")
    )
    text = (
        f"{opening}; where the end is earlier than the beginning, it is on the next day:\n{said}\nHow long is that "
        f"in all, without "
        "the breaks? Answer with hours and minutes, such as 7:05 or 31:40."
    )
    return Item(text=text, key=said, spec=ExactSpec(expected=answer), answer=answer)


CALENDARS = TopicTaskset(
    name="calendars",
    version=2,
    makers={"shifted_dates": _shift, "days_between": _between, "weekdays_of_months": _nth, "working_times": _shifts},
    null_answers=("0", "1", "2000-01-01", "8:00"),
)
