"""Problems of several steps across topics: each step's result, a number, polynomial, set or point, feeds the next."""
