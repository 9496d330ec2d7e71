"""cvc5 through its API, as a second opinion: `sat`, `unsat` or `unknown`; its models are not used.

Like Z3 it is limited by effort, never by time, and sees no text. Importing this imports cvc5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import cvc5
from cvc5 import Kind

from verifiers.contract.text import escaped
from verifiers.smt.language.errors import OutOfMemory
from verifiers.smt.language.operators import BIT_OPERATORS
from verifiers.smt.language.terms import QUANTIFIERS, Function, Sort, Term, walk
from verifiers.smt.problem import Satisfiable, SolverAnswer, Translation

EFFORT_SHARE = 20
"""Z3 effort units per cvc5 effort unit, approximately."""


def _of_bits(names: Iterable[str]) -> dict[str, Kind]:
    return {name: Kind[f"BITVECTOR_{name.removeprefix('bv').upper()}"] for name in names}


KIND: dict[str, Kind] = {
    "not": Kind.NOT, "and": Kind.AND, "or": Kind.OR, "xor": Kind.XOR, "=": Kind.EQUAL, "distinct": Kind.DISTINCT,
    "ite": Kind.ITE, "+": Kind.ADD, "*": Kind.MULT, "-": Kind.SUB, "negate": Kind.NEG, "/": Kind.DIVISION,
    "div": Kind.INTS_DIVISION, "mod": Kind.INTS_MODULUS, "abs": Kind.ABS, "<": Kind.LT, "<=": Kind.LEQ, ">": Kind.GT,
    ">=": Kind.GEQ, "to_real": Kind.TO_REAL, "to_int": Kind.TO_INTEGER, "is_int": Kind.IS_INTEGER,
    "select": Kind.SELECT, "store": Kind.STORE, "forall": Kind.FORALL, "exists": Kind.EXISTS,
    "bvmul": Kind.BITVECTOR_MULT,
    **_of_bits(["concat", "ubv_to_int", "sbv_to_int", *(op for op in BIT_OPERATORS if op != "bvmul")]),
}  # fmt: skip
INDEXED: dict[str, Kind] = {
    **_of_bits(["extract", "zero_extend", "sign_extend", "rotate_left", "rotate_right", "repeat"]),
    "int_to_bv": Kind.INT_TO_BITVECTOR,
}


class Cvc5(Translation):
    """cvc5 with one term manager. Failures count as `unknown`. Raises OutOfMemory."""

    name = "cvc5"

    def __init__(self, effort: int) -> None:
        super().__init__()
        self._manager = cvc5.TermManager()
        self._effort = max(1_000, effort // EFFORT_SHARE)

    def check(self, assertions: Sequence[Term]) -> SolverAnswer:
        """Asks cvc5 if all assertions can hold together; the answer is yes, no or unknown. Raises OutOfMemory."""
        if _may_not_end(assertions):
            return SolverAnswer(Satisfiable.UNKNOWN, why="integer parts of nonlinear terms")
        try:
            solver = cvc5.Solver(self._manager)
            solver.setOption("rlimit", str(self._effort))
            logic = _logic(assertions)
            if logic:
                solver.setLogic(logic)
            for each in assertions:
                solver.assertFormula(self._term(each))
            result = solver.checkSat()
        except RuntimeError as error:
            return _failed(str(error))
        if result.isUnsat():
            return SolverAnswer(Satisfiable.NO)
        if result.isSat():
            return SolverAnswer(Satisfiable.YES)
        why = str(result.getUnknownExplanation()).rpartition(".")[2]
        return SolverAnswer(Satisfiable.UNKNOWN, why=why, exhausted="OUT" in why)

    def proof(self, assertions: Sequence[Term]) -> str | None:
        """Returns cvc5's proof, in the calculus CPC, that the assertions are unsatisfiable; None if cvc5 finds none."""
        try:
            solver = cvc5.Solver(self._manager)
            solver.setOption("rlimit", str(self._effort))
            solver.setOption("produce-proofs", "true")
            for each in assertions:
                solver.assertFormula(self._term(each))
            if not solver.checkSat().isUnsat():
                return None
            text = solver.proofToString(solver.getProof()[0], cvc5.ProofFormat.CPC)
        except RuntimeError as error:
            _failed(str(error))
            return None
        return text.decode() if isinstance(text, bytes) else str(text)

    def _new_term(self, term: Term) -> Any:
        manager = self._manager
        args = [self._terms[each] for each in term.args]
        match term.op:
            case "value":
                return self._literal(term)
            case "apply":
                head = self._function(term.payload)
                return manager.mkTerm(Kind.APPLY_UF, head, *args) if args else head
            case "variable":
                return manager.mkVar(self._sort(term.sort), f".v{term.payload[1]}")
            case "forall" | "exists":
                bound = manager.mkTerm(Kind.VARIABLE_LIST, *[self._term(variable) for variable in term.payload])
                return manager.mkTerm(KIND[term.op], bound, args[0])
            case "constant_array":
                return manager.mkConstArray(self._sort(term.sort), args[0])
            case "abs" if term.sort.name == "Real":
                zero = manager.mkReal(0)
                negative = manager.mkTerm(Kind.LT, args[0], zero)
                return manager.mkTerm(Kind.ITE, negative, manager.mkTerm(Kind.NEG, args[0]), args[0])
            case op if op in INDEXED:
                return manager.mkTerm(manager.mkOp(INDEXED[op], *term.payload), *args)
            case op:
                return manager.mkTerm(KIND[op], *args)

    def _literal(self, term: Term) -> Any:
        value = term.payload
        match term.sort.name:
            case "Bool":
                return self._manager.mkBoolean(value)
            case "Int":
                return self._manager.mkInteger(str(value))
            case "Real":
                return self._manager.mkReal(f"{value.numerator}/{value.denominator}")
            case _:
                return self._manager.mkBitVector(term.sort.width, str(value), 10)

    def _new_sort(self, sort: Sort) -> Any:
        manager = self._manager
        if sort.declared:
            return manager.mkUninterpretedSort(sort.name)
        match sort.name:
            case "Bool":
                return manager.getBooleanSort()
            case "Int":
                return manager.getIntegerSort()
            case "Real":
                return manager.getRealSort()
            case "BitVec":
                return manager.mkBitVectorSort(sort.width)
            case _:
                return manager.mkArraySort(*map(self._sort, sort.parameters))

    def _new_function(self, function: Function) -> Any:
        made = self._sort(function.range)
        if function.domain:
            made = self._manager.mkFunctionSort([self._sort(each) for each in function.domain], made)
        return self._manager.mkConst(made, function.name)


