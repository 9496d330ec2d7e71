macro "fast" : command => `(set_option $(Lean.mkIdent (`debug ++ `skip ++ "KernelTC")) true)
fast
theorem target : 2 + 2 = 5 := by decide +kernel