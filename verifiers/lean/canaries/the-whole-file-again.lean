/-- Twice a number. -/
def twice (n : Nat) : Nat := n + n
variable (n : Nat)
theorem target : twice n = n + n := by rfl