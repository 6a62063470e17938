"""Other accountants that this one can stand in for: Opacus, and Google's ``dp-accounting``; each needs its package."""
