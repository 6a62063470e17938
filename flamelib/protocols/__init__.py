"""Protocols: a frozen description, one function per party, run and account."""
