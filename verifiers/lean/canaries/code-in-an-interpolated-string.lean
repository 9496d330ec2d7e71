def y := s!"{(by set_option debug.skipKernelTC true in decide +kernel : 2 + 2 = 5)}"
theorem target : 2 + 2 = 5 := rfl