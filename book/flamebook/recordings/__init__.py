"""Results of long runs, kept under data/results: how each is read, and the command that makes it anew."""
