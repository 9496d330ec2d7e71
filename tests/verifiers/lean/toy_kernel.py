"""A second kernel for tests, which infers no types: `toy_kernel.py export.ndjson`, or the file of nanoda's settings.

It reads the whole export strictly. Every line is one object with the next number or a declaration; what a line refers
to came before it; every constant is declared before it is used, with as many universe levels as it has parameters;
axioms are allowed ones. It refuses a theorem that says `False` and any declaration whose name begins with `Disagree`;
it declines one that begins with `Decline`, and never ends on one that begins with `Endless`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ALLOWED = ["Classical.choice", "Quot.sound", "propext"]
SPACES = {"in": "name", "il": "level", "ie": "term"}
FORMS: dict[str, dict[str, str]] = {
    "in": {"str": "pre:name str:text", "num": "pre:name i:number"},
    "il": {"succ": "level", "max": "level level", "imax": "level level", "param": "name"},
    "ie": {
        "bvar": "number",
        "sort": "level",
        "const": "name:name us:levels",
        "app": "fn:term arg:term",
        "lam": "name:name type:term body:term binderInfo:binder",
        "forallE": "name:name type:term body:term binderInfo:binder",
        "letE": "name:name type:term value:term body:term nondep:flag",
        "proj": "typeName:name idx:number struct:term",
        "natVal": "digits",
        "strVal": "text",
    },
}
COMMON = "name:name levelParams:names type:term"
DECLARED = {
    "axiom": f"{COMMON} isUnsafe:flag",
    "def": f"{COMMON} value:term hints:hints safety:safety all:names",
    "opaque": f"{COMMON} value:term isUnsafe:flag all:names",
    "thm": f"{COMMON} value:term all:names",
    "quot": f"{COMMON} kind:quotient",
}
BLOCK = {
    "types": f"{COMMON} numParams:number numIndices:number all:names ctors:names numNested:number isRec:flag "
    "isUnsafe:flag isReflexive:flag",
    "ctors": f"{COMMON} induct:name cidx:number numParams:number numFields:number isUnsafe:flag",
    "recs": f"{COMMON} all:names numParams:number numIndices:number numMotives:number numMinors:number rules:rules "
    "k:flag isUnsafe:flag",
}
CHOICES: dict[str, tuple[str, ...]] = {
    "binder": ("default", "implicit", "strictImplicit", "instImplicit"),
    "safety": ("safe",),
    "quotient": ("type", "ctor", "lift", "ind"),
}


class Refused(Exception):
    """The export is malformed, or declares what this kernel does not accept."""


class Kernel:
    def __init__(self) -> None:
        self.read: dict[str, list[Any]] = {"name": [""], "level": [0], "term": []}
        """Names as text; universe levels by number; terms as the constants in them, with their number of levels."""
        self.falsehood = -1
        """Number of the term `False`."""
        self.seen: set[str] = set()
        """Contents of names, levels and terms."""
        self.declared: dict[str, int] = {}
        """Declarations, with their number of universe parameters."""

    def line(self, data: dict[str, Any]) -> None:
        space = next((each for each in SPACES if each in data), None)
        if space is None:
            ((kind, content),) = data.items()
            self.declare(kind, content)
            return
        number = data.pop(space)
        ((kind, content),) = data.items()
        check(number == len(self.read[SPACES[space]]), f"number {number} is not the next one")
        key = space + json.dumps([kind, content], sort_keys=True)
        check(key not in self.seen, f"twice the same: {key}")
        self.seen.add(key)
        read = self.fields(FORMS[space][kind], content)
        if space == "in":
            before = read["pre"]
            self.read["name"].append(f"{before}.{read.get('str', read.get('i'))}" if before else str(read.get("str")))
        elif space == "il":
            self.read["level"].append(number)
        else:
            parts = [part for part in read.values() if isinstance(part, frozenset)]
            own = {(read["name"], len(read["us"]))} if kind == "const" else set()
            self.read["term"].append(frozenset(own).union(*parts))
            if own == {("False", 0)}:
                self.falsehood = number

    def fields(self, form: str, content: Any) -> dict[str, Any]:
        """The parts of a line, each read as the form says; a part without a name is the whole."""
        parts = [part.rpartition(":")[::2] for part in form.split()]
        if len(parts) == 2 and not parts[0][0]:
            return {"": [self.part(kind, one) for (_, kind), one in zip(parts, content, strict=True)]}
        if not parts[0][0]:
            return {"": self.part(parts[0][1], content)}
        check(set(content) == {name for name, _ in parts}, f"other fields than {form}: {sorted(content)}")
        return {name: self.part(kind, content[name]) for name, kind in parts}

    def part(self, kind: str, value: Any) -> Any:
        if kind in ("name", "level", "term"):
            check(type(value) is int and 0 <= value < len(self.read[kind]), f"no {kind} {value} yet")
            return self.read[kind][value]
        if kind in ("names", "levels"):
            return tuple(self.part(kind[:-1], each) for each in value)
        if kind == "rules":
            return [self.fields("ctor:name nfields:number rhs:term", each) for each in value]
        sound: dict[str, Callable[[], Any]] = {
            "number": lambda: type(value) is int and value >= 0,
            "flag": lambda: type(value) is bool,
            "text": lambda: type(value) is str,
            "digits": lambda: value.isascii() and value.isdigit(),
            "hints": lambda: value in ("opaque", "abbrev") or type(value["regular"]) is int,
        }
        check(sound[kind]() if kind in sound else value in CHOICES[kind], f"{value!r} is no {kind}")
        return value

    def declare(self, kind: str, content: Any) -> None:
        if kind == "inductive":
            check(set(content) == set(BLOCK), "another block")
            read = [self.fields(BLOCK[part], each) for part in BLOCK for each in content[part]]
            names = {each["name"] for each in read}
            listed = {each["name"] for part in ("ctors", "recs") for each in map(self.named, content[part])}
            stated = {name for each in read if "ctors" in each for name in each["ctors"]}
            check(stated <= listed and len(names) == len(read), "a block without one of its constructors")
            check(
                bool(content["recs"]) and all(each["induct"] in names for each in read if "induct" in each), "a block"
            )
        else:
            read = [self.fields(DECLARED[kind], content)]
            check(kind != "thm" or content["type"] != self.falsehood, f"{read[0]['name']} proves False")
        for each in read:
            self.add(kind, each["name"], each)
        for each in read:
            rules = [constant for rule in each.get("rules", ()) for constant in rule["rhs"]]
            for name, levels in {*each["type"], *each.get("value", ()), *rules}:
                check(name in self.declared, f"{each['name']} uses {name}, which is not declared")
                check(levels == self.declared[name], f"{name} with {levels} universe levels")

    def named(self, content: Any) -> dict[str, Any]:
        return {"name": self.part("name", content["name"])}

    def add(self, kind: str, name: str, read: dict[str, Any]) -> None:
        check(name not in self.declared, f"{name} twice")
        check(kind != "axiom" or name in ALLOWED, f"the axiom {name}")
        check(not name.startswith("Disagree"), f"{name} is not to this kernel's taste")
        while name.startswith("Endless"):
            pass
        if name.startswith("Decline"):
            sys.exit(2)
        self.declared[name] = len(read["levelParams"])


def check(sound: bool, problem: str) -> None:
    if not sound:
        raise Refused(problem)


def main(path: Path) -> None:
    if path.suffix == ".json":
        config = json.loads(path.read_text())
        check(sorted(config.pop("permitted_axioms")) == ALLOWED, "other axioms")
        path = Path(config.pop("export_file_path"))
        flags = {"unpermitted_axiom_hard_error", "nat_extension", "string_extension"}
        check(config == dict.fromkeys(flags, True), "another configuration")
    kernel = Kernel()
    with path.open(encoding="utf-8") as lines:
        meta = json.loads(next(lines))["meta"]
        check(meta["format"] == {"version": "3.1.0"}, "another form")
        for line in lines:
            kernel.line(json.loads(line))
    sys.stdout.write(f"{len(kernel.declared)} declarations\n")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Refused as error:
        sys.stderr.write(f"refused: {error}\n")
        sys.exit(1)
