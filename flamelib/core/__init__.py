"""What both sides stand on: words, guarantees, the registry of statements, logarithms, safe searches."""
