theorem target : 2 + 2 = 4 := rfl
theorem x : 1 = 2 := rfl