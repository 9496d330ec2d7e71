simproc x (_) := fun _ => return .continue
theorem target : 2 + 2 = 5 := rfl