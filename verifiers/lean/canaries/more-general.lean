theorem general (n : Nat) : n = n := rfl
theorem target : 2 + 2 = 4 := general 4