"""Jobs on a pipeline of shell scripts with several dependent defects. Pure.

A driver runs the stages in the order of a settings file, and each stage reads what the one before it wrote, so a defect
shows only after those before it are mended. Invariants: a stage's script and its Python model do the same; the model
alone gives the expected results, also on orders that the agent never sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from curriculum.environments.terminal.repairs import CITIES, GOODS, Repair, commands_of, placed
from verifiers.files.spec import CommandCondition, FilesSpec, PlacedFile

Row = tuple[str | int, ...]
Settings = Mapping[str, str]
REGIONS = ("north", "south", "east", "west", "centre", "coast")
SECONDS = 60.0
"""Time limit of one run, in seconds."""


@dataclass(frozen=True)
class PipelineStage:
    name: str
    rule: str
    """Its documentation; settings in braces."""
    script: str
    faults: tuple[tuple[str, str], ...]
    """Replacements of a part of the script, each of which is a defect."""
    model: Callable[[list[Row], Settings], list[Row]]


def _newest(rows: list[Row], settings: Settings) -> list[Row]:
    return sorted({row[0]: row for row in rows}.values())


def _regions(rows: list[Row], settings: Settings) -> list[Row]:
    return [(row[0], settings[str(row[1])], *row[2:]) for row in rows]


def _discount(rows: list[Row], settings: Settings) -> list[Row]:
    bulk, percent = int(settings["BULK"]), int(settings["PERCENT"])
    return [
        (*row[:5], int(row[5]) * (100 - percent) // 100) if int(row[3]) >= bulk else row
        for row in rows
    ]  # fmt: skip


def _totals(rows: list[Row], settings: Settings) -> list[Row]:
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        count, value = found.get(str(row[1]), (0, 0))
        found[str(row[1])] = count + 1, value + int(row[5])
    return [(place, *pair) for place, pair in sorted(found.items())]


def _share(rows: list[Row], settings: Settings) -> list[Row]:
    everything = sum(int(row[2]) for row in rows)
    return [(*row, 1000 * int(row[2]) // everything) for row in rows]


STAGES: tuple[PipelineStage, ...] = (
    PipelineStage(
        "labels",
        "Column 3 (item) loses all its blanks and is written in small letters.",
        "awk -F, -v OFS=, '{ gsub(/ /, \"\", $3); $3 = tolower($3); print }'",
        (("gsub(", "sub("), ("tolower", "toupper"), ("OFS=,", "OFS=;")),
        lambda rows, settings: [(*row[:2], str(row[2]).replace(" ", "").lower(), *row[3:]) for row in rows],
    ),
    PipelineStage(
        "newest",
        "Of rows with the same id (column 1), only the last one is kept. Rows are then in the order of their ids, as "
        "numbers.",
        "awk -F, '{ row[$1] = $0 } END { for (id in row) print row[id] }' | sort -t, -k1,1n",
        (("{ row[$1]", "!($1 in row) { row[$1]"), ("row[$1] = $0", "row[$2] = $0"), ("-F,", "-F;")),
        _newest,
    ),
    PipelineStage(
        "excluded",
        "Rows about the item {EXCLUDED} are left out.",
        "awk -F, -v item=\"$EXCLUDED\" '$3 != item'",
        (("!=", "=="), ("$EXCLUDED", "$EXCLUDE"), ("$3 !=", "$2 !=")),
        lambda rows, settings: [row for row in rows if row[2] != settings["EXCLUDED"]],
    ),
    PipelineStage(
        "least",
        "Rows with a count (column 4) of at least {LEAST} are kept.",
        "awk -F, -v least=\"$LEAST\" '$4 >= least'",
        ((">= least", "> least"), ("$LEAST", "$MINIMUM"), ("$4 >=", "$5 >="), ("-F, ", "")),
        lambda rows, settings: [row for row in rows if int(row[3]) >= int(settings["LEAST"])],
    ),
    PipelineStage(
        "regions",
        "Column 2 (city) is replaced by the region of that city in lookup/regions.csv.",
        "awk -F, -v OFS=, 'NR == FNR { region[$1] = $2; next } { $2 = region[$2]; print }' lookup/regions.csv -",
        (("regions.csv", "region.csv"), ("region[$1] = $2", "region[$2] = $1"), ("; next", ""), ("NR ==", "NR !=")),
        _regions,
    ),
    PipelineStage(
        "value",
        "The value, count times price (column 4 times column 5), is added as column 6.",
        "awk -F, -v OFS=, '{ print $0, $4 * $5 }'",
        (("$4 *", "$4 +"), ("$4 *", "$1 *"), ("$0, $4", "$0 $4")),
        lambda rows, settings: [(*row, int(row[3]) * int(row[4])) for row in rows],
    ),
    PipelineStage(
        "discount",
        "Where the count (column 4) is at least {BULK}, the value (column 6) is reduced by {PERCENT} percent and "
        "rounded down.",
        "awk -F, -v OFS=, -v bulk=\"$BULK\" -v percent=\"$PERCENT\" "
        "'$4 >= bulk { $6 = int($6 * (100 - percent) / 100) } { print }'",
        (("$4 >= bulk", "$4 > bulk"), ("(100 - percent)", "percent"), (" { print }", ""), ("$PERCENT", "$PERCENTS")),
        _discount,
    ),
    PipelineStage(
        "totals",
        "A row for each value of column 2, in the order of the names: the name, the number of rows, and the sum of "
        "column 6.",
        "awk -F, -v OFS=, '{ rows[$2]++; value[$2] += $6 } END { for (one in rows) print one, rows[one], value[one] }' "
        "| sort",
        (("+= $6", "+= $5"), ("+= $6", "= $6"), ("rows[$2]++", "rows[$3]++"), ("END {", "{")),
        _totals,
    ),
    PipelineStage(
        "ranks",
        "Rows are in the order of column 3 as a number, the largest first, and by name where it is equal.",
        "sort -t, -k3,3nr -k1,1",
        (("3nr", "3n"), ("-k3,3nr ", ""), ("-t,", "-t:")),
        lambda rows, settings: sorted(rows, key=lambda row: (-int(row[2]), row[0])),
    ),
    PipelineStage(
        "shares",
        "The share of column 3 in the sum of column 3 of all rows, in thousandths and rounded down, is added as column "
        "4.",
        "awk -F, -v OFS=, '{ line[NR] = $0; value[NR] = $3; all += $3 } "
        "END { for (at = 1; at <= NR; at++) print line[at], int(1000 * value[at] / all) }'",
        (("all += $3", "all = $3"), ("1000 *", "100 *"), ("at <= NR", "at < NR"), ("value[NR] = $3", "value[NR] = $2")),
        _share,
    ),
)  # fmt: skip
SIZES = (
    (("newest", "least", "regions", "value", "totals", "ranks"), 3),
    (("labels", "newest", "excluded", "least", "regions", "value", "totals", "ranks"), 5),
    (tuple(stage.name for stage in STAGES), 8),
)
"""Stages of a job, and how many of them are defective, by size."""
DRIVER = """\
#!/bin/sh
# usage: run.sh FILE
set -eu
export LC_ALL=C
set -a
. ./conf/run.env
set +a
mkdir -p work
cp "$1" work/0.csv
at=0
while read -r stage; do
    sh -eu "stages/$stage.sh" < "work/$at.csv" > "work/$((at + 1)).csv"
    at=$((at + 1))
