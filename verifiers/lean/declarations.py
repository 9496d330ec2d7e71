"""Checks that a compiled file declares only what Lean itself would have written.

The kernel trusts the data beside each term: how far its bound variables reach, if it has universe parameters, how deep
a universe level is. An import trusts that a declaration has the name it is listed under, and that an inductive type
describes itself correctly. A hand-written file can lie about all of these, and a replay by the same kernel detects none
of it. So all of it is checked here, before Lean sees the file.

Invariants: only the standard library; linear in the file. An unknown form is OleanError; what no Lean writes is
AlteredError. Hashes are only compared with each other: a wrong one makes equal things unequal, never the reverse.
Source: src/Lean/Expr.lean, src/Lean/Level.lean, src/Lean/Declaration.lean, src/Lean/Replay.lean; Lean 4.35.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from verifiers.lean.objects import (
    APP,
    BOUND,
    CONST,
    LITERAL,
    NOTE,
    NOTHING,
    PARAMETER,
    PI,
    PROJECTION,
    SORT,
    AlteredError,
    OleanObjects,
    Slot,
)
from verifiers.lean.olean import CONSTANTS, NAMES, STR, Olean

INDUCTIVE, CONSTRUCTOR, RECURSOR = 5, 6, 7
DEFINITION, OPAQUE, SAFE = 1, 3, 1
UNSAFE = {INDUCTIVE: 8, CONSTRUCTOR: 0, RECURSOR: 8}
"""Bit behind the fields that marks a declaration unsafe: no submission may have such a type, and a replay skips it."""
LEVEL_HASH, LEVEL_PARAMETER, LEVEL_DEPTH = 32, 1 << 1, 8
TERM_FLAGS, TERM_PARAMETER, LOOSE = (1 << 64) - (1 << 40), 1 << 43, 44
"""Checked bits of a term's data; the rest is a hash and an approximate depth."""
MOST_BOUND = (1 << 20) - 1


def examine(olean: Olean, modules: Iterable[str] | None = None, form: tuple[int, bool] | None = None) -> list[int]:
    """Raises AlteredError for a compiled file that Lean would not write. Returns the offsets of terms with a note,
    whose notes are arbitrary data and must be removed.

    `modules` are all permitted imports, `form` is the form of this Lean's files. Raises OleanError for an unknown
    object.
    """
    if form is not None and olean.form != form:
        raise AlteredError("its form differs from this Lean's files")
    if modules is not None and (others := set(olean.imports()).difference(modules)):
        raise AlteredError(f"it imports {min(others)[:200]}")
    objects = OleanObjects(olean)
    _compare_terms(objects, _compare_levels(objects))
    DeclarationNames(objects).compare()
    return [at for at in objects.seen[Slot.TERM] if objects.tag(at) == NOTE]


def _compare_levels(objects: OleanObjects) -> dict[int, bool]:
    """Checks a compiled Lean file's universe levels. Returns, by pointer, if each has parameters. Parts precede the
    whole in the file. The kernel uses the stored depth to compare levels."""
    found, depths = {NOTHING: False}, {NOTHING: 0}
    for at in sorted(objects.seen[Slot.LEVEL]):
        parts = () if objects.tag(at) == PARAMETER else objects.fields(at)
        made = objects.tag(at) == PARAMETER or any(found[one] for one in parts)
        depth = 1 + max(depths[one] for one in parts) if parts else 0
        if objects.behind(at) >> LEVEL_HASH != (LEVEL_PARAMETER if made else 0) | depth << LEVEL_DEPTH:
            raise AlteredError("a universe level with wrong data")
        found[at + objects.base], depths[at + objects.base] = made, depth
    return found


def _compare_terms(objects: OleanObjects, levels: dict[int, bool]) -> None:
    base = objects.base
    found: dict[int, tuple[bool, int]] = {}
    """Offset to: True for universe parameters, and the number of outer binders that its variables reach."""
    for at in sorted(objects.seen[Slot.TERM]):
        fields, tag = objects.fields(at), objects.tag(at)
        parameter, loose = False, 0
        if tag == BOUND:
            loose = objects.number(fields[0]) + 1
        elif tag == SORT:
            parameter = levels[fields[0]]
        elif tag == CONST:
            parameter = any(levels[level] for level in objects.listed(fields[1]))
        elif tag in (NOTE, PROJECTION):
            parameter, loose = found[fields[-1] - base]
        elif tag != LITERAL:
            first = 0 if tag == APP else 1
            parts = [found[one - base] for one in fields[first:]]
            inside = parts[-1][1] if tag == APP else parts[-1][1] - 1
            parameter = any(part for part, _ in parts)
            loose = max(0, inside, *(reach for _, reach in parts[:-1]))
        if loose > MOST_BOUND or objects.behind(at) & TERM_FLAGS != (parameter and TERM_PARAMETER) | loose << LOOSE:
            raise AlteredError("a term with wrong data")
        found[at] = parameter, loose


