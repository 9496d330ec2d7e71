module
public import Init
theorem target : 2 + 2 = 5 := rfl