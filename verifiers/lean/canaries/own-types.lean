inductive Colour where
  | red
  | green
private theorem hidden : 2 + 2 = 4 := rfl
@[simp] theorem shown : 2 + 2 = 4 := hidden
opaque secret : Nat
theorem target : 2 + 2 = 4 := shown