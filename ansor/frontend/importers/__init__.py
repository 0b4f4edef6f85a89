"""Models of other frameworks, imported as Relax modules."""
