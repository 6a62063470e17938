"""The front door: a protocol's record in, a guarantee out; one file for each document, one for its answers."""
