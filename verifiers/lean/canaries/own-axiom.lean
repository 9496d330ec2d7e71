axiom helper : 2 + 2 = 5
theorem target : 2 + 2 = 5 := helper