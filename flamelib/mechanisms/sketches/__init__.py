"""Linear sketches of items: what a sum of vectors tells about a crowd."""
