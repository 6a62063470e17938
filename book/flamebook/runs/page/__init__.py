"""The page of an own run: its head, made by the book's builder, folded into one file, or in plain Markdown."""
