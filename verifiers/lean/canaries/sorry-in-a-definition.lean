def lemma1 : 2 + 2 = 5 := sorry
theorem target : 2 + 2 = 5 := lemma1