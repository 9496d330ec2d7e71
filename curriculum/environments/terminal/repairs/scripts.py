"""Generators of repairs: faulty shell scripts, and builds with steps in the wrong order. Judged on other input."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from curriculum.environments.terminal.repairs.repair import Repair, placed
from verifiers.files.spec import CommandCondition, FilesSpec, PlacedFile

CITIES = ("Berlin", "Lima", "Oslo", "Quito", "Riga", "Seoul", "Tunis", "Vienna")
GOODS = ("apples", "bolts", "candles", "drums", "engines", "flags", "gloves", "hats")
Rows = list[tuple[str, str, int, int]]
BUILD_SECONDS = 60.0
"""Time limit of a build, in seconds. It starts two programs per step: at a load of 50, five seconds were too few for 32
of 600 right scripts."""


def _rows(rng: Random, count: int) -> Rows:
    return [(rng.choice(CITIES), rng.choice(GOODS), rng.randint(1, 60), rng.randint(2, 90)) for _ in range(count)]


def _csv(rows: Rows) -> str:
    return "".join(f"{','.join(map(str, row))}\n" for row in [("city", "item", "count", "price"), *rows])


Stage = tuple[str, str, str, Callable[[Rows], Rows]]
"""A correct awk line, a faulty one, its purpose, and its effect."""


def _stages(rng: Random) -> list[Stage]:
    least, dear = rng.randint(10, 30), rng.randint(30, 60)
    city, item = rng.choice(CITIES), rng.choice(GOODS)
    return [
        (f"awk -F, '$3 >= {least}'", f"awk -F, '$3 > {least}'", f"rows with a count of at least {least} are kept",
         lambda rows: [row for row in rows if row[2] >= least]),
        (f"awk -F, '$4 < {dear}'", f"awk -F, '$3 < {dear}'", f"rows with a price below {dear} are kept",
         lambda rows: [row for row in rows if row[3] < dear]),
        (f"awk -F, '$1 != \"{city}\"'", f"awk -F, '$1 == \"{city}\"'", f"rows of {city} are left out",
         lambda rows: [row for row in rows if row[0] != city]),
        (f"awk -F, '$2 != \"{item}\"'", f"awk -F: '$2 != \"{item}\"'", f"rows about {item} are left out",
         lambda rows: [row for row in rows if row[1] != item]),
        ("sort -t, -k3,3n -k1,1 -k2,2 -k4,4n", "sort -t, -k3,3 -k1,1 -k2,2 -k4,4n",
         "rows are sorted by count as a number, then by city, item and price",
         lambda rows: sorted(rows, key=lambda row: (row[2], row[0], row[1], row[3]))),
    ]  # fmt: skip


def broken_script(level: int, rng: Random) -> Repair:
    """Makes a terminal task to mend a shell script that filters a table. One or more of its stages are wrong and, at
    higher levels, its first line."""
    stages = _stages(rng)
    chosen = [*rng.sample(stages[:4], min(4, 1 + level)), stages[4]]
    faulty = rng.sample(range(len(chosen)), min(len(chosen), 1 + (level + 1) // 2))
    right, wrong = 'tail -n +2 "$1"', "tail -n +1 $1" if level >= 2 else 'tail -n +2 "$1"'

    def script(head: str, wrong_at: list[int]) -> str:
        lines = [head, *(stage[1] if place in wrong_at else stage[0] for place, stage in enumerate(chosen))]
        return "#!/bin/sh\n# usage: report.sh FILE\n" + " |\n    ".join(lines) + "\n"

    def expected(rows: Rows) -> str:
        for stage in chosen:
            rows = stage[3](rows)
        return "".join(f"{','.join(map(str, row))}\n" for row in rows)

    example = _rows(rng, 12 + 4 * level)
    broken, mended = script(wrong, faulty), script(right, [])
    hidden: list[Rows] = []
    while len(hidden) < 3:
        rows = _rows(rng, 60)
        if expected(rows):
            hidden.append(rows)
    names = ["input.csv", "other.csv", "my data.csv" if level >= 2 else "data.csv"]
    commands = tuple(
        CommandCondition(
            command=("sh", "-c", f'cat > "{name}"; sh report.sh "{name}"'), stdin=_csv(rows), stdout=expected(rows)
        )
        for name, rows in zip(names, hidden, strict=True)
    )
    listed = "\n".join(f"- {stage[2]};" for stage in chosen)
    return Repair(
        instruction=(
            "The script report.sh takes the name of a CSV file with the columns city, item, count and price, and "
            f"prints rows without the heading:\n{listed}\nIt is wrong in {len(faulty) + (wrong != right)} of its "
            "lines. Mend it. sales.csv is an example; it is tried on other files, whose names may have blanks."
        ),
        files=[placed("report.sh", broken), placed("sales.csv", _csv(example))],
        solved=[placed("report.sh", mended)],
        spec=FilesSpec(declared=("report.sh",), commands=commands),
    )


def wrong_order(level: int, rng: Random) -> Repair:
    """Makes a terminal task to mend a build script whose interdependent steps are in the wrong order."""
    count = 4 + 2 * level
    names = [f"{rng.choice('bcdfgklmnprst')}{rng.choice('aeiou')}{number}" for number in range(count)]
    needs = {name: sorted(rng.sample(names[:place], min(place, rng.randint(1, 2)))) for place, name in enumerate(names)}

    def step(name: str) -> str:
        before = "".join(f" build/{one}" for one in needs[name])
        return f"cat src/{name}{before} | sort -u > build/{name}"

    steps = [step(name) for name in names]
    mixed = steps[:]
    while mixed == steps or _works(mixed, names, needs):
        rng.shuffle(mixed)
    head = "#!/bin/sh\nset -eu\nmkdir -p build\n"

    def sources(words: int) -> dict[str, set[str]]:
        return {name: {f"{rng.choice(GOODS)}{rng.randrange(100)}" for _ in range(words)} for name in names}

    def built(given: dict[str, set[str]]) -> dict[str, str]:
        made: dict[str, set[str]] = {}
        for name in names:
            made[name] = set(given[name]).union(*(made[one] for one in needs[name]))
        return {name: "".join(f"{word}\n" for word in sorted(words)) for name, words in made.items()}

    def texts(given: dict[str, set[str]]) -> list[PlacedFile]:
        return [placed(f"src/{name}", "".join(f"{word}\n" for word in sorted(given[name]))) for name in names]

    commands = []
    for _ in range(2):
        hidden = sources(4)
        leaves = tuple(placed(f"build/{name}", text) for name, text in built(hidden).items())
        commands.append(CommandCondition(command=("sh", "build.sh"), files=tuple(texts(hidden)), leaves=leaves))
    needed = "\n".join(f"- {name} is made of src/{name}" + "".join(f" and build/{one}" for one in needs[name])
                       for name in sorted(names))  # fmt: skip
    return Repair(
        instruction=(
            "The script build.sh makes the files in build/ from those in src/, each with all lines of what it is made "
            f"of, sorted, none twice:\n{needed}\nIts steps are in the wrong order. Mend build.sh so that it works in "
            "a fresh folder with other sources and without a build folder."
        ),
        files=[placed("build.sh", head + "\n".join(mixed) + "\n"), *texts(sources(3))],
        solved=[placed("build.sh", head + "\n".join(steps) + "\n")],
        spec=FilesSpec(declared=("build.sh",), commands=tuple(commands), seconds=BUILD_SECONDS),
    )


def _works(steps: list[str], names: list[str], needs: dict[str, list[str]]) -> bool:
    """True if each build step comes after those that it needs."""
    order = [step.rpartition("/")[2] for step in steps]
    return all(order.index(one) < order.index(name) for name in names for one in needs[name])
