"""Figures: compute a frozen record, then draw it."""