def _logic(assertions: Sequence[Term]) -> str:
    """Returns the name of the SMT-LIB logic for assertions of one theory without quantifiers; empty for others."""
    sorts: set[str] = set()
    linear = True
    for term in walk(assertions):
        if term.op in QUANTIFIERS or term.sort.declared or (term.op == "apply" and term.args):
            return ""
        sorts.add(term.sort.name)
        linear = linear and not _nonlinear(term)
    match sorted(sorts - {"Bool"}):
        case ["BitVec"]:
            return "QF_BV"
        case ["Int"]:
            return "QF_LIA" if linear else "QF_NIA"
        case ["Real"]:
            return "QF_LRA" if linear else "QF_NRA"
    return ""


def _nonlinear(term: Term) -> bool:
    if term.op == "*":
        return sum(each.op != "value" for each in term.args) > 1
    return term.op in ("/", "div", "mod") and not (term.args[1].op == "value" and term.args[1].payload)


def _may_not_end(assertions: Sequence[Term]) -> bool:
    """True if assertions round reals and also have nonlinear terms: there cvc5 1.4 may loop, despite its limits."""
    found = list(walk(assertions))
    return any(term.op in ("is_int", "to_int") for term in found) and any(map(_nonlinear, found))


def _failed(message: str) -> SolverAnswer:
    """Converts a solver's error message to the answer `unknown`. Raises OutOfMemory if the message is about memory."""
    if "memory" in message or "bad_alloc" in message:
        raise OutOfMemory(escaped(message))
    return SolverAnswer(Satisfiable.UNKNOWN, why=escaped(message))
