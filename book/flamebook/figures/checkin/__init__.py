"""Figures of self check-in."""
