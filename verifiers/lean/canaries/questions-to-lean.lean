theorem target : 2 + 2 = 4 := rfl
#print axioms target
#check target