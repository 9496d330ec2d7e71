theorem target : 2 + 2 = 5 :=
  have : @Nat.rec (fun _ => Nat) 2 (fun _ x => Nat.mul x x) 60 = 0 := by decide +kernel
  sorry