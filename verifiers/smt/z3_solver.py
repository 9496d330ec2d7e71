"""Z3 through its API: from our terms to an answer. Its parser, its commands and options from text are never used.

Its limit is effort (`rlimit`), not time: so a query has the same answer on every machine, and Z3 starts no timer
thread. Wall clock is limited by the process that started this one. Importing this imports Z3.

Converts models of Z3 to our values. Values that we cannot represent (irrational numbers, lambdas) are shown only.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

import z3
from z3 import z3core

from verifiers.contract.text import escaped
from verifiers.smt.language.errors import OutOfMemory, SolverBroke
from verifiers.smt.language.operators import BIT_OPERATORS
from verifiers.smt.language.terms import Function, Sort, Term
from verifiers.smt.language.values import ArrayValue, Element, FunctionTable, Value
from verifiers.smt.problem import Satisfiable, SolverAnswer, Translation

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


MOST_MEMORY_MIB = 2_048
QUICK = 20_000
"""Steps of the first attempt."""


@lru_cache(maxsize=1)
def _limit_memory(process: int) -> None:
    """Sets Z3's memory limit so that it reports `out of memory` before the kernel kills this process."""
    most = MOST_MEMORY_MIB
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            most = min(most, (soft >> 20) * 6 // 10)
    z3.set_param("memory_max_size", most)


Build = Callable[[Any, list[Any], Term], Any]


def _array(args: list[Any]) -> Any:
    return (z3.Ast * len(args))(*args)


def _n_ary(name: str) -> Build:
    make = getattr(z3core, name)
    return lambda ref, args, _: make(ref, len(args), _array(args))


def _fixed(name: str) -> Build:
    make = getattr(z3core, name)
    return lambda ref, args, _: make(ref, *args)


def _indexed(name: str) -> Build:
    make = getattr(z3core, name)
    return lambda ref, args, term: make(ref, *term.payload, *args)


N_ARY = "and=and or=or distinct=distinct +=add *=mul -=sub"
FIXED = (
    "not=not xor=xor ite=ite negate=unary_minus /=div div=div mod=mod abs=abs <=lt >=gt to_real=int2real "
    "to_int=real2int is_int=is_int concat=concat select=select store=store"
)
INDEXED = (
    "extract=extract zero_extend=zero_ext sign_extend=sign_ext rotate_left=rotate_left rotate_right=rotate_right "
    "repeat=repeat int_to_bv=int2bv"
)


def _pairs(text: str) -> list[tuple[str, str]]:
    """Splits a table of operator names into pairs of our name and Z3's: `<=lt` is `<`, `lt`."""
    return [(op, name) for op, _, name in (each.rpartition("=") for each in text.split())]


BUILD: dict[str, Build] = {
    **{op: _n_ary(f"Z3_mk_{name}") for op, name in _pairs(N_ARY)},
    **{op: _fixed(f"Z3_mk_{name}") for op, name in _pairs(FIXED)},
    **{op: _indexed(f"Z3_mk_{name}") for op, name in _pairs(INDEXED)},
    **{op: _fixed(f"Z3_mk_{op}") for op in BIT_OPERATORS if op != "bvcomp"},
    "=": _fixed("Z3_mk_eq"),
    "<=": _fixed("Z3_mk_le"),
    ">=": _fixed("Z3_mk_ge"),
    "ubv_to_int": lambda ref, args, _: z3core.Z3_mk_bv2int(ref, args[0], False),
    "sbv_to_int": lambda ref, args, _: z3core.Z3_mk_bv2int(ref, args[0], True),
}


class Z3(Translation):
    """Z3 with its own context, without state from earlier queries. Raises OutOfMemory and SolverBroke."""

    name = "z3"

    def __init__(self, effort: int) -> None:
        super().__init__()
        _limit_memory(os.getpid())
        self._context = z3.Context()
        self._effort = effort

    def check(self, assertions: Sequence[Term], asked: Sequence[Function] = ()) -> SolverAnswer:
        """Asks Z3 if all assertions can hold together: yes, no or unknown. A yes comes with values of the `asked`
        symbols."""
        with _failures():
            solver, result = self._solved([self._term(each) for each in assertions])
            return self._answer(solver, result, asked)

    def best(
        self, assertions: Sequence[Term], objective: Term, *, least: bool, asked: Sequence[Function]
    ) -> SolverAnswer:
        """Asks Z3 to minimize (`least`) or maximize an objective under assertions. Returns values of the `asked`
        symbols, if it finds any."""
        with _failures():
            solver = self._limited(z3.Optimize, self._effort, [self._term(each) for each in assertions])
            (solver.minimize if least else solver.maximize)(self._term(objective))
            return self._answer(solver, solver.check(), asked)

    def core(self, labelled: Mapping[str, Term]) -> list[str] | None:
        """Returns the names of assertions that cannot hold together, as few as Z3 finds. Returns None if Z3 does not
        prove that all of them contradict each other."""
        with _failures():
            marks = {z3.Bool(f".a{place}", self._context): name for place, name in enumerate(labelled)}
            pairs = zip(marks, labelled.values(), strict=True)
            implied = [z3.Implies(mark, self._term(term)) for mark, term in pairs]
            solver = self._limited(z3.SimpleSolver, self._effort, implied)
            solver.set("core.minimize", True)
            if solver.check(*marks) != z3.unsat:
                return None
            names = {each.decl().name() for each in solver.unsat_core()}
            return [name for mark, name in marks.items() if mark.decl().name() in names]

    def simplified(self, term: Term) -> bool | None:
        """Returns the truth value of a term if Z3's simplifier alone determines it; else None."""
        with _failures():
            made = z3.simplify(self._term(term))
        return True if z3.is_true(made) else False if z3.is_false(made) else None

    def _solved(self, built: Sequence[Any]) -> tuple[Any, Any]:
        """Runs Z3 on assertions. Returns the solver used and its result. The plain solver is tried first: on small
        claims, starting all tactics takes longer than solving."""
        quick = self._limited(z3.SimpleSolver, min(QUICK, self._effort), built)
        result = quick.check()
        if result != z3.unknown or self._effort <= QUICK:
            return quick, result
        solver = self._limited(z3.Solver, self._effort, built)
        return solver, solver.check()

    def _limited(self, kind: Callable[..., Any], effort: int, built: Sequence[Any]) -> Any:
        solver = kind(ctx=self._context)
        solver.set("rlimit", effort)
        solver.add(*built)
        return solver

    def _answer(self, solver: Any, result: Any, asked: Sequence[Function]) -> SolverAnswer:
        if result == z3.unsat:
            return SolverAnswer(Satisfiable.NO)
        if result != z3.sat:
            return _unknown(solver.reason_unknown())
        reader = ModelReader(solver.model(), self._sort)
        found = reader.read({function: self._function(function) for function in asked})
        return SolverAnswer(Satisfiable.YES, interpretation=found, shown=reader.shown)

    def _new_term(self, term: Term) -> Any:
        context = self._context
        ref = context.ref()
        args = [self._terms[each] for each in term.args]
        match term.op:
            case "value":
                return self._literal(term)
            case "apply":
                made = z3core.Z3_mk_app(
                    ref, self._function(term.payload).ast, len(args), _array([each.ast for each in args])
                )
            case "variable":
                return z3.Const(f".v{term.payload[1]}", self._sort(term.sort))
            case "forall" | "exists":
                bound = [self._term(variable) for variable in term.payload]  # which need not occur in the body
                return (z3.ForAll if term.op == "forall" else z3.Exists)(bound, args[0])
            case "constant_array":
                index = self._sort(term.sort.parameters[0])
                made = z3core.Z3_mk_const_array(ref, index.ast, args[0].ast)
            case "bvcomp":
                one, zero = z3.BitVecVal(1, 1, context), z3.BitVecVal(0, 1, context)
                return z3.If(args[0] == args[1], one, zero)
            case op:
                made = BUILD[op](ref, [each.ast for each in args], term)
        return z3.z3._to_expr_ref(made, context)

    def _literal(self, term: Term) -> Any:
        if term.sort.name == "Bool":
            return z3.BoolVal(term.payload, self._context)
        text = f"{term.payload.numerator}/{term.payload.denominator}" if term.sort.name == "Real" else str(term.payload)
        made = z3core.Z3_mk_numeral(self._context.ref(), text, self._sort(term.sort).ast)
        return z3.z3._to_expr_ref(made, self._context)

    def _new_sort(self, sort: Sort) -> Any:
        if sort.declared:
            return z3.DeclareSort(sort.name, self._context)
        match sort.name:
            case "Bool":
                return z3.BoolSort(self._context)
            case "Int":
                return z3.IntSort(self._context)
            case "Real":
                return z3.RealSort(self._context)
            case "BitVec":
                return z3.BitVecSort(sort.width, self._context)
            case _:
                return z3.ArraySort(*map(self._sort, sort.parameters))

    def _new_function(self, function: Function) -> Any:
        sorts = [self._sort(each) for each in (*function.domain, function.range)]
        return z3.Function(function.name, *sorts) if function.domain else z3.Const(function.name, sorts[0]).decl()


def _unknown(why: str) -> SolverAnswer:
    if "memory" in why:
        raise OutOfMemory(why)
    exhausted = any(cause in why for cause in ("resource", "canceled", "timeout", "max."))
    return SolverAnswer(Satisfiable.UNKNOWN, why=escaped(why), exhausted=exhausted)


@contextmanager
def _failures() -> Iterator[None]:
    """Converts exceptions of Z3 raised inside this context to OutOfMemory or SolverBroke."""
    try:
        yield
    except z3.Z3Exception as error:
        message = str(error.value.decode() if isinstance(error.value, bytes) else error.value)
        raise (OutOfMemory(message) if "memory" in message else SolverBroke(f"Z3 failed: {escaped(message)}")) from None
