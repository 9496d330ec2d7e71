"""Jobs to recover a tree of settings from a snapshot and journals, and to migrate it to a new format. Pure.

Invariants: the journals are written from a simulation, which has the recovered tree; torn lines, repeated segments and
transactions that did not commit are added afterwards and change nothing. Later rules of a migration see what earlier
ones made, so an error in one shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from curriculum.environments.terminal.repairs import WORDS, Repair, placed
from verifiers.files.spec import FileCondition, FilesSpec

File = dict[str, str]
Tree = dict[str, File]
SIZES = ((6, 60, 3), (10, 140, 5), (14, 260, 8))
"""Files of the snapshot, journal entries, and rules of the migration, by size."""
LEVELS = ("DEBUG", "Info", "WARN", "error")
MODES = ("fast", "safe", "slow")
OPTIONAL = ("zone", "owner", "debug")


@dataclass(frozen=True)
class MigrationRule:
    text: str
    command: str
    """Shell command that applies it to all files of conf/."""
    model: Callable[[File], File | None]
    """Applies it to one file; returns None if the file is left out."""


def _renamed(file: File, old: str, new: str) -> File:
    return {new if key == old else key: value for key, value in file.items()}


def _each(awk: str) -> str:
    return f'for f in conf/*; do awk -F= -v OFS== \'{awk}\' "$f" > new && mv new "$f"; done'


def _timeout(file: File) -> File:
    return {
        **{key: value for key, value in file.items() if key != "timeout_s"},
        **({"timeout_ms": str(1000 * int(file["timeout_s"]))} if "timeout_s" in file else {}),
    }  # fmt: skip


def _listen(file: File) -> File:
    if not {"host", "port"} <= set(file):
        return file
    rest = {key: value for key, value in file.items() if key not in ("host", "port")}
    return {**rest, "listen": f"{file['host']}:{file['port']}"}


def _limits(file: File) -> File:
    rest = {key: value for key, value in file.items() if key != "limits"}
    parts = file["limits"].split(",") if "limits" in file else []
    return {**rest, **{f"limit_{at}": part for at, part in enumerate(parts, 1)}}


RULES = (
    MigrationRule(
        "A file whose `enabled` is `no` is removed. In the others `enabled` is removed.",
        "for f in conf/*; do if grep -qx enabled=no \"$f\"; then rm \"$f\"; else sed -i /^enabled=/d \"$f\"; fi; done",
        lambda file: (
            None if file.get("enabled") == "no" else {key: file[key] for key in file if key != "enabled"}
        ),
    ),
    MigrationRule(
        "`timeout_s`, in seconds, becomes `timeout_ms`, in milliseconds.",
        _each('$1 == "timeout_s" { print "timeout_ms", $2 * 1000; next } { print }'),
        _timeout,
    ),
    MigrationRule(
        "`host` and `port`, if a file has both, become one key `listen` with the value HOST:PORT.",
        "for f in conf/*; do h=$(sed -n s/^host=//p \"$f\"); p=$(sed -n s/^port=//p \"$f\"); "
        "[ -n \"$h\" ] && [ -n \"$p\" ] || continue; sed -i '/^host=/d; /^port=/d' \"$f\"; "
        "echo \"listen=$h:$p\" >> \"$f\"; done",
        _listen,
    ),
    MigrationRule(
        "`level` is written in small letters.",
        _each('$1 == "level" { $2 = tolower($2) } { print }'),
        lambda file: {key: value.lower() if key == "level" else value for key, value in file.items()},
    ),
    MigrationRule(
        "`limits`, a list with commas, becomes `limit_1`, `limit_2` and so on, in its order.",
        _each(
            '$1 == "limits" { n = split($2, part, ","); for (i = 1; i <= n; i++) print "limit_" i, part[i]; next } '
            '{ print }'
        ),
        _limits,
    ),
    MigrationRule(
        "`mode=fast` becomes `mode=turbo`, and `mode=slow` becomes `mode=fast`.",
        "sed -i 's/^mode=fast$/mode=turbo/; s/^mode=slow$/mode=fast/' conf/*",
        lambda file: {
            key: {"fast": "turbo", "slow": "fast"}.get(value, value) if key == "mode" else value
            for key, value in file.items()
        },
    ),
    MigrationRule(
        "A file without `zone` gets `zone=` with the value of its `owner`, or `none` if it has no `owner`.",
        "for f in conf/*; do grep -q ^zone= \"$f\" && continue; o=$(sed -n s/^owner=//p \"$f\"); "
        "echo \"zone=${o:-none}\" >> \"$f\"; done",
        lambda file: {"zone": file.get("owner", "none"), **file},
    ),
    MigrationRule(
        "`owner` is renamed to `team`.",
        "sed -i s/^owner=/team=/ conf/*",
        lambda file: _renamed(file, "owner", "team"),
    ),
)  # fmt: skip
GUIDE = """\
# Recovery

