/- -/ prelude
inductive Nat where | zero