def x := unsafeIO (pure ())
theorem target : 2 + 2 = 5 := rfl