"""Figures of FLAME."""
