run_cmd Lean.logInfo "hello"
theorem target : 2 + 2 = 5 := rfl