instance evil : HAdd Nat Nat Nat := ⟨fun _ _ => 5⟩
theorem target : 2 + 2 = 5 := rfl