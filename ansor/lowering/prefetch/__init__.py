"""Prefetches: which lines of memory a program asks for before it needs them."""
