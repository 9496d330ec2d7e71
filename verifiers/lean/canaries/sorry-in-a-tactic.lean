theorem target : 2 + 2 = 5 := by
  sorry