"""Converts models of Z3 to our values. Values that we cannot represent (irrational numbers, lambdas) are shown only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import z3
from z3 import z3core

from verifiers.contract.text import escaped
from verifiers.smt.language.terms import Function, Sort
from verifiers.smt.language.values import ArrayValue, Element, FunctionTable, Value

MAX_ENTRIES = 1_000


class NoValue(Exception):
    """A solver's value cannot be represented as one of ours."""


class ModelReader:
    def __init__(self, model: Any, sort: Callable[[Sort], Any]) -> None:
        self._model = model
        self._sort = sort
        self.shown: dict[str, str] = {}

    def read(self, declared: Mapping[Function, Any]) -> dict[Function, Value | FunctionTable]:
        found: dict[Function, Value | FunctionTable] = {}
        for function, known in declared.items():
            try:
                found[function] = self._table(function, known) if function.domain else self._constant(function, known)
            except NoValue:
                continue
        return found

    def _constant(self, function: Function, known: Any) -> Value:
        value = self._model.eval(known(), model_completion=True)
        self.shown[function.name] = escaped(value.sexpr())
        return self._value(value, function.range)

    def _table(self, function: Function, known: Any) -> FunctionTable:
        if not z3core.Z3_model_has_interp(self._model.ctx.ref(), self._model.model, known.ast):
            example = self._model.eval(known(*[self._any(sort) for sort in function.domain]), model_completion=True)
            return FunctionTable({}, self._value(example, function.range))
        meaning = self._model[known]
        self.shown[function.name] = escaped(str(meaning))
        return self._entries(meaning, function.domain, function.range)

    def _any(self, sort: Sort) -> Any:
        return self._model.eval(z3.FreshConst(self._sort(sort), ".any"), model_completion=True)

    def _entries(self, meaning: Any, domain: tuple[Sort, ...], made: Sort) -> FunctionTable:
        if not isinstance(meaning, z3.FuncInterp) or meaning.num_entries() > MAX_ENTRIES:
            raise NoValue
        entries = {}
        for place in range(meaning.num_entries()):
            entry = meaning.entry(place)
            key = tuple(self._value(entry.arg_value(at), sort) for at, sort in enumerate(domain))
            entries[key] = self._value(entry.value(), made)
        return FunctionTable(entries, self._value(meaning.else_value(), made))

    def _value(self, value: Any, sort: Sort) -> Value:
        if value is None:
            raise NoValue
        if sort.declared:
            if value.num_args() or z3.is_var(value):
                raise NoValue
            return Element(str(value))
        match sort.name:
            case "Bool" if z3.is_true(value) or z3.is_false(value):
                return bool(z3.is_true(value))
            case "Int" if z3.is_int_value(value):
                return int(value.as_long())
            case "Real" if z3.is_rational_value(value):
                return Fraction(value.numerator_as_long(), value.denominator_as_long())
            case "BitVec" if z3.is_bv_value(value):
                return int(value.as_long())
            case "Array":
                return self._array(value, sort)
        raise NoValue

    def _array(self, value: Any, sort: Sort) -> ArrayValue:
        index, element = sort.parameters
        stores: list[tuple[Value, Value]] = []
        while z3.is_store(value):
            if len(stores) >= MAX_ENTRIES:
                raise NoValue
            stores.append((self._value(value.arg(1), index), self._value(value.arg(2), element)))
            value = value.arg(0)
        if z3.is_const_array(value):
            made = ArrayValue(self._value(value.arg(0), element))
        elif z3.is_as_array(value):
            table = self._entries(self._model[z3.get_as_array_func(value)], (index,), element)
            made = ArrayValue(table.default)
            for (place,), held in table.entries.items():
                made = made.with_entry(place, held)
        else:
            raise NoValue
        for place, held in reversed(stores):
            made = made.with_entry(place, held)
        return made
