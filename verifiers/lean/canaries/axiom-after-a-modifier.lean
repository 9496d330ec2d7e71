private axiom helper : False
theorem target : 2 + 2 = 5 := helper.elim