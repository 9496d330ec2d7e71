"""Claims in SMT-LIB for Z3 and cvc5: entailments, models, optima, equivalences.

`verifier.py` is the entry point, `spec.py` the spec, `questions.py` the four questions. `language/` parses SMT-LIB into
our own terms and evaluates them; `z3_solver.py` and `cvc5_solver.py` translate terms for the solvers, and `bench.py`
combines their answers. No text ever reaches a solver's own parser.
"""
