theorem target : 2 + 2 = 5 := sorry
#print "failed to create thread"