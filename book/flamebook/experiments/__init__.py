"""Training experiments: what they compare, their runs, and what is drawn of them."""
