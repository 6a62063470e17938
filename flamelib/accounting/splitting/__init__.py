"""Split-and-mix: values cut into shares that add up to them (cloak aggregation)."""
