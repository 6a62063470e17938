"""The built book: staging, generated pages, the bench, one file to hand on."""
