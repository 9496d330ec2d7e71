theorem target : target.P := (rfl : 2 + 2 = 4)
