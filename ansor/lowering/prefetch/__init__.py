"""Prefetches: lines of memory that a program fetches before it needs them."""
