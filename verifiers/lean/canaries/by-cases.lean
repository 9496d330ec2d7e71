theorem target (p q : Prop) : p ∧ q → q ∧ p := by
  intro h
  cases h with
  | intro l r => exact ⟨r, l⟩