"""What figures and tables of all documents together show."""
