@[init] def x : Nat := 1
theorem target : 2 + 2 = 5 := rfl