"""Operators that both importers use, as Relax expressions with the frameworks' exact semantics."""
