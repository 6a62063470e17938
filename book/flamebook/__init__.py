"""The program that makes the book: claims, figures, experiments, runs, pages and commands."""
