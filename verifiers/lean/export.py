"""Writes a declaration of a Lean environment, with everything it rests on, in the text that other kernels read.

The form is the NDJSON of lean4export, version 3.1.0: one name, universe level, term or declaration per line, after its
parts. Lean imports the compiled files; the objects are read from its memory, which has the layout of a compiled file.

Invariants: equal parts have one number, and terms that differ in names of variables only are equal; notes of the
elaborator are left out; nothing recurses, since terms and chains of declarations are deep. Source: Export.lean and
format_ndjson.md of leanprover/lean4export.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from verifiers.lean.native import FUNCTIONS, IMPORTS, NOTHING, Native, field, text
from verifiers.lean.objects import APP, BOUND, CONST, LAMBDA, LET, LITERAL, NOTE, PARAMETER, PI, PROJECTION, SORT
from verifiers.lean.olean import STR

FORMAT = "3.1.0"
AXIOM, DEFINITION, THEOREM, OPAQUE, QUOTIENT, INDUCTIVE, CONSTRUCTOR, RECURSOR = range(8)
PLAIN = {AXIOM: "axiom", DEFINITION: "def", THEOREM: "thm", OPAQUE: "opaque", QUOTIENT: "quot"}
LEVELS = ("zero", "succ", "max", "imax", "param")
BINDERS = ("default", "implicit", "strictImplicit", "instImplicit")
SAFETY = ("unsafe", "safe", "partial")
QUOTIENTS = {"Quot": "type", "Quot.mk": "ctor", "Quot.lift": "lift", "Quot.ind": "ind"}
HINTS = {NOTHING: "opaque", NOTHING + 2: "abbrev"}
LITERALS = (("Nat",), ("Char.ofNat", "String.ofList"))
"""Declarations that literal numbers and texts rest on, where Lean has them."""
PARTS = {APP: (0, 1), LAMBDA: (1, 2), PI: (1, 2), LET: (1, 2, 3), NOTE: (1,), PROJECTION: (2,)}
"""Fields of a term that are terms."""


def export(library: ctypes.CDLL, folder: Path, module: str, name: str, lean: str) -> Path:
    """Imports a compiled file of this folder into a new environment and exports a declaration of it. `lean`: version.

    Returns the file. Once per process: its data is never freed. Raises LeanRefused, LookupError, OSError;
    AttributeError if this Lean lacks a function.
    """
    native = Native(library, FUNCTIONS)
    native.begin(initialisers=False)
    native.begin_tasks()
    usual = field(native.module(folder / f"{module}.olean"), IMPORTS)
    environment = native.environment(native.imports(usual, [module]), extensions=False)
    kernel = native.call("lean_elab_environment_to_kernel_env", environment)
    path = folder / "export.ndjson"
    with path.open("w", encoding="utf-8") as file:
        Export(native, kernel, file.write).declaration(name, lean)
    return path


class Unit(NamedTuple):
    """Declarations that are written together: one, or inductive types with their constructors and recursors."""

    plain: Sequence[int] = ()
    types: Sequence[int] = ()
    constructors: Sequence[int] = ()
    recursors: Sequence[int] = ()

    @property
    def all(self) -> Iterator[int]:
        for each in self:
            yield from each


class Export:
    def __init__(self, native: Native, kernel: int, write: Callable[[str], Any]) -> None:
        """Prepares to write declarations of a kernel environment. `write` receives each line."""
        self._native, self._kernel, self._write = native, kernel, write
        self._words: Any = (ctypes.c_uint64 * (1 << 59)).from_address(0)
        """All memory of the process, in words."""
        self._numbers: dict[str, dict[Any, int]] = {"in": {(): 0}, "il": {(): 0}, "ie": {}}
        """Numbers of names, universe levels and terms by their content."""
        self._known = {NOTHING: 0}
        """The same numbers by address."""
        self._begun: set[int] = set()
        """Numbers of the names whose declarations are written, or will be after what they rest on."""
        self._literals = [[name for name in map(self._built, names) if self._find(name)] for names in LITERALS]
        sys.set_int_max_str_digits(0)

    def declaration(self, name: str, lean: str) -> None:
        """Writes a declaration after everything it rests on. Raises LookupError if the environment lacks any of it."""
        exporter = {"name": "assay", "version": FORMAT}
        meta = {"exporter": exporter, "lean": {"version": lean, "githash": ""}, "format": {"version": FORMAT}}
        self._line({"meta": meta})
        waiting = [self._begin(self._built(name))]
        while waiting:
            unit, names = waiting[-1]
            following = next((name for name in names if self._name(name) not in self._begun), None)
            if following is not None:
                waiting.append(self._begin(following))
            else:
                self._declare(unit)
                waiting.pop()

    def _begin(self, name: int) -> tuple[Unit, Iterator[int]]:
        """Returns the unit that declares a name, and the names it rests on."""
        info = self._found(name)
        tag, held = self._tag(info), self._fields(self._fields(info)[0])
        if tag == CONSTRUCTOR:
            return self._begin(held[1])
        if tag == RECURSOR:
            return self._begin(self._listed(held[1])[0])
        unit, more = Unit([info]), []
        if tag == QUOTIENT:
            unit, more = Unit([self._found(self._built(each)) for each in QUOTIENTS]), [self._built("Eq")]
        elif tag == INDUCTIVE:
            names = self._listed(held[3])
            types = [self._found(each) for each in names]
            constructors = [each for one in types for each in self._listed(self._fields(self._fields(one)[0])[4])]
            recursors = [self._found(self._below(each, "rec")) for each in names]
            while nested := self._find(self._below(names[0], f"rec_{len(recursors) - len(names) + 1}")):
                recursors.append(nested)
            unit = Unit((), types, [self._found(each) for each in constructors], recursors)
        self._begun.update(self._name(self._value(each)[0]) for each in unit.all)
        return unit, iter([*more, *self._constants(term for each in unit.all for term in self._terms(each))])

    def _terms(self, info: int) -> Iterator[int]:
        """Yields the terms of a declaration: its type, and its value or the right sides of its rules."""
        tag, held = self._tag(info), self._fields(self._fields(info)[0])
        yield self._value(info)[2]
        if tag in (DEFINITION, THEOREM, OPAQUE):
            yield held[1]
        if tag == RECURSOR:
            yield from (self._fields(rule)[2] for rule in self._listed(held[6]))

    def _constants(self, terms: Iterable[int]) -> Iterator[int]:
        waiting, seen = list(terms), set[int]()
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            tag, fields = self._tag(at), self._fields(at)
            if tag in (CONST, PROJECTION):
                yield fields[0]
            elif tag == LITERAL:
                yield from self._literals[self._tag(fields[0])]
            waiting += [fields[place] for place in PARTS.get(tag, ())]

    def _declare(self, unit: Unit) -> None:
        for info in unit.plain:
            self._line({PLAIN[self._tag(info)]: self._plain(info)})
        if unit.types:
            types = [self._inductive(info) for info in unit.types]
            constructors = [self._constructor(info) for info in unit.constructors]
            recursors = [self._recursor(info) for info in unit.recursors]
            self._line({"inductive": {"types": types, "ctors": constructors, "recs": recursors}})

    def _plain(self, info: int) -> dict[str, Any]:
        tag, made = self._tag(info), self._common(info)
        at = self._fields(info)[0]
        held = self._fields(at)
        if tag == QUOTIENT:
            return made | {"kind": tuple(QUOTIENTS.values())[self._byte(at, 0)]}
        if tag != AXIOM:
            made["value"] = self._term(held[1])
        if tag == DEFINITION:
            hints = HINTS.get(held[2]) or {"regular": self._behind(held[2]) & 0xFFFF_FFFF}
            return made | {"hints": hints, "safety": SAFETY[self._byte(at, 0)], "all": self._names(held[3])}
        more = {} if tag == AXIOM else {"all": self._names(held[2])}
        return made | more | ({} if tag == THEOREM else {"isUnsafe": bool(self._byte(at, 0))})

    def _inductive(self, info: int) -> dict[str, Any]:
        at = self._fields(info)[0]
        _, parameters, indices, block, constructors, *nested = self._fields(at)
        counts = {"numParams": parameters >> 1, "numIndices": indices >> 1, "numNested": sum(nested) >> 1}
        flags = {name: bool(self._byte(at, place)) for place, name in enumerate(("isRec", "isUnsafe", "isReflexive"))}
        lists = {"all": self._names(block), "ctors": self._names(constructors)}
        return self._common(info) | counts | flags | lists

    def _constructor(self, info: int) -> dict[str, Any]:
        at = self._fields(info)[0]
        _, induct, *numbers = self._fields(at)
        counts = dict(zip(("cidx", "numParams", "numFields"), (number >> 1 for number in numbers), strict=True))
        return self._common(info) | counts | {"induct": self._name(induct), "isUnsafe": bool(self._byte(at, 0))}

    def _recursor(self, info: int) -> dict[str, Any]:
        at = self._fields(info)[0]
        _, block, *numbers, rules = self._fields(at)
        names = ("numParams", "numIndices", "numMotives", "numMinors")
        counts = dict(zip(names, (number >> 1 for number in numbers), strict=True))
        made = []
        for constructor, fields, right in map(self._fields, self._listed(rules)):
            made.append({"ctor": self._name(constructor), "nfields": fields >> 1, "rhs": self._term(right)})
        flags = {"k": bool(self._byte(at, 0)), "isUnsafe": bool(self._byte(at, 1))}
        return self._common(info) | counts | flags | {"all": self._names(block), "rules": made}

    def _common(self, info: int) -> dict[str, Any]:
        name, parameters, kind = self._value(info)
        names = self._names(parameters)
        for each in names:
            self._number("il", ("param", each), {"param": each})
        return {"name": self._name(name), "levelParams": names, "type": self._term(kind)}

    def _term(self, wanted: int) -> int:
        known, waiting = self._known, [wanted]
        while waiting:
            at = waiting[-1]
            if at not in known:
                tag, fields = self._tag(at), self._fields(at)
                parts = [fields[place] for place in PARTS.get(tag, ())]
                if later := [part for part in parts if part not in known]:
                    waiting += later
                    continue
                numbers = [known[part] for part in parts]
                known[at] = numbers[0] if tag == NOTE else self._made(at, tag, fields, numbers)
            waiting.pop()
        return known[wanted]

    def _made(self, at: int, tag: int, fields: Sequence[int], numbers: list[int]) -> int:
        """Returns the number of a term whose parts have these numbers."""
        content: dict[str, Any]
        key: Any = (tag, *numbers)
        if tag == BOUND:
            content = {"bvar": self._natural(fields[0])}
        elif tag == SORT:
            content = {"sort": self._level(fields[0])}
        elif tag == CONST:
            content = {"const": {"name": self._name(fields[0]), "us": list(map(self._level, self._listed(fields[1])))}}
        elif tag == APP:
            content = {"app": dict(zip(("fn", "arg"), numbers, strict=True))}
        elif tag in (LAMBDA, PI):
            binder = {"name": self._name(fields[0]), "binderInfo": BINDERS[self._byte(at, 8)]}
            content = {"lam" if tag == LAMBDA else "forallE": binder | {"type": numbers[0], "body": numbers[1]}}
        elif tag == LET:
            parts = dict(zip(("type", "value", "body"), numbers, strict=True))
            content = {"letE": {"name": self._name(fields[0]), **parts, "nondep": False}}
        elif tag == LITERAL:
            held, number = self._fields(fields[0])[0], self._tag(fields[0]) == 0
            content = {"natVal": str(self._natural(held))} if number else {"strVal": text(held)}
        elif tag == PROJECTION:
            place, name = self._natural(fields[1]), self._name(fields[0])
            content = {"proj": {"typeName": name, "idx": place, "struct": numbers[0]}}
        else:
            raise LookupError(f"a term of the unknown kind {tag}")
        if tag not in (APP, LAMBDA, PI, LET):
            key = tag, json.dumps(content)
        return self._number("ie", key, content)

    def _level(self, wanted: int) -> int:
        known, waiting = self._known, [wanted]
        while waiting:
            at = waiting[-1]
            if at not in known:
                tag, fields = self._tag(at), self._fields(at)
                if later := [part for part in fields if part not in known and tag != PARAMETER]:
                    waiting += later
                    continue
                numbers = [self._name(part) if tag == PARAMETER else known[part] for part in fields]
                content = {LEVELS[tag]: numbers[0] if len(numbers) == 1 else numbers}
                known[at] = self._number("il", (LEVELS[tag], *numbers), content) if fields else 0
            waiting.pop()
        return known[wanted]

    def _name(self, wanted: int) -> int:
        known, waiting = self._known, [wanted]
        while waiting:
            at = waiting[-1]
            if at not in known:
                before, last = self._fields(at)
                if before not in known:
                    waiting.append(before)
                    continue
                said = text(last) if self._tag(at) == STR else self._natural(last)
                kind, part = ("str", "str") if isinstance(said, str) else ("num", "i")
                known[at] = self._number("in", (known[before], said), {kind: {"pre": known[before], part: said}})
            waiting.pop()
        return known[wanted]

    def _number(self, space: str, key: Any, content: dict[str, Any]) -> int:
        numbers = self._numbers[space]
        if key not in numbers:
            numbers[key] = len(numbers)
            self._line(content | {space: numbers[key]})
        return numbers[key]

    def _line(self, content: dict[str, Any]) -> None:
        self._write(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")

    def _found(self, name: int) -> int:
        if not (info := self._find(name)):
            raise LookupError(f"Lean's environment lacks a declaration, number {self._name(name)}")
        return info

    def _find(self, name: int) -> int:
        owners = ctypes.c_int32.from_address(self._kernel)
        owners.value += (owners.value > 0) - (owners.value < 0)  # the lookup consumes one reference
        found = self._native.call("lean_environment_find", self._kernel, name)
        return 0 if found == NOTHING else field(found, 0)

    def _built(self, dotted: str) -> int:
        name = self._native.name(dotted)
        self._native.call("lean_mark_persistent", name)
        return name

    def _below(self, name: int, last: str) -> int:
        made = self._native.call("lean_name_mk_string", name, self._native.string(last))
        self._native.call("lean_mark_persistent", made)
        return made

    def _tag(self, at: int) -> int:
        return int(self._words[at >> 3] >> 56)

    def _fields(self, at: int) -> list[int]:
        word = at >> 3
        return list(self._words[word + 1 : word + 1 + (self._words[word] >> 48 & 0xFF)])

    def _behind(self, at: int, word: int = 0) -> int:
        return int(self._words[(at >> 3) + 1 + (self._words[at >> 3] >> 48 & 0xFF) + word])

    def _byte(self, at: int, place: int) -> int:
        return self._behind(at, place >> 3) >> 8 * (place & 7) & 0xFF

    def _value(self, info: int) -> list[int]:
        """Returns a declaration's name, universe parameters and type."""
        return self._fields(self._fields(self._fields(info)[0])[0])

    def _listed(self, at: int) -> list[int]:
        found = []
        while at != NOTHING:
            first, at = self._fields(at)
            found.append(first)
        return found

    def _names(self, at: int) -> list[int]:
        return [self._name(each) for each in self._listed(at)]

    def _natural(self, at: int) -> int:
        if at & 1:
            return at >> 1
        limbs, data = self._words[(at >> 3) + 1] >> 32, self._words[(at >> 3) + 2]
        return int.from_bytes(ctypes.string_at(data, 8 * limbs), "little")
