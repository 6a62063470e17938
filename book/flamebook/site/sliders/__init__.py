"""Parameters moved in a page: what is shown, recorded grids, Python in the browser."""
