"""Repairs in a terminal: reports from logs, tables, settings, file modes, shell scripts and builds. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from verifiers.files.spec import CommandCondition, FileCondition, FilesSpec, PlacedFile


@dataclass(frozen=True, kw_only=True)
class Repair:
    instruction: str
    files: Sequence[PlacedFile]
    solved: Sequence[PlacedFile]
    """Declared files after a solution."""
    spec: FilesSpec
    steps: Sequence[str] = ()
    """Commands of a solution that starts from the initial files; only jobs of many steps have them."""


def placed(path: str, text: str, mode: str = "644") -> PlacedFile:
    return PlacedFile(path=path, text=text, mode=mode)


def submission_of(files: Sequence[PlacedFile]) -> str:
    """Returns the JSON that a terminal submits for these declared files: text and mode by path."""
    return json.dumps({file.path: {"text": file.text, "mode": file.mode} for file in files})


def commands_of(files: Sequence[PlacedFile]) -> str:
    """Returns shell commands that create these files."""
    lines = []
    for file in files:
        if "/" in file.path:
            lines.append(f"mkdir -p {file.path.rpartition('/')[0]}")
        body = file.text if file.text.endswith("\n") or not file.text else f"{file.text}\n"
        lines.append(f"cat > {file.path} <<'END_OF_FILE'\n{body}END_OF_FILE\nchmod {file.mode} {file.path}")
    return "\n".join(lines) + "\n"


SERVICES = ("auth", "billing", "cache", "gateway", "mail", "search")
WORDS = ("amber", "birch", "cobalt", "delta", "ember", "fjord", "garnet", "harbor", "iris", "jade", "kelp", "lotus")
SHOW_JSON = "import json,sys; print(json.dumps(json.load(open(sys.argv[1])), sort_keys=True))"
LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")


def log_report(level: int, rng: Random) -> Repair:
    """Makes a terminal task to count, by service, the log lines that meet conditions."""
    chosen = LEVELS[rng.randrange(1, 4)]
    begin, end = sorted(rng.sample(range(24), 2))
    slow = rng.randint(100, 800)
    lines, counts, times = [], dict.fromkeys(SERVICES, 0), dict.fromkeys(SERVICES, 0)
    for _ in range(60 + 60 * level):
        hour, minute, service = rng.randrange(24), rng.randrange(60), rng.choice(SERVICES)
        severity, took = rng.choice(LEVELS), rng.randint(1, 1000)
        text = " ".join(rng.choices([*WORDS, *LEVELS], k=3))
        lines.append(f"2026-05-{rng.randint(10, 28)} {hour:02}:{minute:02} {severity} {service} {took}ms {text}")
        counted = severity == chosen and (level < 1 or begin <= hour < end) and (level < 3 or took > slow)
        counts[service] += counted
        times[service] += took if counted else 0
    rules = [f"whose third word is {chosen}"]
    if level >= 1:
        rules.append(f"whose time is from {begin:02}:00 up to, but not at, {end:02}:00")
    if level >= 3:
        rules.append(f"that took more than {slow} ms")
    if not any(counts.values()):
        return log_report(level, rng)
    shown = [(name, count) for name, count in counts.items() if count or level < 2]
    order = sorted(shown, key=lambda pair: (-pair[1], pair[0]) if level >= 2 else (0, pair[0]))
    report = "".join(f"{name} {count}{f' {times[name]}' if level >= 4 else ''}\n" for name, count in order)
    which = "each service of which there are such lines" if level >= 2 else f"each of {', '.join(SERVICES)}"
    what = "its name, the number of its lines" + (", and the milliseconds of them all together" if level >= 4 else "")
    sort = (
        "the largest number first, and by name where numbers are equal" if level >= 2 else "in the order of the names"
    )
    return Repair(
        instruction=(
            "service.log has lines of the form `DATE TIME SEVERITY SERVICE MILLISECONDSms TEXT`. Write report.txt, "
            f"with one line for {which}: {what}, with a blank between them, {sort}. Only lines count "
            f"{' and '.join(rules)}."
        ),
        files=[placed("service.log", "\n".join(lines) + "\n")],
        solved=[placed("report.txt", report)],
        spec=FilesSpec(declared=("report.txt",), files=(FileCondition(path="report.txt", equals=report),)),
    )


def table_cleanup(level: int, rng: Random) -> Repair:
    """Makes a terminal task to clean a table with blanks, spelling variants, duplicates and incomplete rows."""
    clean = [
        (f"{rng.choice(WORDS)}{number:02}", rng.choice(SERVICES), str(rng.randint(1, 999)))
        for number in rng.sample(range(100), 8 + 6 * level)
    ]
    dirty: list[str] = []
    for name, service, amount in clean:
        spoilt = [
            " " * rng.randrange(3) + name + " " * rng.randrange(2),
            service if level < 1 else rng.choice([service, service.upper(), service.title()]),
            amount if level < 2 else rng.choice([amount, f"{amount}.0", f"+{amount}"]),
        ]
        dirty += [",".join(spoilt)] * (rng.choice([1, 1, 2]) if level >= 1 else 1)
        if level >= 3 and rng.random() < 0.3:
            dirty.append(f"{name}x,,{amount}")
    rng.shuffle(dirty)
    rules = ["no blanks around a value"]
    if level >= 1:
        rules += ["services in small letters", "no row twice"]
    if level >= 2:
        rules.append("amounts as plain digits")
    if level >= 3:
        rules.append("no rows without a service")
    rules.append("the heading first, then rows in the order of the names")
    wanted = "name,service,amount\n" + "".join(f"{','.join(row)}\n" for row in sorted(clean))
    files = [placed("raw.csv", "\n".join(["name,service,amount", *dirty]) + "\n")]
    solved, conditions = [placed("clean.csv", wanted)], [FileCondition(path="clean.csv", equals=wanted)]
    if level >= 4:
        totals: dict[str, int] = {}
        for _, service, amount in clean:
            totals[service] = totals.get(service, 0) + int(amount)
        text = "".join(f"{service} {total}\n" for service, total in sorted(totals.items()))
        solved.append(placed("totals.txt", text))
        conditions.append(FileCondition(path="totals.txt", equals=text))
        rules.append("and totals.txt with a line for each service, by name: its name, a blank, the sum of its amounts")
    return Repair(
        instruction=f"Write clean.csv from raw.csv: {'; '.join(rules)}.",
        files=files,
        solved=solved,
        spec=FilesSpec(declared=tuple(file.path for file in solved), files=tuple(conditions)),
    )


def wrong_settings(level: int, rng: Random) -> Repair:
    """Makes a terminal task to correct JSON settings, one file per service, from a list."""
    services = rng.sample(SERVICES, 1 + level)
    limits = {name: {"port": rng.randint(2000, 9000), "workers": rng.randint(2, 16)} for name in services}
    texts: dict[str, tuple[str, str]] = {}
    notes = []
    for name in services:
        right: dict[str, object] = {
            "name": name,
            "listen": {"host": "127.0.0.1", "port": limits[name]["port"]},
            "workers": limits[name]["workers"],
            "features": sorted(rng.sample(WORDS, 3 + level // 2)),
        }
        wrong = json.loads(json.dumps(right))
        wrong["listen"]["port"] = rng.randint(9001, 9999)
        if level >= 1:
            wrong["workers"] = str(wrong["workers"])
        if level >= 2:
            wrong["features"].append(rng.choice(wrong["features"]))
        text = json.dumps(wrong, indent=2)
        if level >= 3:
            text = text.replace('"workers"', "# how many\n  'workers'")
        texts[name] = (text + "\n", json.dumps(right, sort_keys=True))
        notes.append(f"{name}: port {limits[name]['port']}, {limits[name]['workers']} workers")
    rules = ["the port is that of ports.txt"]
    if level >= 1:
        rules.append("workers is a number, that of ports.txt")
    if level >= 2:
        rules.append("no feature is there twice, and features are sorted")
    if level >= 3:
        rules.append("it is JSON, without comments")
    paths = tuple(f"conf/{name}.json" for name in services)
    commands = tuple(
        CommandCondition(command=("python3", "-I", "-c", SHOW_JSON, f"conf/{name}.json"), stdout=texts[name][1])
        for name in services
    )
    return Repair(
        instruction=f"Mend the settings {', '.join(paths)}: {'; '.join(rules)}. Nothing else of them changes.",
        files=[placed("ports.txt", "\n".join(notes) + "\n"),
               *(placed(f"conf/{name}.json", texts[name][0]) for name in services)],
        solved=[placed(f"conf/{name}.json", texts[name][1] + "\n") for name in services],
        spec=FilesSpec(declared=paths, commands=commands),
    )  # fmt: skip


def modes(level: int, rng: Random) -> Repair:
    """Makes a terminal task to set file modes by rules, without changing the texts."""
    files, wanted = [], []
    for number in range(4 + 3 * level):
        sort = rng.choice(["script", "secret", "text"] + (["shared"] if level >= 2 else []))
        folder = rng.choice(["", "bin/", "etc/"]) if level >= 1 else ""
        word = f"{rng.choice(WORDS)}{number}"
        path, text, mode = {
            "script": (f"{folder}{word}", f"#!/bin/sh\necho {word}\n", "755"),
            "secret": (f"{folder}{word}.key", f"{rng.getrandbits(64):016x}\n", "600"),
            "text": (f"{folder}{word}.txt", f"{word} {rng.choice(WORDS)}\n", "644"),
            "shared": (f"{folder}{word}.log", f"{rng.choice(WORDS)}\n", "664"),
        }[sort]
        other = [one for one in ("600", "644", "664", "755", "777") if one != mode]
        spoilt = rng.choice(other) if rng.random() < 0.7 or not number else mode
        files.append(placed(path, text, spoilt))
        wanted.append(placed(path, text, mode))
    rules = [
        "what begins with #! may be read and run by everybody and written by its owner (755)",
        "*.key is for its owner alone (600)",
        "*.txt may be read by everybody and written by its owner (644)",
    ]
    if level >= 2:
        rules.append("*.log may be written by its group, too (664)")
    conditions = tuple(FileCondition(path=file.path, equals=file.text, mode=file.mode) for file in wanted)
    return Repair(
        instruction=f"Set the modes of all files here and in folders below: {'; '.join(rules)}. Change no text.",
        files=files,
        solved=wanted,
        spec=FilesSpec(declared=tuple(file.path for file in wanted), files=conditions),
    )  # fmt: skip


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
    lines = len(faulty) + (wrong != right)
    count = f"{lines} of its lines are" if lines > 1 else "One of its lines is"
    return Repair(
        instruction=(
            "The script report.sh takes the name of a CSV file with the columns city, item, count and price, and "
            f"prints rows without the heading:\n{listed}\n{count} wrong. Repair it. "
            "sales.csv is an example; it is tried on other files, whose names may have blanks."
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
