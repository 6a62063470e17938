"""Figures of the privacy blanket."""
