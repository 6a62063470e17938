"""Data sets, models and training loops; torch in `networks` alone."""
