"""Linear sketches of items: what a sum of vectors tells of a crowd."""
