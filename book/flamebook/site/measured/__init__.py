"""Pages of what takes minutes or hours to measure, each beside its recording."""
