macro "win" : tactic => `(tactic| sorry)
theorem target : 2 + 2 = 5 := rfl