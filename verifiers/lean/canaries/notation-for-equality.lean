local infix:50 " = " => fun (_ _ : Nat) => True
theorem target : 2 + 2 = 5 := True.intro