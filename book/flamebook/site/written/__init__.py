"""Pages that follow from the ledger, the library's sources and the notebooks."""
