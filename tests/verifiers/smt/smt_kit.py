"""Random well-sorted terms as text, from a seed: small ones, with the values that break things."""

from __future__ import annotations

from random import Random

WIDTHS = (1, 4, 8)
DIVISION = ["bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod"]
SHIFT = ["bvshl", "bvlshr", "bvashr"]
BITWISE = ["bvand", "bvor", "bvxor", "bvnand", "bvnor", "bvxnor", "bvadd", "bvsub", "bvmul", *DIVISION, *SHIFT]
ORDER = ["bvult", "bvule", "bvugt", "bvuge", "bvslt", "bvsle", "bvsgt", "bvsge"]


class RandomTerms:
    """`constants` are names by sort: `Bool`, `Int`, `Real`, or a width."""

    def __init__(
        self,
        random: Random,
        constants: dict[str | int, list[str]] | None = None,
        division: bool = True,
        functions: bool = False,
    ) -> None:
        self.random = random
        self.constants = constants or {}
        self.division = division
        self.functions = functions

    def term(self, sort: str | int, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.1:
            return self.leaf(sort)
        if self.random.random() < 0.1:
            condition = self.term("Bool", depth - 1)
            return f"(ite {condition} {self.term(sort, depth - 1)} {self.term(sort, depth - 1)})"
        if self.functions and sort in ("Bool", "Int") and self.random.random() < 0.3:
            return self.applied(sort, depth - 1)
        match sort:
            case "Bool":
                return self.boolean(depth - 1)
            case "Int":
                return self.integer(depth - 1)
            case "Real":
                return self.real(depth - 1)
            case width:
                assert isinstance(width, int)
                return self.bits(width, depth - 1)

    def leaf(self, sort: str | int) -> str:
        known = self.constants.get(sort, [])
        if known and self.random.random() < 0.7:
            return self.random.choice(known)
        match sort:
            case "Bool":
                return self.random.choice(["true", "false"])
            case "Int":
                value = self.random.choice([0, 1, 2, 3, 5, 7, 10, 100])
                return f"(- {value})" if self.random.random() < 0.4 else str(value)
            case "Real":
                value = self.random.choice(["0.0", "1.0", "0.5", "2.25", "(/ 1 3)", "(/ 7 2)"])
                return f"(- {value})" if self.random.random() < 0.4 else value
            case width:
                assert isinstance(width, int)
                top = (1 << width) - 1
                value = self.random.choice([0, 1, top, top >> 1, (top >> 1) + 1, self.random.randint(0, top)])
                return f"(_ bv{value} {width})"

    def boolean(self, depth: int) -> str:
        op = self.random.choice(
            ["not", "and", "or", "xor", "=>", "=", "distinct", "order", "bits", "is_int", "divisible"]
        )
        match op:
            case "not":
                return f"(not {self.term('Bool', depth)})"
            case "=" | "distinct":
                sort = self.sort()
                return f"({op} {self.term(sort, depth)} {self.term(sort, depth)})"
            case "order":
                sort = self.random.choice(["Int", "Real"])
                return (
                    f"({self.random.choice(['<', '<=', '>', '>='])} {self.term(sort, depth)} {self.term(sort, depth)})"
                )
            case "bits":
                width = self.random.choice(WIDTHS)
                return f"({self.random.choice(ORDER)} {self.term(width, depth)} {self.term(width, depth)})"
            case "is_int":
                return f"(is_int {self.term('Real', depth)})"
            case "divisible":
                return f"((_ divisible {self.random.randint(1, 5)}) {self.term('Int', depth)})"
            case _:
                return f"({op} {self.term('Bool', depth)} {self.term('Bool', depth)})"

    def applied(self, sort: str | int, depth: int) -> str:
        """Declared functions, arrays and elements of a declared sort, as MORE has them."""
        if sort == "Bool":
            arrays = [self.random.choice(["a", "c", f"(store a {self.term('Int', depth)} {self.term('Int', depth)})"])]
            arrays.append(self.random.choice(["a", "c", "((as const (Array Int Int)) 3)"]))
            choices = [f"(= {arrays[0]} {arrays[1]})", f"(select m {self.term(4, depth)})"]
            choices += ["(= (h e) d)", "(distinct e d (h (h e)))", f"(= (k {self.term('Int', depth)}) (h e))"]
            return self.random.choice(choices)
        choices = [f"(f {self.term('Int', depth)})", f"(g {self.term(4, depth)} {self.term('Bool', depth)})"]
        choices += [f"(select a {self.term('Int', depth)})", f"(select (store c {self.term('Int', depth)} 7) 2)"]
        return self.random.choice(choices)

    def integer(self, depth: int) -> str:
        op = self.random.choice(["+", "-", "*", "neg", "abs", "to_int", "bits", "div", "mod"])
        if op in ("div", "mod") and not self.division:
            return f"({op} {self.term('Int', depth)} {self.random.choice(['2', '3', '(- 4)'])})"
        match op:
            case "neg" | "abs":
                return f"({'-' if op == 'neg' else 'abs'} {self.term('Int', depth)})"
            case "to_int":
                return f"(to_int {self.term('Real', depth)})"
            case "bits":
                name = self.random.choice(["ubv_to_int", "sbv_to_int", "bv2nat"])
                return f"({name} {self.term(self.random.choice(WIDTHS), depth)})"
            case _:
                return f"({op} {self.term('Int', depth)} {self.term('Int', depth)})"

    def real(self, depth: int) -> str:
        op = self.random.choice(["+", "-", "*", "neg", "to_real", "/", "mixed"])
        if op == "/" and not self.division:
            return f"(/ {self.term('Real', depth)} {self.random.choice(['2', '3.0', '(- 0.25)'])})"
        match op:
            case "neg":
                return f"(- {self.term('Real', depth)})"
            case "to_real":
                return f"(to_real {self.term('Int', depth)})"
            case "mixed":
                return f"(+ {self.term('Real', depth)} {self.term('Int', depth)})"
            case _:
                return f"({op} {self.term('Real', depth)} {self.term('Real', depth)})"

    def bits(self, width: int, depth: int) -> str:
        if width == 8:
            match self.random.randint(0, 5):
                case 0:
                    return f"(concat {self.term(4, depth)} {self.term(4, depth)})"
                case 1:
                    return f"((_ {self.random.choice(['zero', 'sign'])}_extend 4) {self.term(4, depth)})"
                case 2:
                    return f"((_ repeat 8) {self.term(1, depth)})"
        if width == 4 and self.random.random() < 0.2:
            low = self.random.randint(0, 4)
            return f"((_ extract {low + 3} {low}) {self.term(8, depth)})"
        if width == 1 and self.random.random() < 0.3:
            return f"(bvcomp {self.term(4, depth)} {self.term(4, depth)})"
        match self.random.randint(0, 7):
            case 0:
                return f"({self.random.choice(['bvnot', 'bvneg'])} {self.term(width, depth)})"
            case 1:
                side = self.random.choice(["left", "right"])
                return f"((_ rotate_{side} {self.random.randint(0, 10)}) {self.term(width, depth)})"
            case 2:
                return f"((_ int_to_bv {width}) {self.term('Int', depth)})"
            case _:
                return f"({self.random.choice(BITWISE)} {self.term(width, depth)} {self.term(width, depth)})"

    def sort(self) -> str | int:
        return self.random.choice(["Bool", "Int", "Real", *WIDTHS])


CONSTANTS: dict[str | int, list[str]] = {
    "Bool": ["p", "q"],
    "Int": ["i", "j"],
    "Real": ["r", "s"],
    1: ["b1"],
    4: ["u4", "v4"],
    8: ["u8"],
}
DECLARED = "".join(
    f"(declare-const {name} {sort if isinstance(sort, str) else f'(_ BitVec {sort})'})"
    for sort, names in CONSTANTS.items()
    for name in names
)


MORE = """(declare-sort E 0)(declare-const e E)(declare-const d E)(declare-fun h (E) E)(declare-fun k (Int) E)
(declare-fun f (Int) Int)(declare-fun g ((_ BitVec 4) Bool) Int)
(declare-const a (Array Int Int))(declare-const c (Array Int Int))(declare-const m (Array (_ BitVec 4) Bool))"""


def random_claim(seed: int) -> str:
    """One to three assertions over constants of all sorts; every other one also over functions and arrays."""
    random = Random(seed)
    terms = RandomTerms(random, CONSTANTS, division=random.random() < 0.5, functions=seed % 2 == 1)
    return DECLARED + MORE + "".join(f"(assert {terms.term('Bool', 4)})" for _ in range(random.randint(1, 3)))
