"""Generators of repairs: reports from logs, tables to clean, wrong settings, and file modes."""

from __future__ import annotations

import json
from random import Random

from curriculum.environments.terminal.repairs.repair import Repair, placed
from verifiers.files.spec import CommandCondition, FileCondition, FilesSpec

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
