axiom «propext, Quot.sound» : 2 + 2 = 5
theorem target : 2 + 2 = 5 := «propext, Quot.sound»