theorem unused : 2 + 2 = 5 := sorry
theorem target : 2 + 2 = 4 := rfl