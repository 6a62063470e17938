"""Many mechanisms together: in closed form, by Rényi divergences, by privacy losses."""
