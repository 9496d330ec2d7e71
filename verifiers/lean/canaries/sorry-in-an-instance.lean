instance : Decidable (2 + 2 = 5) := sorry
theorem target : 2 + 2 = 5 := by decide