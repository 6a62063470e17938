"""Privacy amplification: what shuffling, sampling, checking in and splitting buy."""
