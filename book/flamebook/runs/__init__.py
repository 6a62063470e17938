"""A notebook with parameters: what it depends on, its execution, receipts, schedule, sweeps, editions."""
