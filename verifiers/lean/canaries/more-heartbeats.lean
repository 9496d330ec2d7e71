set_option maxHeartbeats 0 in
set_option maxRecDepth 1000000 in
theorem target : 2 + 2 = 4 := by decide