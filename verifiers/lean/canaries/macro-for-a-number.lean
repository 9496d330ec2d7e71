macro_rules | `(5) => `(4)
theorem target : 2 + 2 = 5 := rfl