"""Spec of the kind `smt`: a claim in SMT-LIB."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecModel


class SmtSpec(SpecModel):
    """A claim in SMT-LIB. Sorts, assumptions and goal belong to the spec; a submission supplies terms, never commands.

    Semantics are those of SMT-LIB 2.6: `div` and `mod` are Euclidean (the remainder is never negative), bit vectors
    wrap around, numbers are unbounded and exact. A bit vector divided by zero leaves itself as remainder and all ones
    as quotient, but 1 for a negative one with `bvsdiv`. A division by zero of integers or reals has *some*, arbitrary,
    value; see `division`.
    """

    kind: Literal["smt"] = "smt"
    claim: str = Field(max_length=200_000)
    """Commands: `set-logic`, `set-info`, `declare-sort` (arity 0), `declare-const`, `declare-fun`, `define-const`,
    `define-fun`, `assert` with `:named`, one `minimize` or `maximize` for an optimum, and a final `check-sat`, which is
    ignored. All other commands are refused."""
    question: Literal["entails", "model", "optimum", "equivalent"] = "entails"
    """`entails`: the assumptions imply the goal. With `holes` the submission defines these, as `(define-fun inv ((x
    Int)) Bool (>= x 0))`; without, there is nothing to supply, and the submission is the one word `entailed`.

    `model`: the submission gives a value to everything that is declared, as `(define-fun x () Int 5)` or `((x 5))`, and
    every assertion must be true of them.

    `optimum`: likewise, and nothing better exists for what the claim minimises or maximises (bit vectors: unsigned).

    `equivalent`: the submission is a term over the declared constants that has the value of the definition `reference`
    wherever the assertions hold.
    """
    goal: str = Field(default="goal", max_length=128)
    """`entails`: name of the goal's assertion: `(assert (! ... :named goal))`. If no assertion has that name, the last
    one must be `(not G)`, as in scripts that expect `unsat`, possibly under `let`; `G` is then the goal."""
    holes: tuple[str, ...] = Field(default=(), max_length=32)
    """`entails`: declared functions that the submission defines. An assumption that mentions a hole must follow, with
    the submitted definition, from those that mention none."""
    reference: str = Field(default="reference", max_length=128)
    """`equivalent`: the claim's definition, without parameters, that the submission must equal."""
    uses: tuple[str, ...] = Field(default=(), max_length=256)
    """Declared symbols that a submission's terms may use, beside parameters of holes or inputs. They must be declared
    before the holes."""
    allowed: tuple[str, ...] | None = None
    """Operators that a submission's terms may use; None for all. `ite`, `let`, quantifiers count as operators."""
    forbidden: tuple[str, ...] = ()
    """Operators that a submission's terms must not use."""
    max_size: int | None = Field(default=None, ge=1)
    """Maximum number of symbols and numbers in a submission's terms."""
    copies: Literal["refused", "allowed"] = "refused"
    """`equivalent`: if the reference itself is a valid answer."""
    division: Literal["guarded", "total"] = "guarded"
    """`guarded`: no divisor may be zero where the assumptions hold and the quotient matters (`and`, `or`, `=>`, `ite`
    guard from left to right), or the claim is not proved. `total`: as in SMT-LIB."""
    second: Literal["required", "if_available", "none"] = "if_available"
    """Role of cvc5 in a proof: must agree, must not contradict, not asked. Contradictions are infrastructure errors."""
    proof: Literal["none", "digest"] = "none"
    """`digest`: cvc5 also writes its proof, in the calculus CPC, which the checker ethos reads. The evidence has its
    digest and number of steps, and the proof itself if it is short."""
    effort: int = Field(default=1_000_000, ge=1_000, le=1_000_000_000)
    """Maximum number of steps (Z3's `rlimit`) per query: the same on every machine. 1,000,000 take from half a second
    to several."""

    def summary(self) -> str:
        return f"{self.kind}: {self.question}"
