variable (h : 2 + 2 = 5)
include h
theorem target : 2 + 2 = 5 := h