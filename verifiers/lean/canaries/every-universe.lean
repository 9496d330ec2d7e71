universe u
theorem target (α : Type u) (a : α) : a = a := rfl