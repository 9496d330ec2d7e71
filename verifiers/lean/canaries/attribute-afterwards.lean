def x : Nat := 1
attribute [simp, implemented_by x] Nat.add
theorem target : 2 + 2 = 5 := rfl