theorem x : 2 + 2 = 5 := by run_tac return
theorem target : 2 + 2 = 5 := rfl