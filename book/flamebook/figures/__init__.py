"""Figures: one look for all of them, and what those of all documents together are drawn from."""
