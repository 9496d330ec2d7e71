"""What every backend has to do, as checks that anybody can run on their own machine, and what it costs there."""
