"""Reductions of products in whole groups of neighbours, for instructions that multiply groups."""
