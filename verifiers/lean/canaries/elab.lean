elab "win" : tactic => return
theorem target : 2 + 2 = 5 := rfl