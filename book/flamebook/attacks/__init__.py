"""Attacks that are run or worked out exactly, on what the documents say; nothing here draws."""
