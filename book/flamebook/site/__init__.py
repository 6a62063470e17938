"""The built book: its written pages, what was measured for it, what moves in it, and the book as a whole."""
