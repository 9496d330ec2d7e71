theorem axiomatic : 2 + 2 = 4 := rfl
theorem sorry' : 2 + 2 = 4 := axiomatic
theorem my_macro : 2 + 2 = 4 := sorry'
theorem «elab it» : 2 + 2 = 4 := my_macro
theorem target : 2 + 2 = 4 := «elab it»