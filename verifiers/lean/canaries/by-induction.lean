theorem zero_add' (n : Nat) : 0 + n = n := by
  induction n with
  | zero => rfl
  | succ n ih => exact congrArg Nat.succ ih
theorem target (n : Nat) : n + 0 = n ∧ 0 + n = n := ⟨rfl, zero_add' n⟩