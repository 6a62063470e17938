"""Random participation and its relatives: who takes part is drawn, and may be hidden."""
