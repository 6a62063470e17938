"""What the whole library builds on: vocabulary, guarantees, the registry of statements, logarithms, safe searches."""