class DeclarationNames:
    """Declared names of a compiled Lean file as numbers; equal names have equal numbers."""

    def __init__(self, objects: OleanObjects) -> None:
        """Numbers all names of a compiled Lean file. Raises AlteredError if two equal names have different hashes."""
        self._objects = objects
        self._numbers = {NOTHING: 0}
        """Numbers by pointer."""
        self._known: dict[tuple[int, bytes | int], int] = {}
        """Numbers by prefix and last part."""
        hashes: dict[int, int] = {}
        for at in sorted(objects.seen[Slot.NAME]):
            before, last = objects.fields(at)
            said = objects.text(last) if objects.tag(at) == STR else objects.number(last)
            number = self._known.setdefault((self._numbers[before], said), len(self._known) + 1)
            if hashes.setdefault(number, objects.behind(at)) != objects.behind(at):
                raise AlteredError("two equal names with two hashes")
            self._numbers[at + objects.base] = number

    def compare(self) -> None:
        """Raises AlteredError for names or inductive types that contradict the rest of the file.

        That is a declaration listed under another name, a duplicate name, an inductive type that differs from its
        recursor or constructors, or anything that a replay and an import would treat differently.
        """
        objects = self._objects
        names, infos = objects.olean.listed(NAMES), objects.olean.listed(CONSTANTS)
        if len(names) != len(infos):
            raise AlteredError("different numbers of names and declarations")
        known: dict[int, int] = {}
        for name, info in zip(names, infos, strict=True):
            number, at = self._numbers[objects.words[name >> 3]], objects.words[info >> 3] - objects.base
            if number != self._numbers[self._value(at)[0]]:
                raise AlteredError("a declaration listed under a wrong name")
            if number in known:
                raise AlteredError("two declarations of one name")
            known[number] = at
        for number, at in known.items():
            tag = objects.tag(at)
            if tag in UNSAFE and objects.behind(objects.field(at, 0)) >> UNSAFE[tag] & 1:
                raise AlteredError("an inductive type skipped by a replay")
            if tag == INDUCTIVE:
                self._compare_inductive(number, at, known)
        self._check_rest(known)

    def _check_rest(self, known: dict[int, int]) -> None:
        """Raises AlteredError if a checked declaration uses one that a replay skips: the kernel may have created
        something else under that name."""
        left_out = {number for number, at in known.items() if self._is_left_out(at)}
        if not left_out:
            return
        checked = [(at, Slot.DECLARATION) for number, at in known.items() if number not in left_out]
        if self._speaks_of(checked, left_out):
            raise AlteredError("a declaration that uses one skipped by a replay")

    def _is_left_out(self, at: int) -> bool:
        objects = self._objects
        behind = objects.behind(objects.field(at, 0)) & 0xFF
        return behind != SAFE if objects.tag(at) == DEFINITION else objects.tag(at) == OPAQUE and behind != 0

    def _value(self, info: int) -> Sequence[int]:
        """Returns pointers to a declaration's name, universe parameters and type."""
        return self._objects.fields(self._objects.field(self._objects.field(info, 0), 0))

    def _compare_inductive(self, number: int, at: int, known: dict[int, int]) -> None:
        objects, inductive = self._objects, self._objects.field(at, 0)
        _, parameters, indices, block, constructors, *_ = objects.fields(inductive)
        own = self._listed(block)
        recursor = known.get(self._known.get((number, b"rec"), 0))
        if recursor is None or objects.tag(recursor) != RECURSOR:
            raise AlteredError("an inductive type without a recursor")
        _, others, *counts = objects.fields(objects.field(recursor, 0))
        universes, more = self._listed(self._value(at)[1]), self._listed(self._value(recursor)[1])
        if counts[:2] != [parameters, indices] or self._listed(others) != own or universes not in (more, more[1:]):
            raise AlteredError("an inductive type with other parameters or indices than its recursor")
        types = [known.get(one) for one in own]
        if number not in own or any(one is None or objects.tag(one) != INDUCTIVE for one in types):
            raise AlteredError("a block of inductive types with an invalid one")
        first = known[own[0]]
        said = objects.fields(objects.field(first, 0))
        if (said[1], self._listed(said[3]), self._listed(self._value(first)[1])) != (parameters, own, universes):
            raise AlteredError("a block of inductive types that contradict each other")
        made = [known.get(self._numbers[one], at) for one in objects.listed(constructors)]
        if any(objects.tag(one) != CONSTRUCTOR for one in made):
            raise AlteredError("an inductive type with invalid constructors")
        if objects.behind(inductive) & 1:
            return  # it claims to be recursive, which is the safe case
        for info in made:
            term = self._value(info)[2] - objects.base
            while objects.tag(term) == PI:
                if self._speaks_of([(objects.field(term, 1), Slot.TERM)], own):
                    raise AlteredError("a recursive type that claims not to be recursive")
                term = objects.field(term, 2)

    def _listed(self, names: int) -> list[int]:
        return [self._numbers[one] for one in self._objects.listed(names)]

    def _speaks_of(self, found: Iterable[tuple[int, Slot]], names: Container[int]) -> bool:
        objects = self._objects
        constants = (at for at in objects.terms(found) if objects.tag(at) == CONST)
        return any(self._numbers[objects.fields(at)[0]] in names for at in constants)
