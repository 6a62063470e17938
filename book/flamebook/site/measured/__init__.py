"""Pages of what was measured, beside the recordings of what takes minutes or hours."""
