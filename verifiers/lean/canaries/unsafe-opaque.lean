unsafe def bad : 2 + 2 = 5 := bad
theorem target : 2 + 2 = 5 := bad