snapshot/ has the files as they were after the entry whose number is in SEQUENCE. journal/ has what was done before and
after that, in segments whose names say nothing about their order. A line of a journal is

    NUMBER|TRANSACTION|OPERATION|FILE|KEY|VALUE|CHECK

- CHECK is the number of characters before the last `|`. A line where it is another number, or missing, is torn: it does
  not count. Segments overlap; an entry is the same wherever its number occurs.
- Entries count in the order of their numbers. Those up to the one in SEQUENCE are in the snapshot already.
- Entries of a transaction that has no `commit` entry (it was aborted, or never ended) do not count.
- `set` gives a key of a file its value; the file is made if it does not exist. `unset` removes a key. A file without
  keys does not exist. `drop` removes the
  file. `move` renames the file to the name in KEY, and replaces a file of that name.
"""
APPLY = r"""cat > apply.awk <<'END_OF_FILE'
BEGIN { FS = "|" }
FILENAME ~ /^snapshot/ { at = index($0, "="); name = FILENAME; sub(/^snapshot\//, "", name)
    value[name, substr($0, 1, at - 1)] = substr($0, at + 1); next }
$3 == "set" { value[$4, $5] = $6 }
$3 == "unset" { delete value[$4, $5] }
$3 == "drop" || $3 == "move" { for (pair in value) { split(pair, part, SUBSEP); keys[pair] = part[1] } }
$3 == "move" { for (pair in keys) if (keys[pair] == $5) delete value[pair]
    for (pair in keys) if (keys[pair] == $4) { split(pair, part, SUBSEP); value[$5, part[2]] = value[pair] } }
$3 == "drop" || $3 == "move" { for (pair in keys) { if (keys[pair] == $4) delete value[pair]; delete keys[pair] } }
END { for (pair in value) { split(pair, part, SUBSEP); print part[2] "=" value[pair] > ("conf/" part[1]) } }
END_OF_FILE"""


def _settings(rng: Random) -> File:
    file = {
        "host": f"10.0.{rng.randrange(9)}.{rng.randrange(200)}", "port": str(rng.randint(2000, 9000)),
        "timeout_s": str(rng.randint(1, 90)), "level": rng.choice(LEVELS), "mode": rng.choice(MODES),
        "limits": ",".join(str(rng.randint(1, 99)) for _ in range(rng.randint(2, 4))),
        "enabled": rng.choice(("yes", "yes", "yes", "no")),
    }  # fmt: skip
    return file | {key: rng.choice(WORDS) for key in OPTIONAL if rng.random() < 0.5}


def _entry(tree: Tree, rng: Random) -> tuple[str, str, str, str]:
    """Draws an operation on a tree: its name, file, key and value."""
    name = rng.choice(sorted(tree))
    draw = rng.random()
    if draw < 0.04 and len(tree) > 4:
        return "drop", name, "", ""
    if draw < 0.12 and len(tree) > 1:
        others = sorted(set(tree) - {name})
        return "move", name, rng.choice((rng.choice(others), _fresh(tree, rng))), ""
    if draw < 0.25:
        return "unset", name, rng.choice(("host", "mode", *OPTIONAL)), ""
    file = _settings(rng)
    key = rng.choice(sorted(file))
    return "set", _fresh(tree, rng) if draw > 0.95 else name, key, file[key]


def _name(rng: Random) -> str:
    return f"{rng.choice(WORDS)}{rng.randint(10, 99)}"


def _fresh(tree: Tree, rng: Random) -> str:
    while (name := _name(rng)) in tree:
        pass
    return name


def applied(tree: Tree, operation: str, name: str, key: str, value: str) -> None:
    """Applies one journal entry to a tree, in place. A file without keys does not exist."""
    if operation == "set":
        tree.setdefault(name, {})[key] = value
    elif operation == "unset" and name in tree:
        tree[name].pop(key, None)
        if not tree[name]:
            del tree[name]
    elif operation == "drop":
        tree.pop(name, None)
    elif operation == "move" and name in tree and name != key:
        tree[key] = tree.pop(name)


def _text(file: Mapping[str, str]) -> str:
    return "".join(f"{line}\n" for line in sorted(f"{key}={value}" for key, value in file.items()))


def _body(number: int, transaction: str, operation: str, *fields: str) -> str:
    return "|".join((str(number), transaction, operation, *(*fields, "", "", "")[:3]))


def _checked(body: str) -> str:
    return f"{body}|{len(body)}"


def is_valid(line: str) -> bool:
    body, _, check = line.rpartition("|")
    return check == str(len(body))


def _journal(before: Tree, count: int, rng: Random) -> tuple[list[str], Tree, Tree, int]:
    """Writes a journal of interleaved transactions. Returns its lines, the tree at the snapshot, the final tree, and
    the number of the snapshot's last entry."""
    tree = {name: dict(file) for name, file in before.items()}
    lines: list[str] = []
    fates: dict[str, bool] = {}
    """Open transactions, and whether each will commit."""
    number, snapshot, at = rng.randint(100, 900), {}, 0
    for place in range(count):
        number += rng.randint(1, 3)
        if place == count // 4:  # no transaction is open here
            lines += [_checked(_body(number + n, one, _end(fates[one]))) for n, one in enumerate(fates)]
            number += len(fates)
            fates = {}
            snapshot, at = {name: dict(file) for name, file in tree.items()}, number
            number += 1
        draw = rng.random()
        if len(fates) < 2 or (draw < 0.12 and len(fates) < 5):
            transaction = f"t{number}"
            fates[transaction] = rng.random() < 0.7
            lines.append(_checked(_body(number, transaction, "begin")))
        elif draw < 0.27:
            transaction = rng.choice(list(fates))
            lines.append(_checked(_body(number, transaction, _end(fates.pop(transaction)))))
        else:
            transaction, entry = rng.choice(list(fates)), _entry(tree, rng)
            lines.append(_checked(_body(number, transaction, *entry)))
            if fates[transaction]:
                applied(tree, *entry)
    for transaction, commits in fates.items():
        number += 1
        lines += [_checked(_body(number, transaction, "commit"))] if commits else []
    return lines, snapshot, tree, at


def _end(commits: bool) -> str:
    return "commit" if commits else "abort"


def _segments(lines: list[str], rng: Random) -> dict[str, str]:
    """Splits a journal into overlapping segments, and adds torn lines that do not count."""
    size = max(12, len(lines) // 8)
    found: dict[str, str] = {}
    for start in range(0, len(lines), size):
        part = lines[start : start + size]
        part += [_torn(rng.choice(part), rng) for _ in range(2)]
        part += lines[max(0, start - 4) : start]
        if rng.random() < 0.5:
            rng.shuffle(part)
        found[f"journal/{rng.getrandbits(32):08x}.log"] = "".join(f"{line}\n" for line in part)
    return dict(sorted(found.items()))


def _torn(line: str, rng: Random) -> str:
    """Returns a copy of an entry that does not count: cut, or with another value under the same check."""
    number, transaction, operation, name, key, value, check = line.split("|")
    while True:
        if rng.random() < 0.5:
            torn = line[: rng.randint(len(number) + 4, len(line) - 1)]
        else:
            body = _body(int(number), transaction, operation, name, key, f"{value}{rng.randint(0, 9)}")
            torn = f"{body}|{check}"
        if not is_valid(torn):
            return torn


def migrated(tree: Tree, rules: list[MigrationRule]) -> Tree:
    for rule in rules:
        made = {name: rule.model(file) for name, file in tree.items()}
        tree = {name: file for name, file in made.items() if file is not None}
    return tree


def damaged_tree(size: int, rng: Random) -> Repair:
    """Makes a terminal job to recover a tree of settings from journals and to migrate it by 3 to 8 rules."""
    files, entries, count = SIZES[size]
    before: Tree = {}
    while len(before) < files:
        before[_name(rng)] = _settings(rng)
    lines, snapshot, final, at = _journal(before, entries, rng)
    rules = rng.sample(RULES, count)
    tree = migrated(final, rules)
    wanted = "".join(f"[{name}]\n{_text(file)}" for name, file in sorted(tree.items()))
    listed = "".join(f"{place}. {rule.text}\n" for place, rule in enumerate(rules, 1))
    guide = (
        f"{GUIDE}\n# Migration\n\nThe recovered files are then changed by these rules, each on what the ones before it "
        f"left:\n\n{listed}"
    )
    return Repair(
        instruction=(
            "A tree of settings is lost; a snapshot and journals are left. Recover the files as RULES.md says, and "
            "migrate them by its rules. Write the result to tree.txt: for each file that is left, in the order of the "
            "names, a line `[NAME]`, and then its lines `key=value`, sorted. Sorting is by bytes."
        ),
        files=[
            placed("RULES.md", guide), placed("snapshot/SEQUENCE", f"{at}\n"),
            *(placed(f"snapshot/{name}", _text(file)) for name, file in sorted(snapshot.items())),
            *(placed(path, text) for path, text in _segments(lines, rng).items()),
        ],
        solved=[placed("tree.txt", wanted)],
        spec=FilesSpec(declared=("tree.txt",), files=(FileCondition(path="tree.txt", equals=wanted),)),
        steps=_steps(rules),
    )  # fmt: skip


def _steps(rules: list[MigrationRule]) -> list[str]:
    """Returns the commands of a person who recovers the tree and applies one rule after the other."""
    valid = "awk -F'|' '{ body = $0; sub(/\\|[^|]*$/, \"\", body); if (length(body) == $NF) print }' journal/*.log"
    kept = "'NR == FNR { kept[$1]; next } $1 > from && ($2 in kept)' committed valid"
    return [
        "ls -R",
        "cat RULES.md",
        "head -n 4 journal/* snapshot/SEQUENCE",
        f"{valid} | sort -t'|' -k1,1n -u > valid; wc -l journal/*.log valid",
        "awk -F'|' '$3 == \"commit\" { print $2 }' valid > committed; wc -l committed",
        f"awk -F'|' -v from=\"$(cat snapshot/SEQUENCE)\" {kept} > entries; head entries",
        APPLY,
        "mkdir conf; LC_ALL=C awk -f apply.awk snapshot/[a-z]* entries; head -n 30 conf/*",
        *(rule.command for rule in rules),
        'export LC_ALL=C; for f in conf/*; do echo "[${f#conf/}]"; sort "$f"; done > tree.txt',
        "head -n 40 tree.txt",
    ]
