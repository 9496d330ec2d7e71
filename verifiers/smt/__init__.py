"""Claims for Z3 and cvc5: entailments, models, optima, equivalences."""
