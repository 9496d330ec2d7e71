@[extern "system"] def system : Nat → Nat := fun n => n
theorem target : 2 + 2 = 5 := rfl