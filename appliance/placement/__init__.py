"""Says where engines and learners run: in processes here, or on hosts of a cluster, with the same messages."""
