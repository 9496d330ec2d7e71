def real : Bool := true
@[implemented_by real] def fake : Bool := false
theorem target : 2 + 2 = 5 := by native_decide