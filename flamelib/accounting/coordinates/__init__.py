"""Vectors that are reported coordinate by coordinate: FLAME."""
