namespace Classical
axiom choice' : 2 + 2 = 5
end Classical
theorem target : 2 + 2 = 5 := Classical.choice'