"""The book as a whole: its pages put in place, built, served, packed as one file, printed."""
