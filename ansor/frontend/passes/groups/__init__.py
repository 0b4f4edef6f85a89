"""Reductions of products in whole groups of neighbours, which instructions multiply at once."""
