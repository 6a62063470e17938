"""The ledger: every checkable statement, what computes it, and the enumerated truth."""
