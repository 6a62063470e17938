"""Self check-in: every client decides alone whether it takes part; one round and many."""
