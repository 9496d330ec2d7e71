def Nat.pow (_ _ : Nat) : Nat := 0
theorem unfolds (a b : Nat) : Nat.pow a b = 0 := rfl
theorem computes : Nat.pow 2 3 = 8 := by decide +kernel
theorem bad : 0 = 8 := (unfolds 2 3).symm.trans computes
theorem target : 2 + 2 = 5 := absurd bad (by decide)