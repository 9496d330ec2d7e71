prelude
set_option genCtorIdx false
inductive Nat where | zero | succ (n : Nat)
def Nat.add (a : Nat) (_ : Nat) : Nat := a