theorem target (p : Nat → Prop) (h : ∃ x, p x) : ∃ x, p x :=
  let i : Nonempty (Subtype p) := h.rec (fun w k => ⟨⟨w, k⟩⟩)
  ⟨(Classical.choice i).val, (Classical.choice i).property⟩