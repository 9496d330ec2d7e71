set_option maxHeartbeats 0
theorem target : 2 + 2 = 5 :=
  (rfl : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) 100000000000000000000 = 5)