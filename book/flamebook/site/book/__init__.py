"""The book as a whole: its pages put in place, built, made light, served, packed as one file."""
