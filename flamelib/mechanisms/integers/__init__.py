"""Whole numbers modulo N, exact coins and noise, and where randomness comes from."""
