def y : Nat := 1axiom bad : 2 + 2 = 5
theorem target : 2 + 2 = 5 := by decide +kernel