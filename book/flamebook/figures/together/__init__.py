"""Figures of all documents together."""
