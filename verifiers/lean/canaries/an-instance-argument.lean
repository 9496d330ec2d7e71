class Fact (p : Prop) : Prop where
  out : p
theorem target (p : Prop) [h : Fact p] : p := h.out