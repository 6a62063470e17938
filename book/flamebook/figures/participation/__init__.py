"""Figures of random participation."""
