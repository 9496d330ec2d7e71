"""Problems whose numbers are too large to count out, so that a construction is needed; one file for each idea."""
