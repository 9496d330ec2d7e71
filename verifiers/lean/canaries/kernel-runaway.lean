theorem target : 2 + 2 = 5 :=
  have : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 0 := by decide +kernel
  sorry