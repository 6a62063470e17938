"""Figures of cloak aggregation."""
