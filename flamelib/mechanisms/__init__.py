"""Mechanism side: from a value to messages; never an epsilon."""
