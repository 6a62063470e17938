"""The book around the library: runs, ledger, pages and the flamelib command."""
