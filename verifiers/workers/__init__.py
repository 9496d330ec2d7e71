"""The processes that decide: started, jailed, asked, watched by the clock, killed."""
