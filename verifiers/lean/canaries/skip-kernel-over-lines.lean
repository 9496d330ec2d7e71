set_option
  /- here -/ debug.skipKernelTC -- so
  true
theorem target : 2 + 2 = 5 := by decide +kernel