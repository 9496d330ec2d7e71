"""cvc5 by its API: the second opinion. It says `sat`, `unsat` or `unknown`; its models are not asked for.

Like Z3 it is limited by effort, never by a clock, and sees no text. Importing this imports cvc5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvc5
from cvc5 import Kind

from verifiers.answers.reading import clipped
from verifiers.smt.answers import Answer, Satisfiable
from verifiers.smt.errors import OutOfMemory
from verifiers.smt.terms import Function, Sort, Term, walk

EFFORT_SHARE = 20
"""Its unit of effort is larger than Z3's: about so many times."""

KIND: dict[str, Kind] = {
    "not": Kind.NOT, "and": Kind.AND, "or": Kind.OR, "xor": Kind.XOR, "=": Kind.EQUAL, "distinct": Kind.DISTINCT,
    "ite": Kind.ITE, "+": Kind.ADD, "*": Kind.MULT, "-": Kind.SUB, "negate": Kind.NEG, "/": Kind.DIVISION,
    "div": Kind.INTS_DIVISION, "mod": Kind.INTS_MODULUS, "abs": Kind.ABS, "<": Kind.LT, "<=": Kind.LEQ, ">": Kind.GT,
    ">=": Kind.GEQ, "to_real": Kind.TO_REAL, "to_int": Kind.TO_INTEGER, "is_int": Kind.IS_INTEGER,
    "concat": Kind.BITVECTOR_CONCAT, "bvnot": Kind.BITVECTOR_NOT, "bvneg": Kind.BITVECTOR_NEG,
    "bvand": Kind.BITVECTOR_AND, "bvor": Kind.BITVECTOR_OR, "bvxor": Kind.BITVECTOR_XOR,
    "bvnand": Kind.BITVECTOR_NAND, "bvnor": Kind.BITVECTOR_NOR, "bvxnor": Kind.BITVECTOR_XNOR,
    "bvadd": Kind.BITVECTOR_ADD, "bvsub": Kind.BITVECTOR_SUB, "bvmul": Kind.BITVECTOR_MULT,
    "bvudiv": Kind.BITVECTOR_UDIV, "bvurem": Kind.BITVECTOR_UREM, "bvsdiv": Kind.BITVECTOR_SDIV,
    "bvsrem": Kind.BITVECTOR_SREM, "bvsmod": Kind.BITVECTOR_SMOD, "bvshl": Kind.BITVECTOR_SHL,
    "bvlshr": Kind.BITVECTOR_LSHR, "bvashr": Kind.BITVECTOR_ASHR, "bvult": Kind.BITVECTOR_ULT,
    "bvule": Kind.BITVECTOR_ULE, "bvugt": Kind.BITVECTOR_UGT, "bvuge": Kind.BITVECTOR_UGE,
    "bvslt": Kind.BITVECTOR_SLT, "bvsle": Kind.BITVECTOR_SLE, "bvsgt": Kind.BITVECTOR_SGT,
    "bvsge": Kind.BITVECTOR_SGE, "bvcomp": Kind.BITVECTOR_COMP, "select": Kind.SELECT, "store": Kind.STORE,
    "ubv_to_int": Kind.BITVECTOR_UBV_TO_INT, "sbv_to_int": Kind.BITVECTOR_SBV_TO_INT,
    "forall": Kind.FORALL, "exists": Kind.EXISTS,
}  # fmt: skip
INDEXED: dict[str, Kind] = {
    "extract": Kind.BITVECTOR_EXTRACT,
    "zero_extend": Kind.BITVECTOR_ZERO_EXTEND,
    "sign_extend": Kind.BITVECTOR_SIGN_EXTEND,
    "rotate_left": Kind.BITVECTOR_ROTATE_LEFT,
    "rotate_right": Kind.BITVECTOR_ROTATE_RIGHT,
    "repeat": Kind.BITVECTOR_REPEAT,
    "int_to_bv": Kind.INT_TO_BITVECTOR,
}


class Cvc5:
    """Raises OutOfMemory. What it cannot do it does not know."""

    name = "cvc5"

    def __init__(self, effort: int) -> None:
        self._manager = cvc5.TermManager()
        self._effort = max(1_000, effort // EFFORT_SHARE)
        self._sorts: dict[Sort, Any] = {}
        self._functions: dict[Function, Any] = {}
        self._terms: dict[Term, Any] = {}

    def check(self, assertions: Sequence[Term]) -> Answer:
        """Whether all of them can hold at once."""
        if _may_not_end(assertions):
            return Answer(Satisfiable.UNKNOWN, why="whole parts of nonlinear terms")
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
            return Answer(Satisfiable.NO)
        if result.isSat():
            return Answer(Satisfiable.YES)
        why = str(result.getUnknownExplanation()).rpartition(".")[2]
        return Answer(Satisfiable.UNKNOWN, why=why, exhausted="OUT" in why)

    def proof(self, assertions: Sequence[Term]) -> str | None:
        """That all of them cannot hold at once, in the calculus CPC; None where it finds none."""
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

    def _term(self, root: Term) -> Any:
        for term in walk([root], self._terms):
            self._terms[term] = self._built(term)
        return self._terms[root]

    def _built(self, term: Term) -> Any:
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

    def _sort(self, sort: Sort) -> Any:
        found = self._sorts.get(sort)
        if found is None:
            found = self._new_sort(sort)
            self._sorts[sort] = found
        return found

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

    def _function(self, function: Function) -> Any:
        found = self._functions.get(function)
        if found is None:
            made = self._sort(function.range)
            if function.domain:
                made = self._manager.mkFunctionSort([self._sort(each) for each in function.domain], made)
            found = self._manager.mkConst(made, function.name)
            self._functions[function] = found
        return found


def _logic(assertions: Sequence[Term]) -> str:
    """The logic of claims that are all of one theory, for which cvc5 knows more; empty for any other."""
    sorts: set[str] = set()
    linear = True
    for term in walk(assertions):
        if term.op in ("forall", "exists") or term.sort.declared or (term.op == "apply" and term.args):
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
    """Whether reals are rounded beside products of symbols: there cvc5 1.4 has loops that no limit of its own ends."""
    found = list(walk(assertions))
    return any(term.op in ("is_int", "to_int") for term in found) and any(map(_nonlinear, found))


def _failed(said: str) -> Answer:
    """A second opinion that breaks is none. Raises OutOfMemory."""
    if "memory" in said or "bad_alloc" in said:
        raise OutOfMemory(clipped(said))
    return Answer(Satisfiable.UNKNOWN, why=clipped(said))
