"""Privacy side: from public numbers to a guarantee; never data, never a generator."""
