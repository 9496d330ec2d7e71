"""Questions about nested data in files: JSON, settings in sections, logs of what happened when.

Answers are computed from the data before these are written to a file.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.statements import COLOURS, GOODS, PEOPLE, TOWNS, digest
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec

_SIZES = (3, 5, 8, 12, 18)


def _number(text: str, key: str, value: int, files: dict[str, str]) -> Item:
    spec = AnswerSpec(expected=str(value))
    return Item(
        text=f"{text} Answer with the whole number.", key=digest(key), spec=spec, answer=str(value), files=files
    )


def _nested(level: int, rng: Random) -> Item:
    """Makes JSON about branches with staff and their tasks, and asks for a sum of ages."""
    branches: list[dict[str, Any]] = [
        {
            "town": town,
            "open": rng.random() < 0.6,
            "staff": [
                {"name": name, "age": rng.randint(20, 64), "tasks": sorted(rng.sample(GOODS, rng.randint(1, 3)))}
                for name in rng.sample(PEOPLE, 2 + level // 2)
            ],
        }
        for town in (rng.choice(TOWNS) for _ in range(_SIZES[level]))
    ]
    files = {"branches.json": json.dumps({"branches": branches}, indent=1 if level < 3 else None) + "\n"}
    good, age = rng.choice(branches[0]["staff"][0]["tasks"]), rng.randint(25, 40)
    only_open = level > 0
    ages = [
        one["age"]
        for branch in branches if branch["open"] or not only_open
        for one in branch["staff"] if one["age"] >= age and (good in one["tasks"] or level < 2)
    ]  # fmt: skip
    if not ages:
        return _nested(level, rng)
    where = "work in open branches and " if only_open else ""
    who = f" and have the task {good}" if level > 1 else ""
    asked, end = rng.choice(
        (("What is the sum of the ages of the people who", "?"), ("Add up the ages of those who", "."))
    )
    opening = rng.choice(
        ("branches.json describes branches of a firm.", "Read branches.json, a list of a firm's branches.")
    )
    text = f"{opening} {asked} {where}are at least {age} years old{who}{end}"
    return _number(text, f"{files} {age} {who}", sum(ages), files)


def _tree(level: int, rng: Random) -> Item:
    """Makes JSON with a tree of nodes, and asks for the total size below one of them."""
    count = 6 + 6 * level
    names = [f"{rng.choice(COLOURS)}{at}" for at in range(1, count + 1)]
    parents = [rng.randrange(max(0, at - 4), at) if at else -1 for at in range(count)]
    sizes = [rng.randint(10, 999) for _ in range(count)]

    def node(at: int) -> dict[str, Any]:
        below = [node(other) for other in range(count) if parents[other] == at]
        return {"name": names[at], "size": sizes[at], **({"parts": below} if below else {})}

    files = {"tree.json": json.dumps(node(0), indent=1 if level < 2 else None) + "\n"}
    inner = [at for at in range(count) if at in parents]
    top = rng.choice(inner[: 1 + level])
    below = {top}
    for at in range(count):
        if parents[at] in below:
            below.add(at)
    leaves = [at for at in below if at not in parents]
    if level < 2:
        text = (
            "tree.json is a tree: each node has a name, a size and perhaps parts. What is the sum of the sizes of "
            f"{names[top]} and of everything below it?"
        )
        return _number(text, f"{files} {top} all", sum(sizes[at] for at in below), files)
    text = (
        f"tree.json is a tree: each node has a name, a size and perhaps parts. Among everything below {names[top]}, "
        f"how many nodes "
        "have no parts, and what is the sum of their sizes? Answer with the two numbers, with a blank between them."
    )
    answer = f"{len(leaves)} {sum(sizes[at] for at in leaves)}"
    return Item(
        text=text, key=digest(f"{files} {top} leaves"), spec=ExactSpec(expected=answer), answer=answer, files=files
    )


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _log(level: int, rng: Random) -> Item:
    """Makes a log of jobs, and asks how long some of them took in all."""
    now, lines = rng.randint(6, 9) * 3600, []
    open_jobs: dict[int, tuple[int, str]] = {}
    taken: dict[int, tuple[int, str, bool]] = {}
    number = rng.randint(100, 400)
    for _ in range(4 * _SIZES[level]):
        now += rng.randint(5, 400)
        if open_jobs and (len(open_jobs) > 2 + level or rng.random() < 0.45):
            job = rng.choice(sorted(open_jobs))
            began, who = open_jobs.pop(job)
            failed = rng.random() < 0.3
            taken[job] = (now - began, who, failed)
            lines.append(f"{_clock(now)} {'FAILED' if failed else 'done'} job={job}")
        else:
            who = rng.choice(PEOPLE[: 2 + level])
            open_jobs[number] = (now, who)
            lines.append(f"{_clock(now)} start job={number} user={who}")
            number += 1
    files = {"jobs.log": "\n".join(lines) + "\n"}
    users = sorted({who for _, who, _ in taken.values()}) or [PEOPLE[0]]
    user = rng.choice(users)
    chosen = [length for length, who, failed in taken.values() if (who == user or level < 2) and not (failed and level)]
    if not chosen:
        return _log(level, rng)
    whose = f" of {user}" if level > 1 else ""
    which = "that were done, without those that failed" if level else "that came to an end, done or failed"
    opening = rng.choice(
        (
            *("jobs.log says when jobs began and ended.", "A log of jobs is in jobs.log, all of one day."),
            *("Read jobs.log, the beginnings and ends of jobs.", "What happened to jobs on one day is in jobs.log."),
        )
    )
    text = f"{opening} How many seconds did all jobs{whose} take together {which}? Jobs without an end do not count."
    return _number(text, f"{files} {whose} {which}", sum(chosen), files)


def _settings(level: int, rng: Random) -> Item:
    """Makes a settings file with sections that inherit from each other, and asks for effective values."""
    count, keys = 3 + level, [f"{good}_size" for good in GOODS[: 3 + level]]
    sections = rng.sample(COLOURS, min(count, len(COLOURS)))
    values = {name: {key: rng.randint(1, 99) for key in keys if rng.random() < 0.5} for name in sections[1:]}
    values = {sections[0]: {key: rng.randint(1, 99) for key in keys}, **values}
    bases = {name: sections[rng.randrange(max(0, at - 2), at)] for at, name in enumerate(sections) if at}
    lines = []
    for name in rng.sample(sections, len(sections)):
        lines.append(f"[{name}]")
        if name in bases:
            lines.append(f"base = {bases[name]}")
        lines += [f"{key} = {value}" for key, value in rng.sample(sorted(values[name].items()), len(values[name]))]
    files = {"settings.ini": "\n".join(lines) + "\n"}

    def value(name: str, key: str) -> int:
        return values[name][key] if key in values[name] else value(bases[name], key)

    asked = sections[-1]
    chosen = sorted(rng.sample(keys, min(len(keys), 2 + level)))
    result = " ".join(str(value(asked, key)) for key in chosen)
    text = (
        f"In settings.ini a section has what is written in it, and everything else from the section that its base "
        f"names, whose "
        f"values may come from its own base in turn. {rng.choice(('Which values does', 'What values does'))} "
        f"the section {asked} have for {', '.join(chosen)}? "
        "Answer with the numbers in this order, with a blank between two of them."
    )
    return Item(
        text=text, key=digest(f"{files} {asked} {chosen}"), spec=ExactSpec(expected=result), answer=result, files=files
    )


DOCUMENTS = TopicTaskset(
    name="documents",
    version=2,
    makers={"nested_records": _nested, "trees_of_sizes": _tree, "logs_of_jobs": _log, "inherited_settings": _settings},
    null_answers=("0", "1", "0 0", "none", "null"),
)
