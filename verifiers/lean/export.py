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
from typing import Any

from verifiers.lean.native import FUNCTIONS, IMPORTS, NOTHING, POINTER, Native, field, text
from verifiers.lean.objects import APP, BOUND, CONST, LAMBDA, LET, LITERAL, NOTE, PARAMETER, PI, PROJECTION, SORT
from verifiers.lean.olean import STR

FORMAT = "3.1.0"
QUOTIENT, INDUCTIVE, CONSTRUCTOR, RECURSOR = 4, 5, 6, 7
PLAIN = ("axiom", "def", "thm", "opaque", "quot")
BLOCK = {INDUCTIVE: "types", CONSTRUCTOR: "ctors", RECURSOR: "recs"}
FIELDS = (
    "", "value hints all", "value all", "value all", "", "numParams numIndices all ctors numNested",
    "induct cidx numParams numFields", "all numParams numIndices numMotives numMinors rules",
)  # fmt: skip
"""Names of a declaration's fields behind its name, parameters and type, by its tag."""
BYTES = ("isUnsafe", "safety", "", "isUnsafe", "kind", "isRec isUnsafe isReflexive", "isUnsafe", "k isUnsafe")
"""Names of the bytes behind the fields. They are flags, but for two."""
MEANINGS = {"safety": ("unsafe", "safe", "partial"), "kind": ("type", "ctor", "lift", "ind")}
BINDERS = ("default", "implicit", "strictImplicit", "instImplicit")
HINTS = {NOTHING: "opaque", NOTHING + 2: "abbrev"}
LEVELS = ("zero", "succ", "max", "imax", "param")
QUOTIENTS = ("Quot", "Quot.mk", "Quot.lift", "Quot.ind")
LITERALS = (("Nat",), ("Char.ofNat", "String.ofList"))
"""Declarations that literal numbers and texts rest on, where Lean has them."""
PARTS = {APP: (0, 1), LAMBDA: (1, 2), PI: (1, 2), LET: (1, 2, 3), NOTE: (1,), PROJECTION: (2,)}
"""Fields of a term that are terms."""
COMPOUND = {APP: "app fn arg", LAMBDA: "lam type body", PI: "forallE type body", LET: "letE type value body"}


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
            infos, names = waiting[-1]
            following = next((name for name in names if self._name(name) not in self._begun), None)
            if following is not None:
                waiting.append(self._begin(following))
            else:
                self._declare(infos)
                waiting.pop()

    def _begin(self, name: int) -> tuple[list[int], Iterator[int]]:
        """Returns the declarations that are written together with a name's, and the names they rest on."""
        info = self._found(name)
        tag, held = self._tag(info), self._held(info)
        if tag in (CONSTRUCTOR, RECURSOR):
            return self._begin(held[1] if tag == CONSTRUCTOR else self._listed(held[1])[0])
        infos, names = [info], list[int]()
        if tag == QUOTIENT:
            infos, names = [self._found(self._built(each)) for each in QUOTIENTS], [self._built("Eq")]
        elif tag == INDUCTIVE:
            block = self._listed(held[3])
            infos = [self._found(each) for each in block]
            infos += [self._found(each) for one in infos for each in self._listed(self._held(one)[4])]
            infos += [self._found(self._below(each, "rec")) for each in block]
            number = 1
            while nested := self._find(self._below(block[0], f"rec_{number}")):
                infos.append(nested)
                number += 1
        self._begun.update(self._name(self._value(each)[0]) for each in infos)
        names += self._constants(term for each in infos for term in self._terms(each))
        return infos, iter(names)

    def _terms(self, info: int) -> Iterator[int]:
        """Yields the terms of a declaration: its type, and its value or the right sides of its rules."""
        held = self._held(info)
        yield self._value(info)[2]
        if FIELDS[self._tag(info)].startswith("value"):
            yield held[1]
        elif self._tag(info) == RECURSOR:
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

    def _declare(self, infos: Sequence[int]) -> None:
        if self._tag(infos[0]) in BLOCK:
            block: dict[str, list[Any]] = {name: [] for name in BLOCK.values()}
            for info in infos:
                block[BLOCK[self._tag(info)]].append(self._content(info))
            self._line({"inductive": block})
        else:
            for info in infos:
                self._line({PLAIN[self._tag(info)]: self._content(info)})

    def _content(self, info: int) -> dict[str, Any]:
        name, parameters, kind = self._value(info)
        names, tag, at = self._names(parameters), self._tag(info), self._fields(info)[0]
        for each in names:
            self._number("il", ("param", each), {"param": each})
        made: dict[str, Any] = {"name": self._name(name), "levelParams": names, "type": self._term(kind)}
        readers = {
            "value": self._term, "hints": self._hints, "all": self._names, "ctors": self._names, "induct": self._name,
            "rules": self._rules,
        }  # fmt: skip
        if tag == INDUCTIVE:
            made["numNested"] = 0  # which older versions do not store
        for word, held in zip(FIELDS[tag].split(), self._held(info)[1:], strict=False):
            made[word] = readers.get(word, self._natural)(held)
        for place, word in enumerate(BYTES[tag].split()):
            made[word] = MEANINGS.get(word, (False, True))[self._byte(at, place)]
        return made

    def _hints(self, at: int) -> Any:
        return HINTS.get(at) or {"regular": ctypes.c_uint32.from_address(at + POINTER).value}

    def _rules(self, at: int) -> list[dict[str, int]]:
        return [
            {"ctor": self._name(name), "nfields": self._natural(fields), "rhs": self._term(right)}
            for name, fields, right in map(self._fields, self._listed(at))
        ]

    def _term(self, wanted: int) -> int:
        return self._numbered(wanted, lambda tag: PARTS.get(tag, ()), self._made_term)

    def _made_term(self, at: int, tag: int, fields: Sequence[int], numbers: Sequence[int]) -> int:
        """Returns the number of a term whose parts have these numbers."""
        if tag == NOTE:
            return numbers[0]
        content: dict[str, Any]
        if tag in COMPOUND:
            kind, *names = COMPOUND[tag].split()
            made: dict[str, Any] = {} if tag == APP else {"name": self._name(fields[0])}
            made |= {"binderInfo": BINDERS[self._byte(at, 8)]} if tag in (LAMBDA, PI) else {}
            made |= {"nondep": False} if tag == LET else {}
            return self._number("ie", (tag, *numbers), {kind: made | dict(zip(names, numbers, strict=True))})
        if tag == BOUND:
            content = {"bvar": self._natural(fields[0])}
        elif tag == SORT:
            content = {"sort": self._level(fields[0])}
        elif tag == CONST:
            content = {"const": {"name": self._name(fields[0]), "us": list(map(self._level, self._listed(fields[1])))}}
        elif tag == LITERAL:
            held = self._fields(fields[0])[0]
            content = {"strVal": text(held)} if self._tag(fields[0]) else {"natVal": str(self._natural(held))}
        elif tag == PROJECTION:
            name, place = self._name(fields[0]), self._natural(fields[1])
            content = {"proj": {"typeName": name, "idx": place, "struct": numbers[0]}}
        else:
            raise LookupError(f"a term of the unknown kind {tag}")
        return self._number("ie", str(content), content)

    def _level(self, wanted: int) -> int:
        return self._numbered(wanted, lambda tag: range(2)[: (0, 1, 2, 2, 0)[tag]], self._made_level)

    def _made_level(self, _at: int, tag: int, fields: Sequence[int], numbers: Sequence[int]) -> int:
        if not fields:
            return 0
        found = [self._name(fields[0])] if tag == PARAMETER else list(numbers)
        return self._number("il", (LEVELS[tag], *found), {LEVELS[tag]: found if len(found) > 1 else found[0]})

    def _name(self, wanted: int) -> int:
        return self._numbered(wanted, lambda _tag: (0,), self._made_name)

    def _made_name(self, _at: int, tag: int, fields: Sequence[int], numbers: Sequence[int]) -> int:
        last = text(fields[1]) if tag == STR else self._natural(fields[1])
        kind, part = ("str", "str") if tag == STR else ("num", "i")
        return self._number("in", (numbers[0], last), {kind: {"pre": numbers[0], part: last}})

    def _numbered(
        self,
        wanted: int,
        parts: Callable[[int], Iterable[int]],
        made: Callable[[int, int, Sequence[int], Sequence[int]], int],
    ) -> int:
        """Returns an object's number after numbering its parts. `parts`: their fields, by its tag."""
        known, waiting = self._known, [wanted]
        while waiting:
            at = waiting[-1]
            if at not in known:
                tag, fields = self._tag(at), self._fields(at)
                below = [fields[place] for place in parts(tag)]
                if later := [part for part in below if part not in known]:
                    waiting += later
                    continue
                known[at] = made(at, tag, fields, [known[part] for part in below])
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
        name = NOTHING
        for part in dotted.split("."):
            name = self._below(name, part)
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

    def _byte(self, at: int, place: int) -> int:
        """Returns a byte behind an object's fields."""
        return ctypes.c_uint8.from_address(at + POINTER * (1 + len(self._fields(at))) + place).value

    def _held(self, info: int) -> list[int]:
        return self._fields(self._fields(info)[0])

    def _value(self, info: int) -> list[int]:
        """Returns a declaration's name, universe parameters and type."""
        return self._fields(self._held(info)[0])

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