done < conf/order.txt
cat "work/$at.csv"
"""
DRIVER_FAULTS = (
    ('cp "$1"', "cp $1"), ("set -a\n", ""), ("stages/$stage.sh", "stages/$stage"),
    ('cat "work/$at', 'cat "work/$((at - 1))'), ("conf/order.txt", "conf/stages.txt"),
)  # fmt: skip


def _orders(rng: Random, settings: Settings, count: int) -> list[Row]:
    """Draws orders in which ids repeat, and counts and items at the settings' boundaries occur."""
    edges = [int(settings["LEAST"]), int(settings["BULK"]), int(settings["LEAST"]) - 1]
    rows: list[Row] = []
    for _ in range(count):
        item = rng.choice((*GOODS, settings["EXCLUDED"]))
        item = rng.choice((item, item.upper(), f"{item[:2]} {item[2:4]} {item[4:]}", item.title()))
        pieces = rng.choice(edges) if rng.random() < 0.4 else rng.randint(1, 60)
        rows.append((rng.randint(1, count + count // 2), rng.choice(CITIES), item, pieces, rng.randint(2, 90)))
    return rows


def _csv(rows: list[Row]) -> str:
    return "".join(f"{','.join(map(str, row))}\n" for row in rows)


def mended_pipeline(size: int, rng: Random) -> Repair:
    """Makes a terminal job to mend a pipeline of 6 to 10 shell scripts with 5 to 11 dependent defects."""
    names, defects = SIZES[size]
    stages = [stage for stage in STAGES if stage.name in names]
    spread = [*REGIONS, *rng.choices(REGIONS, k=len(CITIES) - len(REGIONS))]
    rng.shuffle(spread)
    regions = dict(zip(CITIES, spread, strict=True))
    settings = {
        "LEAST": str(rng.randint(8, 20)), "BULK": str(rng.randint(25, 45)), "PERCENT": str(rng.randint(5, 35)),
        "EXCLUDED": rng.choice(GOODS),
    }  # fmt: skip
    known = {**settings, **regions}

    def expected(rows: list[Row]) -> str:
        for stage in stages:
            rows = stage.model(rows, known)
        return _csv(rows)

    used = [name for name in settings if any(f"{{{name}}}" in stage.rule for stage in stages)]
    env = "".join(f"{name}={settings[name]}\n" for name in used)
    odd = rng.choice([name for name in used if name != "EXCLUDED"])
    wrong_env = env.replace(f"{odd}={settings[odd]}", f"{odd}={int(settings[odd]) + rng.randint(1, 4)}")
    order = "".join(f"{stage.name}\n" for stage in stages)
    right = {"run.sh": DRIVER, "conf/run.env": env, "conf/order.txt": order}
    wrong = {**right, "run.sh": DRIVER.replace(*rng.choice(DRIVER_FAULTS)), "conf/run.env": wrong_env}
    if size:
        at = [stage.name for stage in stages].index("value")
        swapped = [stage.name for stage in stages]
        swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
        wrong["conf/order.txt"] = "".join(f"{name}\n" for name in swapped)
    broken = set(rng.sample([stage.name for stage in stages], defects))
    for stage in stages:
        path, script = f"stages/{stage.name}.sh", f"# {stage.name}: reads rows, prints rows\n{stage.script}\n"
        right[path] = wrong[path] = script
        if stage.name in broken:
            wrong[path] = script.replace(*rng.choice(stage.faults), 1)
    examples = _orders(rng, settings, 30 + 10 * size)
    rules = "".join(f"{at}. {stage.name}: {stage.rule.format(**settings)}\n" for at, stage in enumerate(stages, 1))
    guide = (
        "# The pipeline\n\n`sh run.sh FILE` reads orders (id,city,item,count,price; no heading), runs the stages in "
        f"this order, and prints the rows of the last one. Names of files may have blanks.\n\n{rules}"
    )
    others = [
        placed("STAGES.md", guide), placed("lookup/regions.csv", "".join(f"{a},{b}\n" for a, b in regions.items())),
        placed("examples/orders.csv", _csv(examples)), placed("examples/result.csv", expected(examples)),
    ]  # fmt: skip
    hidden = [_orders(rng, settings, 90) for _ in range(2)]
    commands = tuple(
        CommandCondition(
            command=("sh", "-c", f'cat > "{name}"; sh run.sh "{name}"'),
            files=(others[1],), stdin=_csv(rows), stdout=expected(rows),
        )
        for name, rows in zip(("orders.csv", "new orders.csv"), hidden, strict=True)
    )  # fmt: skip
    return Repair(
        instruction=(
            "A pipeline of shell scripts is damaged in several places: its driver, its settings and some stages. "
            "STAGES.md says what each stage has to do; it is right, and so are lookup/ and examples/, where result.csv "
            "is what orders.csv has to become. A defect may hide others. Mend the files so that the pipeline works for "
            "other orders, too."
        ),
        files=[*others, *(placed(path, text) for path, text in wrong.items())],
        solved=[placed(path, text) for path, text in right.items()],
        spec=FilesSpec(declared=tuple(right), commands=commands, seconds=SECONDS),
        steps=_steps(right, wrong),
    )


def _steps(right: Mapping[str, str], wrong: Mapping[str, str]) -> list[str]:
    """Returns the commands of a person who mends one defect after the other and runs the pipeline each time."""
    tried = "sh run.sh examples/orders.csv > result.csv; diff result.csv examples/result.csv"
    steps = ["ls -R", "cat STAGES.md", "cat run.sh conf/run.env conf/order.txt", "head -n 5 examples/*.csv lookup/*"]
    for path in right:
        if right[path] != wrong[path]:
            steps += [f"cat {path}"] if path.startswith("stages/") else []
            steps += [commands_of([PlacedFile(path=path, text=right[path])]), tried]
    return steps
