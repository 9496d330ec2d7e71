"""What a claim in the language of SMT-LIB is checked against."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecModel


class SmtSpec(SpecModel):
    """Sorts, assumptions and a goal belong to the spec; a submission supplies terms, never commands.

    What the language means is SMT-LIB 2.6: `div` and `mod` are Euclidean (the remainder is never negative), bit vectors
    wrap around, numbers are unbounded and exact. Of a bit vector divided by zero the remainder is that vector and the
    quotient all ones, but 1 for a negative one with `bvsdiv`. A division by zero of integers or reals has *some* value
    there, any; see `division`.
    """

    kind: Literal["smt"] = "smt"
    claim: str = Field(max_length=200_000)
    """Commands: `set-logic`, `set-info`, `declare-sort` (arity 0), `declare-const`, `declare-fun`, `define-const`,
    `define-fun`, `assert` with `:named`, one `minimize` or `maximize` for an optimum, `check-sat`
    at the end, where it says nothing. Every other is refused."""
    question: Literal["entails", "model", "optimum", "equivalent"] = "entails"
    """`entails`: the assumptions imply the goal. With `holes` the submission defines these, as `(define-fun inv ((x
    Int)) Bool (>= x 0))`; without, there is nothing to supply, and the submission says the one word `entailed`.

    `model`: the submission gives a value to everything that is declared, as `(define-fun x () Int 5)` or `((x 5))`, and
    every assertion is true of them.

    `optimum`: likewise, and nothing better exists for what the claim minimises or maximises (bit vectors: unsigned).

    `equivalent`: the submission is a term over the declared constants that has the value of the definition `reference`
    wherever the assertions hold."""
    goal: str = Field(default="goal", max_length=128)
    """`entails`: the name of the assertion that is the goal: `(assert (! ... :named goal))`. Where no assertion has
    that name, the last one must be written `(not G)`, as scripts that wait for `unsat` have it, also under `let`, and
    `G` is the goal."""
    holes: tuple[str, ...] = Field(default=(), max_length=32)
    """`entails`: declared functions that the submission defines. An assumption that speaks of one has to follow, with
    the submission's definition in it, from those that speak of none."""
    reference: str = Field(default="reference", max_length=128)
    """`equivalent`: the claim's definition, without parameters, that the submission must equal."""
    uses: tuple[str, ...] = Field(default=(), max_length=256)
    """Declared symbols that a submission's terms may use: in holes beside their parameters, otherwise beside the
    inputs. They must be declared before the holes."""
    allowed: tuple[str, ...] | None = None
    """Operators that a submission's terms may use; None: all. `ite`, `let`, quantifiers are operators here."""
    forbidden: tuple[str, ...] = ()
    """Operators that they may not use."""
    max_size: int | None = Field(default=None, ge=1)
    """The most symbols and numbers that a submission's terms may have."""
    copies: Literal["refused", "allowed"] = "refused"
    """`equivalent`: whether the reference itself is an answer."""
    division: Literal["guarded", "total"] = "guarded"
    """`guarded`: no divisor may be zero where the assumptions hold and the quotient matters (`and`, `or`, `=>`, `ite`
    guard from left to right), or the claim is not proved. `total`: as SMT-LIB has it."""
    second: Literal["required", "if_available", "none"] = "if_available"
    """What cvc5 has to say of a proof: agree, not contradict, nothing. A contradiction is nobody's answer."""
    proof: Literal["none", "digest"] = "none"
    """Whether cvc5 also writes its proof, in its calculus CPC, which the checker ethos reads: the evidence has its
    digest and how many steps it has, and the proof itself where it is short."""
    effort: int = Field(default=1_000_000, ge=1_000, le=1_000_000_000)
    """The most steps (Z3's `rlimit`) of each question to a solver: the same on every machine. 1,000,000 take from
    half a second to several."""

    def summary(self) -> str:
        return f"{self.kind}: {self.question}"
